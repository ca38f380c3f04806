// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// onCordonedNode is True while a voter must leave a cordoned node, and does not exist otherwise.
// It explains a drain that waits.
func onCordonedNode(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionOnCordonedNode
	members := listOnCordonedNodes(o.Cluster, o.Etcd.Members, o.Pods)
	if len(members) == 0 {
		return v1beta2.ClusterCondition{Type: t}
	}
	m := members[0]
	pod := podByName(o.Pods, m.Name)
	message := "node " + pod.Node + " is cordoned, and the disruption budget allows no eviction of its member " + m.Name
	if replacesOnCordonedNode(o, m) {
		return is(t, corev1.ConditionTrue, ReasonReplacingMember, message+". Another member on another node replaces it.")
	}
	for i := range o.Prepared {
		p := &o.Prepared[i]
		if isGone(p) || p.Node != "" || p.Waiting == "" {
			continue
		}
		return is(t, corev1.ConditionTrue, ReasonNoOtherNode, message+". No other node takes pod "+p.Name+" of the next member: "+p.Waiting+". "+leaveNodeRemedy(o.Cluster, o.Pods, o.PVCs, m))
	}
	return is(t, corev1.ConditionTrue, ReasonReplacingMember, message+". The pod of the next member is being created on another node.")
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
