// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command launcher starts etcd in a pod that was made before its member. The controller
// adds the member and then sets an annotation of the pod, which reaches the container as
// a file. The launcher waits for that file and becomes etcd. It needs no access to any API.
// It is copied into every pod in which it starts etcd, so it stays small: it may import
// the standard library only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: launcher COMMAND

  install DIRECTORY      copy this program into a directory
  run [--answer-http PORT] [--answer-tcp PORT] FILE PROGRAM [ARGUMENT...]
                         wait until FILE names the initial cluster, then become PROGRAM;
                         probes at the ports are answered meanwhile
`

// errUsage means that the command line is wrong.
var errUsage = errors.New("see above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "launcher:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch name, args := args[0], args[1:]; name {
	case "install":
		if len(args) != 1 {
			return errUsage
		}
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		return install(self, args[0])
	case "run":
		l, err := parse(args, log)
		if err != nil {
			return err
		}
		return l.run(ctx)
	default:
		return errUsage
	}
}

// parse reads the arguments of run.
func parse(args []string, log io.Writer) (*launch, error) {
	l := &launch{log: log, environ: os.Environ(), exec: syscall.Exec}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&l.httpPort, "answer-http", 0, "port that responds to HTTP requests with 200, and to readiness probes with 503")
	flags.IntVar(&l.tcpPort, "answer-tcp", 0, "port at which connections are accepted")
	if err := flags.Parse(args); err != nil || flags.NArg() < 2 {
		return nil, errUsage
	}
	l.file, l.command = flags.Arg(0), flags.Args()[1:]
	return l, nil
}
