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
