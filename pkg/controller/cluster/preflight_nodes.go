// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// requireNodesReport makes sure that the kubelet of each node reports right now on which an old
// member may run that does not respond. Kubernetes takes some 40 s to call a node not ready that
// was cut off. What it says of the pods there is from before, and they may serve as a quorum.
func requireNodesReport(ctx context.Context, r *run) error {
	var nodes []string
	for i := range r.seen.Pods {
		if p := &r.seen.Pods[i]; p.Owned && !p.Finished && p.Node != "" && !r.seen.responds(p.Name) {
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes)
	unresponsive, err := r.Objects.UnresponsiveNodes(ctx, slices.Compact(nodes))
	if err != nil || len(unresponsive) == 0 {
		return err
	}
	return fmt.Errorf("nodes %v do not report to Kubernetes, and members on them may serve on the other side of a partition: %w", unresponsive, reconcile.ErrStale)
}

// requireAway makes sure that the pod of a member is still away.
func requireAway(ctx context.Context, r *run, name string) error {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return fmt.Errorf("pod %s no longer exists: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	since, _ := away(ctx, r, pod)
	if seen := r.seen.podOf(name); seen == nil || seen.UID != string(pod.UID) || since.IsZero() {
		return fmt.Errorf("pod %s may come back: %w", name, reconcile.ErrStale)
	}
	return nil
}

// requireLost makes sure that members no longer exist: neither a container of theirs runs, nor is there a
// pod or PVC from which they could come back. A learner whose pod still waits for its membership has
// nothing to come back with, and no vote. Without learners such a member votes, and may bring back the quorum.
func requireLost(ctx context.Context, r *run, names []string) error {
	for _, name := range names {
		waits, err := awaitsMembership(ctx, r, name)
		if err != nil {
			return err
		}
		if waits && planner.KnowsLearners(&r.seen.Observed) {
			continue
		}
		if err := requireEnded(ctx, r, name); err != nil {
			return err
		}
		if err := requireNoPodOrPVC(ctx, r, name); err != nil {
			return err
		}
	}
	return nil
}

// awaitsMembership is true if no etcd has run in the pod of this name, nor on its PVC: neither was
// admitted, in the live API.
func awaitsMembership(ctx context.Context, r *run, name string) (bool, error) {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read pod %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, pod) || !resources.IsPrepared(pod.Annotations) {
		return false, nil
	}
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read PVC %s: %w", name, err)
	}
	return resources.IsPrepared(pvc.Annotations), nil
}
