// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// MemberLossTimeout is how long a member may be away before another member replaces it.
func MemberLossTimeout(c *v1beta2.EtcdCluster) time.Duration {
	if r := c.Spec.Recovery; r != nil && r.MemberLossTimeoutSeconds != nil {
		return time.Duration(*r.MemberLossTimeoutSeconds) * time.Second
	}
	return v1beta2.DefaultMemberLossTimeoutSeconds * time.Second
}

// replacesAway is true if the spec lets the controller replace members that are away.
func (o *Observed) replacesAway() bool {
	r := o.Cluster.Spec.Recovery
	return r == nil || r.MemberLoss != v1beta2.RecoveryManual
}

// overdue is true for a pod that has been away for longer than a member may be.
func (o *Observed) overdue(p *Pod) bool {
	return p != nil && !p.AwaySince.IsZero() && o.Now.Sub(p.AwaySince) >= MemberLossTimeout(o.Cluster)
}

// mustBeReplaced is true for a member that does not respond and whose pod has been away for
// too long. It needs no proof that the member has ended: etcd removes a member by a decision
// of the quorum, and what a removed member still does counts for nothing. Its clients behind
// a partition cannot write: a member acknowledges nothing without the quorum.
func (o *Observed) mustBeReplaced(m *Member) bool {
	return m.Health != Healthy && o.replacesAway() && o.overdue(o.pod(m.Name))
}

// describeAway says of members why they are away, and what follows.
func (o *Observed) describeAway(members []*Member) string {
	text := ""
	for _, m := range members {
		p := o.pod(m.Name)
		switch {
		case !o.overdue(p):
		case o.replacesAway():
			text += "; member " + m.Name + " is replaced: " + p.AwayWhy
		default:
			text += "; member " + m.Name + " is not replaced, because spec.recovery.memberLoss is Manual: " + p.AwayWhy
		}
	}
	return text
}
