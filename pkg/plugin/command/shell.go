// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

func (a *app) shellCommand() *cobra.Command {
	o := &ctlOptions{}
	cmd := &cobra.Command{
		Use:   "shell NAME",
		Short: "Run commands of etcdctl in a member, one a line",
		Long: `Reads lines and runs each with the etcdctl of the image in the container of a member. The
images of etcd have no shell, so the prompt is one of the plugin. It splits a line as a
shell does, with quotes; variables, pipes and redirections are not possible.

exit and Ctrl-D end the session, Ctrl-C ends a command. The arrow keys bring earlier
lines back; no file keeps them. Without a terminal the lines come from the input, and the
first command that fails ends the session with its exit code. It needs the right to get
pods and to create pods/exec.`,
		Example: `  kubectl etcd shell prod
  echo 'endpoint status -w table' | kubectl etcd shell prod`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.shell(cmd.Context(), o, args[0]) },
	}
	o.bind(a, cmd)
	return cmd
}

// shell is one session.
type shell struct {
	*app

	options *ctlOptions
	target  *target
	lines   lineReader
}

// lineReader reads the lines of a session.
type lineReader interface {
	// ReadLine returns io.EOF at the end of the input.
	ReadLine(ctx context.Context, prompt string) (string, error)
	// Ask reads the reply to a question.
	Ask(ctx context.Context, question string) (string, error)
}

func (a *app) shell(ctx context.Context, o *ctlOptions, name string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	pod, err := podOf(ctx, o, t)
	if err != nil {
		return err
	}
	s := &shell{app: a, options: o, target: t}
	if !a.InTerminal {
		s.lines = newPlainLines(a.In)
		return s.loop(ctx, s.step)
	}
	// Ctrl-C ends a command and not the session.
	session, stop := a.Signals(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	s.lines = newEditor(a.Surroundings)
	fmt.Fprintf(a.Err, "etcdctl in pod %s of %s. exit or Ctrl-D ends the session, Ctrl-C a command.\n", pod.Name, t)
	return s.loop(session, s.stepOfTerminal)
}

// errExit ends a session.
var errExit = errors.New("exit")

// loop reads and runs lines until the end, or until step returns an error.
func (s *shell) loop(ctx context.Context, step func(ctx context.Context, line string) error) error {
	for {
		line, err := s.lines.ReadLine(ctx, s.target.String()+"> ")
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = step(ctx, line)
		}
		if errors.Is(err, errExit) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step runs one line.
func (s *shell) step(ctx context.Context, line string) error {
	words, err := splitLine(line)
	if err != nil || len(words) == 0 {
		return err
	}
	switch words[0] {
	case "exit", "quit":
		return errExit
	case "etcdctl":
		words = words[1:]
	}
	if err := s.confirmDanger(ctx, s.options, words, s.lines.Ask); err != nil {
		return err
	}
	// The members may have changed since the line before.
	cluster, err := s.target.read(ctx)
	if err != nil {
		return err
	}
	s.target.cluster = cluster
	return s.runEtcdctl(ctx, s.options, s.target, words, nil)
}

// stepOfTerminal runs one line until it ends or Ctrl-C ends it. An error is printed; only a
// missing right, which every other line would meet, ends the session.
func (s *shell) stepOfTerminal(ctx context.Context, line string) error {
	command, stop := s.Signals(ctx, syscall.SIGINT)
	defer stop()
	err := s.step(command, line)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, errors.Is(err, errExit):
		return err
	case command.Err() != nil:
		fmt.Fprintln(s.Err) // behind the ^C of the terminal
	case isExitError(err): // etcdctl has said why
	case failure.CodeOf(err) == failure.CodeForbidden:
		return err
	default:
		fmt.Fprintln(s.Err, "error: "+failure.Explain(err))
	}
	return nil
}

// isExitError is true for the end of etcdctl, whose exit codes are not those of the plugin.
func isExitError(err error) bool {
	var exit *failure.ExitError
	return errors.As(err, &exit)
}
