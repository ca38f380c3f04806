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
func mustLeaveNode(cluster *v1beta2.EtcdCluster, pods []Pod, m *Member) bool {
	p, size := podByName(pods, m.Name), desiredSize(cluster)
	return p != nil && p.Cordoned && !m.Learner && m.Started &&
		size > 0 && size <= undisruptedSize && !cluster.Spec.Paused &&
		cluster.Spec.PodDisruptionBudget != v1beta2.PodDisruptionBudgetDisabled
}

// replacesOnCordonedNode is true for a voter that must leave its node once its successor has
// found a node. Before that the voter stays as it is, so that no other rule waits for a node
// that may never exist.
func replacesOnCordonedNode(o *Observed, m *Member) bool {
	return mustLeaveNode(o.Cluster, o.Pods, m) && (len(listVoters(o.Etcd.Members)) > desiredSize(o.Cluster) || findJoiningMember(o.Etcd.Members) != nil || nextPrepared(o) != nil)
}

// isHeldOnNode is true for a voter that serves on a cordoned node and whose change needs a new pod, as long as its successor
// has found no node. The new pod may find none either, and with the old one the cluster would stop. An image that
// changes in place stops nothing.
func isHeldOnNode(o *Observed, m *Member, due change) bool {
	pod := podByName(o.Pods, m.Name)
	newPod := due == recreate || due == reimage && pod != nil && makesNewPod(o, pod)
	return newPod && m.Health == Healthy && mustLeaveNode(o.Cluster, o.Pods, m) && !replacesOnCordonedNode(o, m)
}

// findHeldOnNode returns a voter that is not as declared and keeps its pod because of its node, or nil.
func findHeldOnNode(o *Observed) *Member {
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if isHeldOnNode(o, m, changeDue(o, m)) {
			return m
		}
	}
	return nil
}

// listOnCordonedNodes returns the voters whose successor needs a pod, in the order of the member list.
func listOnCordonedNodes(cluster *v1beta2.EtcdCluster, members []Member, pods []Pod) []*Member {
	var list []*Member
	for _, m := range listVoters(members) {
		if mustLeaveNode(cluster, pods, m) && !isGone(podByName(pods, m.Name)) {
			list = append(list, m)
		}
	}
	return list
}

// room is how many pods of members there may be above the desired size. It is one for the successor
// of a voter that must be replaced or that is on a cordoned node. A voter that is lost needs no room:
// it is missing already.
func room(o *Observed) int {
	replaced := func(m *Member) bool { return isReplaced(o, m) && !isLost(o, m) }
	if len(listOnCordonedNodes(o.Cluster, o.Etcd.Members, o.Pods)) > 0 && len(listUnmanaged(o.Etcd.Members)) == 0 || slices.ContainsFunc(listVoters(o.Etcd.Members), replaced) {
		return 1
	}
	return 0
}

// leaveNodeRemedy says what a user can do about a member whose successor finds no node.
func leaveNodeRemedy(cluster *v1beta2.EtcdCluster, pods []Pod, pvcs []PVC, m *Member) string {
	remedy := "Uncordon node " + podByName(pods, m.Name).Node + ", or add a node that can take the pod. "
	if pvcByName(pvcs, m.Name) != nil {
		return remedy + "Or delete pod " + m.Name + " and accept that the cluster does not serve until a node takes the pod with its volume."
	}
	if desiredSize(cluster) == 1 {
		return remedy + "Do not delete pod " + m.Name + ": the only copy of the data is in it. Make a backup first."
	}
	return remedy + "Do not delete pod " + m.Name + ": its data goes with it, and the quorum needs both members."
}
