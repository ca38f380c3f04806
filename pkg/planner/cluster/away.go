// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// isOverdue is true for a pod that has been away for longer than a member may be.
func isOverdue(cluster *v1beta2.EtcdCluster, now time.Time, p *Pod) bool {
	return p != nil && !p.AwaySince.IsZero() && now.Sub(p.AwaySince) >= cluster.Spec.MemberLossTimeout()
}

// mustBeReplaced is true for a member that does not respond and whose pod has been away for
// too long. It needs no proof that the member has ended: etcd removes a member by a decision
// of the quorum, and what a removed member still does counts for nothing. Its clients behind
// a partition cannot write: a member acknowledges nothing without the quorum.
func mustBeReplaced(cluster *v1beta2.EtcdCluster, now time.Time, pods []Pod, m *Member) bool {
	return m.Health != Healthy && replacesLostMembers(cluster) && isOverdue(cluster, now, podByName(pods, m.Name))
}

// describeAway says of members why they are away, and what follows.
func describeAway(cluster *v1beta2.EtcdCluster, now time.Time, pods []Pod, members []*Member) string {
	text := ""
	for _, m := range members {
		p := podByName(pods, m.Name)
		switch {
		case !isOverdue(cluster, now, p):
		case replacesLostMembers(cluster):
			text += "; member " + m.Name + " is replaced: " + p.AwayWhy
		default:
			text += "; member " + m.Name + " is not replaced, because spec.recovery.memberLoss is Manual: " + p.AwayWhy
		}
	}
	return text
}
