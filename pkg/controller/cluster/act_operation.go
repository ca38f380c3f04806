// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// defragTimeout bounds the defragmentation of one member. etcd writes some hundred
// megabytes a second, and databases have a few gigabytes.
const defragTimeout = 30 * time.Minute

// lastTask is what the planner shall know of the last task.
func (r *Reconciler) lastTask(key types.NamespacedName) planner.Task {
	id, done, err := r.Background.Last(key)
	task := planner.Task{ID: id, Done: done}
	if err != nil {
		task.Err = err.Error()
	}
	return task
}

// defragment starts the task; the next reconcile finds what came of it.
func (r *Reconciler) defragment(key types.NamespacedName, s *seen, a planner.Defragment) error {
	endpoint, found := s.endpoint(a.Name)
	if !found {
		return fmt.Errorf("member %s has no endpoint: %w", a.Name, ErrStale)
	}
	target := s.target
	r.Background.Start(key, a.Task, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, defragTimeout)
		defer cancel()
		return r.Etcd.Defragment(ctx, target, endpoint)
	})
	return nil
}

func (r *Reconciler) disarmNoSpace(ctx context.Context, s *seen, a planner.DisarmNoSpace) error {
	if err := r.Etcd.DisarmNoSpace(ctx, s.voters, a.ID); err != nil {
		return err
	}
	r.normal(s, EventAlarmDisarmed, "The alarm NOSPACE of member %x was taken back: every database is below its quota", a.ID)
	return nil
}

// announceOperation records an event when an operation begins and when it ends.
func (r *Reconciler) announceOperation(s *seen, op *v1beta2.ClusterOperation) {
	before := s.Cluster.Status.Operation
	if op == nil || before == nil || before.ID != op.ID || before.Phase == op.Phase {
		return
	}
	switch op.Phase {
	case v1beta2.OperationRunning:
		r.normal(s, EventOperationStarted, "%s, asked for by %s, began", op.Type, op.RequestedBy)
	case v1beta2.OperationSucceeded:
		r.normal(s, EventOperationSucceeded, "%s is over%s", op.Type, because(op.Message))
	case v1beta2.OperationFailed:
		r.warning(s, EventOperationFailed, "%s failed%s", op.Type, because(failure(op)))
	case v1beta2.OperationPending:
	}
}

// failure says why an operation failed.
func failure(op *v1beta2.ClusterOperation) string {
	if op.Message != "" {
		return op.Message
	}
	for i := range op.Results {
		if r := &op.Results[i]; r.State == v1beta2.OperationFailed {
			return "member " + r.Member + ": " + r.Message
		}
	}
	return ""
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
