// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// errDeclined means that the user did not confirm the plan.
var errDeclined = errors.New("not confirmed; nothing was changed")

// changeOptions are the flags of every command that changes something.
type changeOptions struct {
	yes, dryRun, wait bool
	timeout           time.Duration
}

func (o *changeOptions) bind(cmd *cobra.Command) {
	o.bindPlan(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.wait, "wait", true, "follow the change until it is done")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long to follow the change, such as 10m; 0 is no limit")
}

// bindPlan binds the flags of a change that is done as soon as it is accepted.
func (o *changeOptions) bindPlan(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.yes, "yes", "y", false, "carry the plan out without a question")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing")
}

// state is how far a change is.
type state struct {
	step progress.Step
	done bool
	// outcome is what the change came to; it is printed if the change is done.
	outcome string
}

// change is something that is done to a cluster.
type change struct {
	// title names it on the line of its progress.
	title string
	// plan asks the API server what would happen. No lines mean that nothing is to be done.
	plan func(ctx context.Context) ([]string, error)
	// request carries the plan out, and returns what reads how far it is. Without that the
	// change is done.
	request func(ctx context.Context) (look func(context.Context) (state, error), outcome string, err error)
	// needsQuorum is true if the controller carries the change out only while a quorum responds.
	needsQuorum bool
	// losesData is true if the user must type the name of the cluster to confirm.
	losesData bool
}

// target is the cluster of a command.
type target struct {
	*connect.Clients

	cluster *v1beta2.EtcdCluster
}

// target reads the cluster that a command names.
func (a *app) target(ctx context.Context, name string) (*target, error) {
	clients, err := a.connect()
	if err != nil {
		return nil, err
	}
	cluster, err := report.ReadCluster(ctx, clients, clients.Namespace, name)
	if err != nil {
		return nil, err
	}
	return &target{Clients: clients, cluster: cluster}, nil
}

// String returns namespace and name.
func (t *target) String() string { return t.cluster.Namespace + "/" + t.cluster.Name }

// waitsForQuorum warns that a change of a cluster without a quorum has to wait.
func (t *target) waitsForQuorum() []string {
	if report.ConditionOf(t.cluster, v1beta2.ClusterConditionQuorumLost).Status != corev1.ConditionTrue {
		return nil
	}
	return []string{fmt.Sprintf("  Warning: %s has lost its quorum. The change waits until a quorum responds again: kubectl etcd why %s -n %s",
		t, t.cluster.Name, t.cluster.Namespace)}
}

// meta is the precondition of a request: the cluster that was read.
func (t *target) meta() metav1.ObjectMeta { return metav1.ObjectMeta{UID: t.cluster.UID} }

// right names the right that a request needs.
func (t *target) right(verb, resource string) failure.Right {
	return failure.Right{Verb: verb, Resource: resource, Namespace: t.cluster.Namespace}
}

// read reads the cluster again. One of another UID is another cluster.
func (t *target) read(ctx context.Context) (*v1beta2.EtcdCluster, error) {
	cluster, err := report.ReadCluster(ctx, t.Clients, t.cluster.Namespace, t.cluster.Name)
	if err != nil {
		return nil, err
	}
	if cluster.UID != t.cluster.UID {
		return nil, fmt.Errorf("EtcdCluster %s was recreated (UID changed from %s to %s); what was requested does not continue", t, t.cluster.UID, cluster.UID)
	}
	return cluster, nil
}

// dry returns the options of a dry run.
func dry(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// carryOut prints the plan, asks, sends the request and follows it. The target may be nil for a change that nothing
// follows, needs no quorum and loses no data.
func (a *app) carryOut(ctx context.Context, o *changeOptions, t *target, c change) error {
	lines, err := c.plan(ctx)
	if ctx.Err() != nil {
		return errDeclined
	}
	if err != nil {
		return err
	}
	if c.needsQuorum {
		lines = append(lines, t.waitsForQuorum()...)
	}
	for _, line := range lines {
		fmt.Fprintln(a.Out, render.Wrap(line, a.width(a.OutTerminal), "  "))
	}
	if o.dryRun {
		fmt.Fprintln(a.Out, "Nothing was changed: --dry-run was given.")
		return nil
	}
	if err := a.confirm(ctx, o, t, c); err != nil {
		return err
	}
	line := a.line(c.title)
	look, outcome, err := c.request(ctx)
	if err != nil {
		return err
	}
	if look == nil {
		line.End(a.Out, outcome)
		return nil
	}
	if !o.wait {
		fmt.Fprintf(a.Out, "%s was requested. Follow it: kubectl etcd status %s -n %s -w\n", c.title, t.cluster.Name, t.cluster.Namespace)
		return nil
	}
	err = a.follow(ctx, line, o.timeout, look)
	continues := "the change continues; follow it: kubectl etcd status " + t.cluster.Name + " -n " + t.cluster.Namespace + " -w"
	switch {
	case errors.Is(err, failure.ErrTimedOut):
		return failure.TimedOut(err.Error() + "; " + continues)
	case errors.Is(err, context.Canceled):
		return failure.Interrupted("interrupted; " + continues)
	default:
		return err
	}
}

// follow shows how far a change is until it is done.
func (a *app) follow(ctx context.Context, line *progress.Line, timeout time.Duration, look func(context.Context) (state, error)) error {
	outcome := ""
	err := progress.Follow(ctx, line, a.Every, timeout, func(ctx context.Context) (progress.Step, bool, error) {
		now, err := look(ctx)
		outcome = now.outcome
		return now.step, now.done, err
	})
	if err != nil {
		line.Clear()
		return err
	}
	line.End(a.Out, outcome)
	return nil
}

// confirm asks the user. Without a terminal only --yes confirms.
func (a *app) confirm(ctx context.Context, o *changeOptions, t *target, c change) error {
	if o.yes {
		return nil
	}
	if !a.InTerminal {
		return failure.Usage("the input is no terminal, so the plan cannot be confirmed; add --yes to carry it out, or --dry-run to print it only")
	}
	expected, question := "y", "Carry it out? [y/N] "
	if c.losesData {
		expected, question = t.cluster.Name, "Data may be lost. Type the name of the cluster to carry it out: "
	}
	fmt.Fprint(a.Err, question)
	reply, err := a.readReply(ctx)
	if err != nil {
		return err
	}
	if reply == expected || !c.losesData && isYes(reply) {
		return nil
	}
	return errDeclined
}

// readReply reads a line. The end of the context ends the wait for it.
func (a *app) readReply(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := bufio.NewReader(a.In).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return "", errDeclined
	case r := <-read:
		if r.err != nil {
			return "", fmt.Errorf("read the confirmation: %w", r.err)
		}
		return r.text, nil
	}
}
