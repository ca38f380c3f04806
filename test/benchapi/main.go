// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchapi:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	programs
	profile, out, only, size, profiles string
	variables                          variables
	scale                              scaleSettings
}

func run(ctx context.Context) error {
	var s settings
	flag.StringVar(&s.profile, "profile", "short", "what is measured: short, full or smoke beside a CRD, or scale")
	flag.StringVar(&s.bin, "bin", os.Getenv("ETCD_OPERATOR_BIN"), "directory with etcd, kube-apiserver and kubectl")
	flag.StringVar(&s.server, "apiserver", "bin/apiserver", "the program of the API server")
	flag.StringVar(&s.repository, "repository", ".", "the work tree, for the manifests")
	flag.StringVar(&s.out, "out", "dist", "directory for the results")
	flag.StringVar(&s.only, "only", "", "measure only lines whose names contain this text")
	flag.StringVar(&s.size, "size", "", "measure only objects of this size, such as \"3 KB\"")
	flag.StringVar(&s.profiles, "profiles", "", "directory for CPU profiles of both servers, which are taken after the measurements")
	s.variables.addFlags()
	s.scale.addFlags()
	flag.Parse()
	if s.bin == "" {
		return errors.New("-bin is empty; run hack/bench-api.sh, or name a directory with etcd, kube-apiserver and kubectl")
	}
	if err := s.variables.complete(s.repository); err != nil {
		return err
	}
	if s.profile == profileScale {
		return runScale(ctx, s)
	}
	p, err := profileNamed(s.profile)
	if err != nil {
		return err
	}
	found := newReport(p.name, s.variables)
	// What was measured before an error, or before Ctrl-C, is saved all the same.
	err = measureAll(ctx, s, p, found)
	found.finish()
	return errors.Join(err, save(found, s.out))
}

func measureAll(ctx context.Context, s settings, p profile, found *report) error {
	for _, part := range p.plan {
		if s.size != "" && s.size != part.shape.name {
			continue
		}
		part.lines = slices.DeleteFunc(part.lines, func(l line) bool { return !strings.Contains(l.name, s.only) })
		if len(part.lines) == 0 {
			continue
		}
		if err := measure(ctx, s, p, part, found); err != nil {
			return fmt.Errorf("%d objects of %s: %w", part.objects, part.shape.name, err)
		}
	}
	if len(found.Records) == 0 {
		return fmt.Errorf("profile %s measures nothing with -only %q and -size %q; the name of a line ends before its format", p.name, s.only, s.size)
	}
	return nil
}

// measure runs one stage on fresh processes.
func measure(ctx context.Context, s settings, p profile, part part, found *report) (err error) {
	say("%d objects of %s: starting the servers", part.objects, part.shape.name)
	e, err := startEnvironment(ctx, s.programs, installation{variables: s.variables})
	defer func() { err = errors.Join(err, e.stop()) }()
	if err != nil {
		return err
	}
	st := &stage{environment: e, profile: p, shape: part.shape, objects: part.objects, report: found, until: part.until, profiles: s.profiles}
	return st.run(ctx, part.lines)
}

// save writes the results to files and the tables to standard output.
func save(found *report, out string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	found.print(os.Stdout)
	var table bytes.Buffer
	found.print(&table)
	errs := []error{found.write(filepath.Join(out, "bench-api.json")), os.WriteFile(filepath.Join(out, "bench-api.md"), table.Bytes(), 0o600)}
	for _, stage := range found.Sizes {
		lines := ofStage(grouped(found.Records), stage)
		if stage.Serving != servingCRD || len(lines) == 0 {
			continue
		}
		var chart bytes.Buffer
		title := fmt.Sprintf("%d objects of %s", stage.Objects, stage.Size)
		writeChart(&chart, title, bars(lines))
		name := fmt.Sprintf("bench-api-%d-%s.svg", stage.Objects, strings.ReplaceAll(stage.Size, " ", ""))
		errs = append(errs, os.WriteFile(filepath.Join(out, name), chart.Bytes(), 0o600))
	}
	return errors.Join(errs...)
}

// say tells the reader that something goes on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+"  "+format+"\n", args...)
}
