// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// Versions of etcd that the local Kubernetes has images of.
	etcdVersion     = "3.6.16"
	previousVersion = "3.6.11"
	// limit is after how long something counts as never.
	limit = 120 * time.Second
)

// bench is one run.
type bench struct {
	*harness.Environment
	// repetitions of everything that is measured more than once.
	repetitions int
	// idle is how long the controller is watched at rest.
	idle time.Duration
	// clusters is how many there are meanwhile.
	clusters int
	// sizes of the databases that are backed up and restored, in MiB, and the agent's program.
	sizes []int
	agent string
	table table
}

// part is one thing to measure.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

var parts = []part{
	{"create", (*bench).create},
	{"lost", (*bench).lost},
	{"scale", (*bench).scale},
	{"upgrade", (*bench).upgrade},
	{"all-lost", (*bench).allLost},
	{"quorum-lost", (*bench).quorumLost},
	{"health", (*bench).health},
	{"burst", (*bench).burst},
	{"idle", (*bench).atRest},
	{"backup", (*bench).backup},
	{"restore", (*bench).restore},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	names := make([]string, 0, len(parts))
	for _, p := range parts {
		names = append(names, p.name)
	}
	b := &bench{}
	flag.IntVar(&b.repetitions, "n", 10, "how often everything is repeated")
	flag.DurationVar(&b.idle, "idle", 3*time.Minute, "how long the controller is watched at rest")
	flag.IntVar(&b.clusters, "clusters", 20, "how many clusters of one member there are at rest")
	flag.StringVar(&b.agent, "agent", "bin/agent", "the agent's program, for backups")
	flag.Func("sizes", "sizes of the databases that are backed up and restored, in MiB (default 100,2048)", b.setSizes)
	only := flag.String("only", strings.Join(names, ","), "what to measure")
	flag.Parse()
	chosen := strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no part %q, only %s", name, strings.Join(names, ", "))
		}
	}
	if len(b.sizes) == 0 {
		b.sizes = []int{100, 2048}
	}
	var err error
	if b.Environment, err = harness.LoadLocal("bench"); err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		b.say("%s", p.name)
		// The failure of a part is reported at the end; the others are measured all the same.
		if err := p.run(b, ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	b.table.print(os.Stdout)
	return errors.Join(errs...)
}

func (b *bench) setSizes(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return fmt.Errorf("%q is no size in MiB", text)
		}
		b.sizes = append(b.sizes, size)
	}
	return nil
}

// say tells the reader that something goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+"  "+format+"\n", args...)
}
