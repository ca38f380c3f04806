// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// observeAway finds out which pods of members that do not respond are away, and since when.
// Without a quorum nothing follows from that, so nothing is read then.
func observeAway(ctx context.Context, r *run, pods []*corev1.Pod) {
	if !r.seen.Etcd.Linearizable {
		return
	}
	for _, p := range pods {
		for _, list := range [][]planner.Pod{r.seen.Pods, r.seen.Prepared} {
			i := slices.IndexFunc(list, func(o planner.Pod) bool { return o.UID == string(p.UID) && o.Owned })
			if i < 0 || r.seen.isHealthy(p.Name) {
				continue
			}
			list[i].AwaySince, list[i].AwayWhy = away(ctx, r, p)
		}
	}
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		if p := r.seen.podOf(m.Name); p != nil && m.Health != planner.Healthy && p.AwayWhy != "" {
			m.Message += ": " + p.AwayWhy
		}
	}
}

func (s *seen) isHealthy(name string) bool {
	return slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.Name == name && m.Health == planner.Healthy })
}

// responds is true for a member that responded when it was probed.
func (s *seen) responds(name string) bool {
	return slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.Name == name && planner.Responds(&m) })
}

// away returns since when and why a pod cannot come back by itself; zero if it can, or
// if that is not known. The node is read only after the pod was not ready for as long as a
// member may be away, so a cluster at rest costs no request. The times are those of
// Kubernetes: nothing is remembered here.
func away(ctx context.Context, r *run, p *corev1.Pod) (time.Time, string) {
	if p.DeletionTimestamp != nil {
		by := p.DeletionTimestamp.Time // with the grace period
		if r.seen.Now.Before(by) {
			return time.Time{}, ""
		}
		return by, "its pod should have ended by " + timestamp(by)
	}
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.LastTransitionTime.Time, "no node could take its pod since " + timestamp(c.LastTransitionTime.Time)
	}
	c := condition(p, corev1.PodReady)
	if c == nil || c.Status == corev1.ConditionTrue || p.Spec.NodeName == "" {
		return time.Time{}, ""
	}
	since := c.LastTransitionTime.Time
	if since.After(r.seen.Now) {
		since = time.Time{} // the clock of the node is ahead; Kubernetes says since when the node is away
	}
	if r.seen.Now.Sub(since) < r.seen.Cluster.Spec.MemberLossTimeout() {
		return time.Time{}, ""
	}
	node, err := r.Objects.GetNode(ctx, p.Spec.NodeName)
	switch {
	case isNotFound(err):
		return since, fmt.Sprintf("its node %s does not exist", p.Spec.NodeName)
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot read the node of a member that does not respond, so the member is not replaced", "pod", p.Name, "node", p.Spec.NodeName)
		return time.Time{}, ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
			continue
		}
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
		return since, fmt.Sprintf("its node %s is not ready since %s", node.Name, timestamp(c.LastTransitionTime.Time))
	}
	return time.Time{}, ""
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}
