// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func (a *app) cancelCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "cancel NAME",
		Short:             "Cancel the defragmentation, restart or replacement that is under way",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.cancel(cmd.Context(), o, args[0]) },
	}
	o.bind(cmd)
	return cmd
}

func (a *app) cancel(ctx context.Context, o *changeOptions, name string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	op := t.cluster.Status.Operation
	if op.IsOver() {
		fmt.Fprintf(a.Out, "No operation of %s is under way.\n", t)
		return nil
	}
	send := func(ctx context.Context, dryRun bool) error {
		return t.annotate(ctx, resources.AnnotationCancelOperation, op.ID, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title: "Cancellation of " + string(op.Type) + " of " + t.String(),
		plan: func(ctx context.Context) ([]string, error) {
			return []string{
				fmt.Sprintf("Cancellation of %s %s of %s: %s.", op.Type, op.ID, t, report.OperationAmount(op)),
				"  What is done stays. What etcd does in a member now goes on to its end.",
			}, send(ctx, true)
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			return t.readThen(func(t *target) (state, error) { return lookAtCancellation(t, op), nil }), "", nil
		},
	})
}

// lookAtCancellation is done once the operation has ended.
func lookAtCancellation(t *target, cancelled *v1beta2.ClusterOperation) state {
	op := t.cluster.Status.Operation
	switch {
	case op == nil || op.ID != cancelled.ID:
		return state{done: true, outcome: fmt.Sprintf("%s %s of %s has ended.", cancelled.Type, cancelled.ID, t)}
	case op.Phase == v1beta2.OperationSucceeded:
		return state{done: true, outcome: fmt.Sprintf("%s of %s had succeeded before it could be cancelled: %s.", op.Type, t, report.OperationAmount(op))}
	default:
		return state{
			step: progress.Step{Text: op.Message}, done: op.IsOver(),
			outcome: fmt.Sprintf("%s of %s has ended: %s. %s", op.Type, t, report.OperationAmount(op), op.Message),
		}
	}
}
