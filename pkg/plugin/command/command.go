// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/screen"
)

// app is one run of the program.
type app struct {
	Surroundings
	flags connect.Flags
	// parsed is true once the command line was understood.
	parsed bool
	// clients are made at their first use.
	clients *connect.Clients
}

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, args []string, s Surroundings) failure.Code {
	s.Out, s.Err = screen.NewWriter(s.Out), screen.NewWriter(s.Err)
	a := &app{Surroundings: s}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return failure.CodeDone
	}
	code := failure.CodeOf(err)
	if !a.parsed && code == failure.CodeFailed {
		code = failure.CodeUsage
	}
	if text := failure.Explain(err); text != "" {
		fmt.Fprintln(s.Err, render.Wrap("error: "+text, a.width(s.ErrTerminal), "  "))
	}
	return code
}

const description = `Shows and operates etcd clusters of the etcd operator.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 not healthy or condition not met,
4 right missing, 5 not found, 6 timed out.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-etcd",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl etcd"},
		Short:         "Show and operate etcd clusters",
		Long:          description,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.parsed = true
		},
	}
	root.SetUsageFunc(shortUsage(root.UsageFunc()))
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return failure.Usage(fmt.Sprintf("%v; see %s --help", err, cmd.CommandPath()))
	})
	a.flags.UserAgent = "kubectl-etcd/" + version.Get().GitVersion
	a.flags.Warnings = a.Err
	a.flags.Bind(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupData, Title: "Data:"},
		&cobra.Group{ID: groupChange, Title: "Change:"},
		&cobra.Group{ID: groupConnect, Title: "Connect:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupLook, a.statusCommand(), a.whyCommand(), a.checkCommand(), a.logsCommand(), a.reportCommand(), a.diskcheckCommand(), a.uiCommand())
	add(groupData, a.backupCommand(), a.snapshotCommand(), a.restoreCommand(), a.recoverCommand(), a.migrateCommand())
	add(groupChange, a.upgradeCommand(), a.restartCommand(), a.defragCommand(), a.replaceCommand(), a.moveLeaderCommand(), a.hibernateCommand(), a.wakeCommand(),
		a.pauseCommand(), a.resumeCommand(), a.cancelCommand(), a.rotateCACommand())
	add(groupConnect, a.connCommand(), a.ctlCommand(), a.shellCommand())
	root.AddCommand(a.versionCommand())
	return root
}

// shortUsage leaves the flags that every command has out of the help of each command. It is a
// function and no template: a program with templates is half as large again.
func shortUsage(usage func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		inherited := cmd.InheritedFlags()
		inherited.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
		if err := usage(cmd); err != nil || !inherited.HasFlags() {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStderr(), "\nkubectl etcd --help lists the flags that every command has, such as --namespace.")
		return err
	}
}

// Groups of commands in the help.
const (
	groupLook    = "look"
	groupData    = "data"
	groupChange  = "change"
	groupConnect = "connect"
)

// connect returns the clients.
func (a *app) connect() (*connect.Clients, error) {
	if a.clients != nil {
		return a.clients, nil
	}
	clients, err := a.Connect(&a.flags)
	a.clients = clients
	return clients, err
}

// group returns a command that only holds others.
func group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return failure.Usage(fmt.Sprintf("name one of the commands that %s --help lists", cmd.CommandPath()))
	}
	c.AddCommand(commands...)
	return c
}

// takes requires arguments from the first to the last number of them; last is -1 for any number.
func takes(first, last int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < first || (last >= 0 && len(args) > last) {
			return failure.Usage(fmt.Sprintf("%d arguments were given; type: %s", len(args), cmd.UseLine()))
		}
		return nil
	}
}

// style returns how the output is drawn.
func (a *app) style(wide bool) render.Style {
	return render.Style{
		Color: a.OutTerminal && a.Color, Unicode: a.OutTerminal && a.Unicode, Wide: wide, Width: a.width(a.OutTerminal), Now: a.Clock.Now(),
	}
}

// width is how many columns a line of text may have. Only lines on a terminal have a limit: a
// script reads whole lines.
func (a *app) width(isTerminal bool) int {
	if !isTerminal {
		return 0
	}
	columns, _ := a.Size()
	return min(columns, render.MaxWidth)
}

// line starts to show the progress of something.
func (a *app) line(title string) *progress.Line {
	return progress.NewLine(title, progress.Options{
		Out: a.Err, Terminal: a.ErrTerminal, Unicode: a.Unicode && a.ErrTerminal, Clock: a.Clock,
		Width: func() int { columns, _ := a.Size(); return columns },
	})
}

// defaultEvery is how often the state of something is read.
const defaultEvery = time.Second
