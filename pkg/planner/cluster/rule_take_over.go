// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// beginWithExisting begins a cluster whose members join a running etcd. The record gets the ID of
// that etcd before anything is added to it. From then on the cluster is one that has served: no
// bootstrap member is ever created, and members are added as in any other cluster.
func beginWithExisting(o *Observed) Plan {
	if desiredSize(o.Cluster) == 0 {
		return hibernateUnstarted(o)
	}
	if why := whyOthers(o); why != nil {
		return Plan{Wait: why, RequeueAfter: recheckWaiting}
	}
	if o.Etcd.NoPlace != "" {
		return wait(recheckWaiting, ReasonTooManyTakeOvers, o.Etcd.NoPlace,
			"End a take-over of this namespace: remove its old members, or delete an EtcdCluster whose spec.bootstrap.existing does not respond. If other namespaces have all places, ask an administrator.")
	}
	if o.Etcd.ListTooLarge && !o.Etcd.Linearizable {
		return wait(recheckWaiting, ReasonMemberListTooLarge,
			"the etcd in spec.bootstrap.existing responds with a member list that the controller does not use: "+o.Etcd.Err, diagnosis.ShrinkList)
	}
	if !o.Etcd.Linearizable {
		return wait(recheckWaiting, ReasonExistingEtcdUnreachable,
			"the etcd in spec.bootstrap.existing could not be read through a quorum: "+o.Etcd.Err,
			"Bring it back, or correct clientEndpoints and tlsSecret. Nothing was changed in it. If it no longer exists, remove spec.bootstrap: this cluster then begins empty.")
	}
	if why := whyUnfit(o); why != nil {
		return Plan{Wait: why, RequeueAfter: recheckWaiting}
	}
	return Plan{Actions: []Action{RecordBootstrap{ClusterID: o.Etcd.ClusterID}}, RequeueAfter: recheckWaiting}
}

// ruleTakeOver decides while a cluster has old members of the etcd that it takes over. Members of
// the cluster join beside them. Nothing else changes the membership: no member that serves is
// replaced, restarted or upgraded, and the cluster does not shrink. Only a member of the cluster
// that does not serve and cannot come back is replaced: old members are never removed beside it.
func ruleTakeOver(o *Observed) (Plan, bool) {
	if !takesOver(o.Cluster) || len(listUnmanaged(o.Etcd.Members)) == 0 {
		return Plan{}, false
	}
	if !isReportedServed(o.Cluster.Status.Phase) {
		return Plan{RequeueAfter: recheckWaiting}, true // until the status says so, the API server lets spec.bootstrap.existing be removed
	}
	if why := whyOthers(o); why != nil {
		return Plan{Wait: why, RequeueAfter: recheckWaiting}, true
	}
	if plan, decides := repairBesideOthers(o); decides {
		return plan, true
	}
	own, size := listOwnVoters(o.Etcd.Members), desiredSize(o.Cluster)
	if m := replacedBesideOld(o, own); m != nil && len(own) > size {
		return removeReplacedBesideOld(o, m), true
	}
	if len(own) < size+surge(o) {
		if why := whyUnfit(o); why != nil {
			return Plan{Wait: why, RequeueAfter: recheckWaiting}, true
		}
		if m := findBlockingMember(o.Etcd.Members); m != nil && isReplaced(o, m) && nextPrepared(o) != nil {
			return removeReplacedBesideOld(o, m), true // its successor could not join beside it, as in ruleReplace
		}
		return ruleScaleUp(o)
	}
	if removesOldMembers(o.Cluster) {
		return removeOldMembers(o), true
	}
	return wait(recheckSteady, ReasonOldMembersKept,
		fmt.Sprintf("%d members of this cluster vote beside the old members %s", len(own), unmanagedNames(o)),
		"Connect all applications to this cluster, then set spec.bootstrap.existing.oldMembers=Remove."), true
}

// replacedBesideOld returns a voter of the cluster that does not serve and that another member
// replaces, or nil.
func replacedBesideOld(o *Observed, own []*Member) *Member {
	for _, m := range own {
		if isReplaced(o, m) {
			return m
		}
	}
	return nil
}

// removeReplacedBesideOld removes a voter that does not serve: after its successor votes, or before, if the successor could
// not join beside it.
func removeReplacedBesideOld(o *Observed, m *Member) Plan {
	switch {
	case findLeader(o.Etcd.Members) == m:
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+m.Name+" leads and does not respond, so it cannot transfer its leadership before it is replaced", noActionNeeded)
	case mustBeReplaced(o.Cluster, o.Now, o.Pods, m):
		return removeVoter(o, m, RemoveAway)
	default:
		return removeVoter(o, m, RemoveReplaced)
	}
}

// removeOldMembers moves the leadership to a member of the cluster, and removes one old member.
// Every member of the cluster must serve, as those alone are the quorum at the end.
func removeOldMembers(o *Observed) Plan {
	q := quorumOf(o)
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if !q.stateOf(m).IsServing() {
			return wait(recheckQuorum, ReasonQuorumAtRisk,
				"member "+m.Name+" does not serve, and old members are removed only while all members of this cluster serve", serveAgain)
		}
	}
	leader := findLeader(o.Etcd.Members)
	if leader == nil {
		return wait(recheckQuorum, ReasonNoLeader,
			"the members do not agree on a leader, and the leader must not be removed", noActionNeeded)
	}
	if leader.Unmanaged {
		return takeLeadership(o, leader)
	}
	return removeVoter(o, oldMemberToRemove(o), RemoveOld)
}

// takeLeadership moves the leadership from an old member to a member of the cluster.
func takeLeadership(o *Observed, leader *Member) Plan {
	to := findSuccessor(o.Etcd.Members, o.Pods, leader)
	switch {
	case to == nil:
		return wait(recheckQuorum, ReasonNoLeader, "no member of this cluster can take the leadership from old member "+leader.Name, serveAgain)
	case leader.Health != Healthy:
		return wait(recheckQuorum, ReasonNoLeader,
			"old member "+leader.Name+" leads and does not respond to the controller: "+leader.Message,
			fmt.Sprintf("Move the leadership to %s with etcdctl move-leader %s at that member.", to.Name, hexID(to.ID)))
	default:
		return moveLeader(leader, to)
	}
}

// oldMemberToRemove returns the old member that goes first: one that does not serve if there is
// one.
func oldMemberToRemove(o *Observed) *Member {
	q := quorumOf(o)
	old := listUnmanaged(o.Etcd.Members)
	for _, m := range old {
		if !q.stateOf(m).IsServing() {
			return m
		}
	}
	return old[0]
}

// unmanagedNames lists the old members for a message.
func unmanagedNames(o *Observed) string {
	var list []string
	for _, m := range listUnmanaged(o.Etcd.Members) {
		list = append(list, m.Name)
	}
	return strings.Join(list, ", ")
}
