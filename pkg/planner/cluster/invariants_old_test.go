// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// checkOld: beside members of an etcd that is taken over, members of the cluster join and nothing
// else of the membership changes. Old members are removed on request only, while a member of the
// cluster leads and all of them serve.
func checkOld(f *facts, p Plan) string {
	if f.Cluster.Spec.Bootstrap == nil || !slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Unmanaged }) {
		return ""
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case CreateBootstrapPod:
			return "starts another etcd"
		case UpgradePod, RecreatePod:
			if disturbs(a) {
				return fmt.Sprintf("%T beside old members", a)
			}
		case MoveLeader:
			if m := f.memberByID(a.To); m == nil || m.Unmanaged {
				return "moves the leadership to an old member"
			}
		case RemoveMember:
			if wrong := f.checkRemoveBesideOld(a); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func (f *facts) checkRemoveBesideOld(a RemoveMember) string {
	m := f.memberByID(a.ID)
	switch {
	case m == nil:
		return "removes a member that is not in the list"
	case !m.Unmanaged && !m.Learner && f.serves(m):
		return "removes a member of the cluster that serves beside old members"
	case !m.Unmanaged:
		return ""
	case f.Cluster.Spec.Bootstrap.Existing.OldMembers != v1beta2.OldMembersRemove:
		return "removes an old member whose removal is not requested"
	case f.ledBy() == a.ID:
		return "removes an old member that leads"
	case f.own < int(*f.Cluster.Spec.Replicas):
		return "removes an old member before all members of the cluster vote"
	}
	for i := range f.Etcd.Members {
		if own := &f.Etcd.Members[i]; !own.Unmanaged && !own.Learner && !f.serves(own) {
			return "removes an old member while member " + own.Name + " does not serve"
		}
	}
	return ""
}
