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
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
)

// errRecovery means that a recovery was abandoned.
var errRecovery = errors.New("the recovery was abandoned")

func (a *app) recoverCommand() *cobra.Command {
	o, member := &changeOptions{}, ""
	cmd := &cobra.Command{
		Use:   "recover NAME",
		Short: "Recover a cluster from permanent quorum loss, from one surviving member",
		Example: `  kubectl etcd recover prod --dry-run
  kubectl etcd recover prod --member prod-s8wc`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.recover(cmd.Context(), o, args[0], member) },
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&member, "member", "", "member to continue from; by default the one that has lost the least")
	_ = cmd.RegisterFlagCompletionFunc("member", a.completeMemberFlag) // the flag exists
	return cmd
}

func (a *app) recover(ctx context.Context, o *changeOptions, name, member string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	send := func(ctx context.Context, dryRun bool) (*v1beta2.EtcdClusterRecovery, error) {
		body := &v1beta2.EtcdClusterRecovery{ObjectMeta: t.meta(), Spec: v1beta2.ClusterRecoverySpec{Member: member}}
		response, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Recover(ctx, name, body, metav1.CreateOptions{DryRun: dry(dryRun)})
		return response, failure.With(err, t.right("create", "etcdclusters/recover"))
	}
	return a.carryOut(ctx, o, t, change{
		title:     "Recovery of " + t.String(),
		losesData: true,
		plan: func(ctx context.Context) ([]string, error) {
			planned, err := send(ctx, true)
			if err != nil {
				return nil, err
			}
			return describeRecovery(t, &planned.Status), nil
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			requested, err := send(ctx, false)
			if err != nil {
				return nil, "", err
			}
			return func(ctx context.Context) (state, error) { return lookAtRecovery(ctx, t, requested.Status.ID) }, "", nil
		},
	})
}

// describeRecovery says what a recovery would do.
func describeRecovery(t *target, r *v1beta2.RecoveryStatus) []string {
	if r.Source.PVC != "" {
		return describeVolumeRecovery(t, r)
	}
	lines := []string{fmt.Sprintf("Recovery of %s from member %s, which has committed up to entry %d.", t, r.Source.Member, r.Source.RaftIndex)}
	for _, s := range r.Survivors {
		lines = append(lines, fmt.Sprintf("  survivor %s: entry %d, database %s", s.Name, s.RaftIndex, progress.Size(s.DBSize)))
	}
	if len(r.OldMembers) > 0 {
		lines = append(lines, "  replaced members: "+strings.Join(r.OldMembers, ", "))
	}
	if r.ExpectedLoss != "" {
		lines = append(lines, "  estimated data loss: "+r.ExpectedLoss)
	}
	return append(lines, "  Save the data of each survivor first: kubectl etcd snapshot save "+t.cluster.Name+" FILE --member MEMBER -n "+t.cluster.Namespace)
}

// describeVolumeRecovery is describeRecovery if no member responds.
func describeVolumeRecovery(t *target, r *v1beta2.RecoveryStatus) []string {
	lines := []string{
		fmt.Sprintf("Recovery of %s from PVC %s of member %s. No member responds.", t, r.Source.PVC, r.Source.Member),
		"  stopped for it: pod " + r.Source.Member + ". Its PVC is only read.",
	}
	if len(r.OldMembers) > 0 {
		lines = append(lines, "  replaced members: "+strings.Join(r.OldMembers, ", "))
	}
	return append(lines, "  estimated data loss: "+r.ExpectedLoss)
}

// phases of a recovery, in their order.
var phases = []v1beta2.RecoveryPhase{
	v1beta2.RecoveryPhasePending, v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryPhaseCleaning, v1beta2.RecoveryPhaseSucceeded,
}

func lookAtRecovery(ctx context.Context, t *target, id string) (state, error) {
	cluster, err := t.read(ctx)
	if err != nil {
		return state{}, err
	}
	r := cluster.Status.Recovery
	switch {
	case r == nil || r.ID != id:
		return state{}, fmt.Errorf("%w: status.recovery is about another recovery than %s; see kubectl etcd why %s -n %s", errRecovery, id, cluster.Name, cluster.Namespace)
	case r.Phase == v1beta2.RecoveryPhaseAbandoned:
		return state{}, fmt.Errorf("%w: %s", errRecovery, r.Message)
	case r.Phase == v1beta2.RecoveryPhaseSucceeded:
		return state{done: true, outcome: fmt.Sprintf("%s was recovered from member %s. Its cluster ID is now %s.", t, r.Source.Member, r.ClusterID)}, nil
	}
	step := progress.Step{Total: int64(len(phases) - 1), Text: strings.ToLower(string(r.Phase))}
	for i, phase := range phases {
		if phase == r.Phase {
			step.Done = int64(i)
		}
	}
	if r.Message != "" {
		step.Text += ": " + r.Message
	}
	return state{step: step}, nil
}
