// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

func (a *app) moveLeaderCommand() *cobra.Command {
	o, to := &changeOptions{}, ""
	cmd := &cobra.Command{
		Use:               "move-leader NAME",
		Short:             "Make another member lead",
		Example:           "  kubectl etcd move-leader prod --to prod-s8wc",
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.moveLeader(cmd.Context(), o, args[0], to) },
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&to, "to", "", "member that is to lead; by default the healthy follower that is furthest ahead")
	// An error means that the flag does not exist, and the next test of the command shows that.
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeMemberFlag)
	return cmd
}

func (a *app) moveLeader(ctx context.Context, o *changeOptions, name, to string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	send := func(ctx context.Context, dryRun bool) (*v1beta2.EtcdClusterLeaderMove, error) {
		body := &v1beta2.EtcdClusterLeaderMove{ObjectMeta: t.meta(), Spec: v1beta2.LeaderMoveRequest{Target: to}}
		response, err := t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).MoveLeader(ctx, name, body, metav1.CreateOptions{DryRun: dry(dryRun)})
		return response, failure.With(err, t.right("create", "etcdclusters/moveleader"))
	}
	return a.carryOut(ctx, o, t, change{
		title: "Move of the leader of " + t.String(),
		plan: func(ctx context.Context) ([]string, error) {
			planned, err := send(ctx, true)
			if err != nil {
				return nil, err
			}
			return []string{fmt.Sprintf("Leader of %s: from %s to %s.", t, planned.Status.From, planned.Status.Leader)}, nil
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			moved, err := send(ctx, false)
			if err != nil {
				return nil, "", err
			}
			return nil, fmt.Sprintf("%s leads %s in term %d.", moved.Status.Leader, t, moved.Status.Term), nil
		},
	})
}
