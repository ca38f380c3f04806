// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
)

// Surroundings are what the program finds: its terminal, its clock and its cluster.
type Surroundings struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal are true for those that are terminals.
	InTerminal, OutTerminal, ErrTerminal bool
	// Color and Unicode are true if a terminal shows them.
	Color, Unicode bool
	// Size returns the columns and rows of the terminal; 0 if they are not known.
	Size func() (columns, rows int)
	// Clock shows ages and durations.
	Clock clock.PassiveClock
	// Every is how often the state of something is read that is followed.
	Every time.Duration
	// Connect makes the clients.
	Connect func(*connect.Flags) (*connect.Clients, error)
	// Exec runs a program in a member.
	Exec Executor
	// Raw makes the terminal pass on every key, until restore is called.
	Raw func() (restore func() error, err error)
	// Signals returns a context that ends with the first of these signals.
	Signals func(context.Context, ...os.Signal) (context.Context, context.CancelFunc)
}

// System returns the surroundings of the process.
func System() Surroundings {
	locale := os.Getenv("LC_ALL") + os.Getenv("LC_CTYPE") + os.Getenv("LANG")
	return Surroundings{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: isTerminal(os.Stdin), OutTerminal: isTerminal(os.Stdout), ErrTerminal: isTerminal(os.Stderr),
		Color:   os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Unicode: strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8"),
		Size:    terminalSize,
		Clock:   clock.RealClock{},
		Every:   defaultEvery,
		Connect: (*connect.Flags).Connect,
		Exec:    execInPod,
		Raw:     rawTerminal,
		Signals: signal.NotifyContext,
	}
}

// terminalSize asks the first of the outputs that is a terminal.
func terminalSize() (columns, rows int) {
	for _, file := range []*os.File{os.Stderr, os.Stdout} {
		if columns, rows, err := term.GetSize(int(file.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

// rawTerminal changes the terminal of the input.
func rawTerminal() (func() error, error) {
	file := int(os.Stdin.Fd())
	before, err := term.MakeRaw(file)
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(file, before) }, nil
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }
