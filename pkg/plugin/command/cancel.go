// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// errNotCancelled means that what is under way cannot be cancelled here or now.
var errNotCancelled = errors.New("nothing was cancelled")

func (a *app) cancelCommand() *cobra.Command {
	o := &changeOptions{}
	cmd := &cobra.Command{
		Use:               "cancel NAME",
		Short:             "Cancel the defragmentation, restart, replacement or recovery that is under way",
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
	if r := t.cluster.Status.Recovery; r.IsInProgress() {
		return a.cancelRecovery(ctx, o, t, r)
	}
	if op.IsOver() {
		if err := t.requireNoRestore(ctx); err != nil {
			return err
		}
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

// requireNoRestore returns an error that names the EtcdRestores that may still replace the data of the cluster. The status of
// the cluster tells nothing of one that reads its backup or waits.
func (t *target) requireNoRestore(ctx context.Context) error {
	list, err := t.Etcd.EtcdV1beta2().EtcdRestores(t.cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("see whether an EtcdRestore is under way: %w", err)
	}
	var open []string
	for i := range list.Items {
		r := &list.Items[i]
		ended := r.Status.Phase == v1beta2.RestorePhaseSucceeded || r.Status.Phase == v1beta2.RestorePhaseFailed
		if r.Spec.EtcdCluster.Name == t.cluster.Name && !ended && r.DeletionTimestamp == nil {
			open = append(open, r.Name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return fmt.Errorf("%w: an EtcdRestore is under way; to end it: kubectl delete etcdrestore %s -n %s", errNotCancelled, strings.Join(open, " "), t.cluster.Namespace)
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

// cancelRecovery cancels a recovery from a lost quorum. From its cutover on nothing ends it.
func (a *app) cancelRecovery(ctx context.Context, o *changeOptions, t *target, r *v1beta2.RecoveryStatus) error {
	switch {
	case r.Trigger == v1beta2.RecoveryTriggerRestore:
		return fmt.Errorf("%w: an EtcdRestore makes it; delete that EtcdRestore: kubectl get etcdrestores -n %s", errNotCancelled, t.cluster.Namespace)
	case r.Phase != v1beta2.RecoveryPhasePending && r.Phase != v1beta2.RecoveryPhaseFilling:
		return fmt.Errorf("%w: it has replaced the old members; see kubectl etcd why %s -n %s", errNotCancelled, t.cluster.Name, t.cluster.Namespace)
	}
	send := func(ctx context.Context, dryRun bool) error {
		return t.annotate(ctx, resources.AnnotationCancelOperation, r.ID, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title: "Cancellation of the recovery of " + t.String(),
		plan: func(ctx context.Context) ([]string, error) {
			lines := []string{fmt.Sprintf("Cancellation of recovery %s of %s. The old members stay as they are. Recovery member %s is deleted, unless it may hold the only copy of the data.", r.ID, t, r.RecoveryMember)}
			if v := t.cluster.Spec.Recovery; v != nil && v.QuorumLoss == v1beta2.RecoveryAutomatic {
				lines = append(lines, "  Another recovery begins while spec.recovery.quorumLoss is Automatic: set it to Manual first.")
			}
			return lines, send(ctx, true)
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			return t.readThen(func(t *target) (state, error) { return lookAtCancelledRecovery(t, r.ID), nil }), "", nil
		},
	})
}

func lookAtCancelledRecovery(t *target, id string) state {
	r := t.cluster.Status.Recovery
	if r == nil || r.ID != id || !r.IsInProgress() {
		outcome := fmt.Sprintf("The recovery of %s has ended.", t)
		if r != nil && r.ID == id {
			outcome = fmt.Sprintf("The recovery of %s has ended (%s): %s.", t, r.Phase, r.Message)
		}
		return state{done: true, outcome: outcome}
	}
	return state{step: progress.Step{Text: "recovery member " + r.RecoveryMember + " is deleted"}}
}
