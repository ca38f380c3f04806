// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// undisruptedSize is the largest size whose disruption budget never allows an eviction. A
// larger cluster keeps a quorum without one member.
const undisruptedSize = 2

// mustLeaveNode is true for a voter on a cordoned node that no eviction can move: the budget of
// a cluster of one or two voters allows none. Another member on another node replaces it.
func (o *Observed) mustLeaveNode(m *Member) bool {
	p, size := o.pod(m.Name), o.size()
	return p != nil && p.Cordoned && !m.Learner && m.Started &&
		size > 0 && size <= undisruptedSize && !o.Cluster.Spec.Paused &&
		o.Cluster.Spec.PodDisruptionBudget != v1beta2.PodDisruptionBudgetDisabled
}

// replacesOnCordonedNode is true for a voter that must leave its node once its successor has
// found a node. Before that the voter stays as it is, so that no other rule waits for a node
// that may never exist.
func (o *Observed) replacesOnCordonedNode(m *Member) bool {
	return o.mustLeaveNode(m) && (len(o.voters()) > o.size() || o.joiningMember() != nil || o.joining() != nil)
}

// onCordonedNodes returns the voters whose successor needs a pod, in the order of the member list.
func (o *Observed) onCordonedNodes() []*Member {
	var list []*Member
	for _, m := range o.voters() {
		if o.mustLeaveNode(m) && !o.pod(m.Name).gone() {
			list = append(list, m)
		}
	}
	return list
}

// room is how many pods of members there may be above the desired size. It is one for the successor
// of a voter that must be replaced or that is on a cordoned node. A voter that is lost needs no room:
// it is missing already.
func (o *Observed) room() int {
	replaced := func(m *Member) bool { return o.due(m) == replace && !o.isLost(m) }
	if len(o.onCordonedNodes()) > 0 || slices.ContainsFunc(o.voters(), replaced) {
		return 1
	}
	return 0
}
