// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/screen"
)

// Codes for a screen that is drawn again without flicker.
const (
	cursorHome   = "\x1b[H"
	clearScreen  = "\x1b[2J"
	clearRestOf  = "\x1b[K\n"
	clearToEnd   = "\x1b[J"
	wrapOff      = "\x1b[?7l"
	wrapOn       = "\x1b[?7h"
	timeOfChange = "15:04:05"
)

type statusOptions struct {
	output
	all, watch bool
}

func (a *app) statusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show a cluster, or all clusters of a namespace, with what each member says now",
		Example: `  kubectl etcd status
  kubectl etcd status prod -w
  kubectl etcd status -A -o wide`,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), o, args) },
	}
	o.bind(cmd, formatJSON, formatYAML, formatWide)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "show the clusters of all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show changes until interrupted")
	return cmd
}

func (a *app) status(ctx context.Context, o *statusOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.all && len(args) > 0 {
		return failure.Usage("-A shows the clusters of all namespaces; omit the name " + args[0] + ", or omit -A and name the namespace with -n")
	}
	read, err := a.statusReader(o, args)
	if err != nil {
		return err
	}
	if o.watch {
		return a.watchStatus(ctx, o, read)
	}
	list, err := read(ctx)
	if err != nil {
		return err
	}
	return a.printStatus(o, list, len(args) > 0)
}

// statusReader returns what reads the clusters that were named.
func (a *app) statusReader(o *statusOptions, args []string) (func(context.Context) ([]*report.Status, error), error) {
	clients, err := a.connect()
	if err != nil {
		return nil, err
	}
	namespace := clients.Namespace
	if o.all {
		namespace = ""
	}
	if len(args) == 0 {
		return func(ctx context.Context) ([]*report.Status, error) { return report.ReadAll(ctx, clients, namespace) }, nil
	}
	return func(ctx context.Context) ([]*report.Status, error) {
		status, err := report.ReadStatus(ctx, clients, namespace, args[0])
		return []*report.Status{status}, err
	}, nil
}

func (a *app) printStatus(o *statusOptions, list []*report.Status, one bool) error {
	switch {
	case o.isData() && one:
		return o.write(a.Out, list[0])
	case o.isData():
		return o.write(a.Out, report.NewStatusList(list))
	case len(list) == 0:
		where := "in namespace " + a.clients.Namespace + "; -A shows all namespaces"
		if o.all {
			where = "in any namespace"
		}
		fmt.Fprintln(a.Err, "There is no EtcdCluster "+where+".")
	default:
		render.Status(a.Out, list, a.style(o.format == formatWide))
	}
	return nil
}

// watchStatus shows the clusters until the user interrupts. A terminal shows the present
// state; elsewhere each change is a line.
func (a *app) watchStatus(ctx context.Context, o *statusOptions, read func(context.Context) ([]*report.Status, error)) error {
	ticker := time.NewTicker(a.Every)
	defer ticker.Stop()
	last := map[string]string{}
	if a.OutTerminal && !o.isData() {
		screen.Code(a.Out, clearScreen)
	}
	for first := true; ; first = false {
		list, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return interrupted(ctx)
		case err != nil && (first || !progress.IsTransient(err)):
			return err
		case o.isData():
			err = a.printChanges(o, list, last, err)
		case a.OutTerminal:
			a.redraw(o, list, err)
			err = nil
		default:
			a.printLines(list, last, err)
			err = nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-ticker.C:
		}
	}
}

// interrupted is no error: the user ends a watch so.
func interrupted(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// redraw draws the screen again over the one before.
func (a *app) redraw(o *statusOptions, list []*report.Status, err error) {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "%s  the API does not respond; trying again: %v\n", a.Clock.Now().Format(timeOfChange), err)
	} else {
		render.Status(&b, list, a.style(o.format == formatWide))
		fmt.Fprintf(&b, "\n%s  Ctrl-C ends\n", a.Clock.Now().Format(timeOfChange))
	}
	lines := strings.SplitAfter(b.String(), "\n")
	if _, rows := a.Size(); rows > 0 && len(lines) > rows {
		lines = lines[:rows-1] // the screen would scroll otherwise
	}
	// The terminal cuts long lines: a line that wraps would not be cleared as one.
	screen.Code(a.Out, wrapOff+cursorHome+strings.ReplaceAll(screen.Text(strings.Join(lines, "")), "\n", clearRestOf)+clearToEnd+wrapOn)
}

// printLines writes a line for each cluster that has changed.
func (a *app) printLines(list []*report.Status, last map[string]string, err error) {
	change := func(key, text string) {
		if last[key] != text {
			last[key] = text
			fmt.Fprintf(a.Out, "%s  %s\n", a.Clock.Now().Format(timeOfChange), text)
		}
	}
	if err != nil {
		change("", "the API does not respond; trying again: "+err.Error())
		return
	}
	last[""] = ""
	for _, s := range list {
		change(s.Namespace+"/"+s.Name, render.Summary(s))
	}
}

// printChanges writes a report for each cluster that has changed.
func (a *app) printChanges(o *statusOptions, list []*report.Status, last map[string]string, readErr error) error {
	if readErr != nil {
		fmt.Fprintln(a.Err, "the API does not respond; trying again: "+readErr.Error())
		list = nil
	}
	for _, s := range list {
		key, text := s.Namespace+"/"+s.Name, render.Summary(s)
		if last[key] == text {
			continue
		}
		last[key] = text
		if o.format == formatYAML {
			fmt.Fprintln(a.Out, "---")
		}
		if err := o.write(a.Out, s); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) whyCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:               "why NAME",
		Short:             "Say what is wrong with a cluster, why, and what to do",
		Example:           "  kubectl etcd why prod",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			clients, err := a.connect()
			if err != nil {
				return err
			}
			why, err := report.ReadWhy(cmd.Context(), clients, clients.Namespace, args[0])
			if err != nil {
				return err
			}
			if o.isData() {
				return o.write(a.Out, why)
			}
			render.Why(a.Out, why, a.style(false))
			return nil
		},
	}
	o.bind(cmd, formatJSON, formatYAML)
	return cmd
}

// isHealthy is true if every declared member serves and a quorum has just responded.
func isHealthy(s *report.Status) bool { return s.Live && s.Verdict == v1beta2.VerdictHealthy }
