// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// defragTimeout bounds the defragmentation of one member. etcd writes some hundred
// megabytes a second, and databases have a few gigabytes.
const defragTimeout = 30 * time.Minute

// lastTask is what the planner needs to know about the last task.
func lastTask(r *run) planner.Task {
	id, done, err := r.Background.Last(r.key)
	task := planner.Task{ID: id, Done: done}
	if err != nil {
		task.Err = err.Error()
	}
	if op := r.seen.Cluster.Status.Operation; op != nil && op.Type == v1beta2.OperationDefrag && !op.IsOver() {
		task.NoPlace = noPlace(r.key.Namespace, r.Background.Lack(r.key))
	}
	return task
}

// noPlace says why there is no place for a defragmentation; empty if there is one.
func noPlace(namespace string, lack share.Lack) string {
	switch lack {
	case share.Nothing:
		return ""
	case share.OfNamespace:
		return "as many clusters of namespace " + namespace + " defragment as there are free places, which are for other namespaces"
	case share.OfCluster, share.OfAll:
	}
	return "as many clusters defragment as the controller lets"
}

// defragment starts the task; the next reconcile reads its result.
func defragment(ctx context.Context, r *run, a planner.Defragment) error {
	endpoint, found := r.seen.endpoint(a.Name)
	if !found {
		return fmt.Errorf("member %s has no endpoint: %w", a.Name, reconcile.ErrStale)
	}
	if err := raiseBudget(ctx, r); err != nil {
		return fmt.Errorf("raise the PodDisruptionBudget before member %s defragments: %w", a.Name, err)
	}
	target := r.seen.target
	r.Background.Start(r.key, a.Task, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, defragTimeout)
		defer cancel()
		return r.Etcd.Defragment(ctx, target, endpoint)
	})
	return nil
}

// announceOperation records an event when an operation begins and when it ends.
func announceOperation(r *run, op *v1beta2.ClusterOperation) {
	before := r.seen.Cluster.Status.Operation
	if op == nil || before == nil || before.ID != op.ID || before.Phase == op.Phase {
		return
	}
	switch op.Phase {
	case v1beta2.OperationRunning:
		normal(r, EventOperationStarted, "%s started, requested by %s", op.Type, op.RequestedBy)
	case v1beta2.OperationSucceeded:
		normal(r, EventOperationSucceeded, "%s succeeded%s", op.Type, job.WithCause(op.Message))
	case v1beta2.OperationFailed:
		warning(r, EventOperationFailed, "%s failed%s", op.Type, job.WithCause(failureMessage(op)))
	case v1beta2.OperationPending:
	}
}

// failureMessage says why an operation failed.
func failureMessage(op *v1beta2.ClusterOperation) string {
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
