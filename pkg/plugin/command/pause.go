// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

func (a *app) pauseCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "pause NAME",
		Short:             "Stop the changes of the controller; members serve on",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.setPaused(cmd.Context(), o, args[0], true) },
	}
	o.bind(cmd)
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "resume NAME",
		Short:             "Have the controller manage a paused cluster again",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.setPaused(cmd.Context(), o, args[0], false) },
	}
	o.bind(cmd)
	return cmd
}

// setPaused pauses a cluster, or ends its pause.
func (a *app) setPaused(ctx context.Context, o *changeOptions, name string, paused bool) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	title, plan, outcome, as := "Pause of "+t.String(),
		"The controller stops all changes of members, Services and volumes, and replaces no member that fails. Members serve on, and expiring certificates are renewed.",
		fmt.Sprintf("%s is paused. End the pause: kubectl etcd resume %s -n %s", t, name, t.cluster.Namespace), "paused"
	if !paused {
		title, plan, as = "End of the pause of "+t.String(), "The controller carries out every change that waits.", "not paused"
		outcome = fmt.Sprintf("%s is not paused. Follow the changes that have waited: kubectl etcd status %s -n %s -w", t, name, t.cluster.Namespace)
	}
	if t.cluster.Spec.Paused == paused {
		fmt.Fprintf(a.Out, "%s is %s: there is nothing to do.\n", t, as)
		return nil
	}
	send := func(ctx context.Context, dryRun bool) error {
		return t.patchSpec(ctx, map[string]any{"paused": paused}, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title: title,
		plan: func(ctx context.Context) ([]string, error) {
			return []string{title + ": " + plan}, send(ctx, true)
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			return t.readThen(func(t *target) (state, error) { return lookAtPause(t, paused, outcome) }), "", nil
		},
	})
}

// lookAtPause is done once the controller has seen the change.
func lookAtPause(t *target, paused bool, outcome string) (state, error) {
	if t.cluster.Spec.Paused != paused {
		return state{}, fmt.Errorf("spec.paused of %s was changed by another request; see kubectl etcd status %s -n %s", t, t.cluster.Name, t.cluster.Namespace)
	}
	seen := report.ConditionOf(t.cluster, v1beta2.ClusterConditionPaused)
	done := t.cluster.Status.ObservedGeneration >= t.cluster.Generation && (seen.Status == corev1.ConditionTrue) == paused
	return state{step: progress.Step{Text: "the controller has not acted on the change yet"}, done: done, outcome: outcome}, nil
}
