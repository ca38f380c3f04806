// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	return r.reports.require(ctx, r, slices.Compact(nodes))
}

const (
	// nodeReports is longer than a kubelet takes between two renewals of its Lease, which is a
	// quarter of the duration of 40 s by default. Source: the kubelet's nodeLeaseDurationSeconds.
	nodeReports = 15 * time.Second
	// reportsLife is how long reports count that were seen to come.
	reportsLife = 20 * time.Second
)

var (
	// errAwaitingReports means that nodes may report any moment.
	errAwaitingReports = fmt.Errorf("nodes have not reported to Kubernetes yet: %w", reconcile.ErrStale)
	// errNodesUnresponsive means that nodes do not report.
	errNodesUnresponsive = errors.New("nodes do not report to Kubernetes")
)

// nodeReporting remembers since when the reports of nodes are awaited, by cluster. A report takes longer than
// an observation may be acted on, so it is awaited across reconciles.
type nodeReporting struct {
	mu    sync.Mutex
	asked map[types.NamespacedName]*awaitedReports
}

// awaitedReports are the reports that nodes had sent before since.
type awaitedReports struct {
	since  time.Time
	before map[string]string
}

// require is nil once each of the nodes has reported since the first call, not long ago. Then the next
// call begins again.
func (n *nodeReporting) require(ctx context.Context, r *run, nodes []string) error {
	now, err := r.Objects.NodeReports(ctx, nodes)
	if err != nil || len(now) == 0 {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked == nil {
		n.asked = map[types.NamespacedName]*awaitedReports{}
	}
	asked, at := n.asked[r.key], r.Clock.Now()
	// A clock that was set back begins the time again.
	if asked == nil || !asked.covers(now) || at.Before(asked.since) || at.Sub(asked.since) > reportsLife && asked.unresponsive(now) == nil {
		asked = &awaitedReports{since: at, before: now}
		n.asked[r.key] = asked
	}
	unresponsive := asked.unresponsive(now)
	switch {
	case len(unresponsive) == 0:
		delete(n.asked, r.key)
		return nil
	case at.Sub(asked.since) < nodeReports:
		return errAwaitingReports
	default:
		return fmt.Errorf("%w: %v, and members on them may serve on the other side of a partition", errNodesUnresponsive, unresponsive)
	}
}

// covers is true if the reports of the same nodes, or of more, are awaited.
func (a *awaitedReports) covers(now map[string]string) bool {
	for name := range now {
		if _, found := a.before[name]; !found {
			return false
		}
	}
	return true
}

// unresponsive lists the nodes that have not reported since.
func (a *awaitedReports) unresponsive(now map[string]string) []string {
	var names []string
	for name, version := range now {
		if version == a.before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (n *nodeReporting) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.asked, key)
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
	if !resources.Owns(r.seen.Cluster, pod) || !r.seen.isPrepared(pod) {
		return false, nil
	}
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read PVC %s: %w", name, err)
	}
	return r.seen.isPrepared(pvc), nil
}
