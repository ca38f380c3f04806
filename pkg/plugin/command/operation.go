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
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// errOperation means that an operation failed.
var errOperation = errors.New("the operation failed")

// operationKind is one of the operations that the controller carries out member by member.
type operationKind struct {
	subresource string
	send        func(ctx context.Context, t *target, body *v1beta2.EtcdClusterOperation, o metav1.CreateOptions) (*v1beta2.EtcdClusterOperation, error)
	// describe says what the plan is.
	describe func(t *target, members []string) string
}

func (a *app) restartCommand() *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:   "restart NAME",
		Short: "Restart all members, one after the other",
		Args:  takes(1, 1),

		ValidArgsFunction: a.completeClusters,
	}, operationKind{
		subresource: "restart",
		send: func(ctx context.Context, t *target, body *v1beta2.EtcdClusterOperation, o metav1.CreateOptions) (*v1beta2.EtcdClusterOperation, error) {
			return t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Restart(ctx, t.cluster.Name, body, o)
		},
		describe: func(t *target, _ []string) string {
			return fmt.Sprintf("Restart of %s: all members. One member restarts at a time, only while the others are a quorum.", t)
		},
	})
}

func (a *app) defragCommand() *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:   "defrag NAME [MEMBER...]",
		Short: "Give unused space of the database back, one member after the other",
		Args:  takes(1, -1),
	}, operationKind{
		subresource: "defrag",
		send: func(ctx context.Context, t *target, body *v1beta2.EtcdClusterOperation, o metav1.CreateOptions) (*v1beta2.EtcdClusterOperation, error) {
			return t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Defrag(ctx, t.cluster.Name, body, o)
		},
		describe: func(t *target, members []string) string {
			return fmt.Sprintf("Defragmentation of %s: %s. A member does not serve while its database is rewritten.", t, whichMembers(members))
		},
	})
}

func (a *app) replaceCommand() *cobra.Command {
	return a.operationCommand(&cobra.Command{
		Use:     "replace NAME MEMBER...",
		Short:   "Have another member join, then remove the named member with its pod and its PVC",
		Example: "  kubectl etcd replace prod prod-j4j7 --dry-run",
		Args:    takes(2, -1),
	}, operationKind{
		subresource: "replace",
		send: func(ctx context.Context, t *target, body *v1beta2.EtcdClusterOperation, o metav1.CreateOptions) (*v1beta2.EtcdClusterOperation, error) {
			return t.Etcd.EtcdV1beta2().EtcdClusters(t.cluster.Namespace).Replace(ctx, t.cluster.Name, body, o)
		},
		describe: func(t *target, members []string) string {
			return fmt.Sprintf("Replacement in %s: %s.", t, whichMembers(members))
		},
	})
}

func whichMembers(members []string) string {
	if len(members) == 0 {
		return "all members"
	}
	return strings.Join(members, ", ")
}

func (a *app) operationCommand(cmd *cobra.Command, kind operationKind) *cobra.Command {
	o := &changeOptions{}
	o.bind(cmd)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = a.completeMembers
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.operate(cmd.Context(), o, kind, args[0], args[1:])
	}
	return cmd
}

func (a *app) operate(ctx context.Context, o *changeOptions, kind operationKind, name string, members []string) error {
	t, err := a.target(ctx, name)
	if err != nil {
		return err
	}
	body := &v1beta2.EtcdClusterOperation{ObjectMeta: t.meta(), Spec: v1beta2.OperationRequest{Members: members}}
	send := func(ctx context.Context, dryRun bool) (*v1beta2.EtcdClusterOperation, error) {
		response, err := kind.send(ctx, t, body, metav1.CreateOptions{DryRun: dry(dryRun)})
		return response, failure.With(err, t.right("create", "etcdclusters/"+kind.subresource))
	}
	return a.carryOut(ctx, o, t, change{
		title:       strings.ToUpper(kind.subresource[:1]) + kind.subresource[1:] + " of " + t.String(),
		needsQuorum: true,
		plan: func(ctx context.Context) ([]string, error) {
			planned, err := send(ctx, true)
			if err != nil {
				return nil, err
			}
			lines := []string{kind.describe(t, members)}
			if planned.Status.Message != "" {
				lines = append(lines, "  "+planned.Status.Message)
			}
			return lines, nil
		},
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			requested, err := send(ctx, false)
			if err != nil {
				return nil, "", err
			}
			return func(ctx context.Context) (state, error) { return lookAtOperation(ctx, t, requested.Status.ID) }, "", nil
		},
	})
}

// lookAtOperation reads how far an operation is.
func lookAtOperation(ctx context.Context, t *target, id string) (state, error) {
	cluster, err := t.read(ctx)
	if err != nil {
		return state{}, err
	}
	op := cluster.Status.Operation
	if op == nil || op.ID != id {
		return state{}, fmt.Errorf("%w: status.operation is about another operation than %s, which has ended; see the events: kubectl etcd why %s -n %s",
			errOperation, id, cluster.Name, cluster.Namespace)
	}
	if op.Phase == v1beta2.OperationFailed {
		return state{}, fmt.Errorf("%w: %s", errOperation, op.Message)
	}
	text := op.Message
	if b := cluster.Status.BlockedBy; text == "" && b != nil {
		text = "waits: " + b.Message
	}
	now := state{step: progress.Step{Text: text, Total: int64(len(op.Members))}, done: op.IsOver()}
	if now.step.Total == 0 {
		now.step.Total = int64(ptr.Deref(cluster.Spec.Replicas, 0))
	}
	for _, r := range op.Results {
		switch r.State {
		case v1beta2.OperationSucceeded:
			now.step.Done++
		case v1beta2.OperationRunning:
			now.step.Text = strings.TrimSpace(r.Member + " " + text)
		default:
		}
	}
	now.outcome = fmt.Sprintf("%s of %s is done: %s.%s", op.Type, t, report.OperationAmount(op), freed(op))
	return now, nil
}

// freed says how much space a defragmentation gave back.
func freed(op *v1beta2.ClusterOperation) string {
	var bytes int64
	for _, r := range op.Results {
		if r.DBSizeAfter > 0 {
			bytes += r.DBSizeBefore - r.DBSizeAfter
		}
	}
	if bytes <= 0 {
		return ""
	}
	return " It gave " + progress.Size(bytes) + " back."
}
