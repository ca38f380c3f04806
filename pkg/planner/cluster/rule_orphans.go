// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// ruleOrphans deletes the pods and PVCs of members that are no longer in etcd's list. The
// list was read after the pods were, so a pod that is not in it belongs to a removed member.
// It also deletes what recoveries have left behind.
func ruleOrphans(o *Observed) (Plan, bool) {
	var actions []Action
	for i := range o.Pods {
		if p := &o.Pods[i]; awaitsAddition(o, p) {
			return wait(recheckCatchUp, ReasonWaitingForMember,
				"pod "+p.Name+" was admitted as the second member, and etcd may still be adding that member", noActionNeeded), true
		}
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Owned && !p.Terminating && !mayBeMember(o, p.Name) {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if c.Owned && !c.Terminating && !mayBeMember(o, c.Name) {
			actions = append(actions, dropPVC(o, c))
		}
	}
	for _, name := range abandonedRecoveryMembers(o) {
		actions = append(actions, DeleteRecoveryMember{Name: name})
	}
	if len(actions) > 0 && len(listVoters(o.Etcd.Members)) == 1 && writesRejected(o) == nil {
		// The only voter has the removal of the last other one on its disk for certain after one more write. The
		// controller may have ended, or etcd may have removed the member without a response, before that write.
		actions = append([]Action{VerifyWrite{Of: WriteToCluster}}, actions...)
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}

// mayBeMember is true if a member in etcd's list has this name, or may be the member of this pod or PVC under
// another peer URL. The controller takes a member whose peer URL is not its own for unmanaged, but
// etcdctl member update changes that URL while the member runs on.
func mayBeMember(o *Observed, name string) bool {
	return slices.ContainsFunc(o.Etcd.Members, func(m Member) bool {
		return m.Name == name || m.Unmanaged && isOwnUnderAnotherURL(o, &m, name)
	})
}

// isOwnUnderAnotherURL is true for an unmanaged member that calls itself as a pod, or that the last status
// calls so.
func isOwnUnderAnotherURL(o *Observed, m *Member, name string) bool {
	s := reportedMember(o.Cluster.Status.MemberStatuses, m)
	return m.OwnName == name || s != nil && s.Name == name
}

// abandonedRecoveryMembers returns the names of hidden recovery members although no recovery is
// under way. A recovery deletes a recovery member that it abandons, and another controller may
// create its pod or its PVC again a moment later, because it read the record before that. No
// client has reached such a member, and the quorum that serves has the data of the cluster.
func abandonedRecoveryMembers(o *Observed) []string {
	if recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).IsInProgress() {
		return nil
	}
	var list []string
	for i := range o.Witnesses.RecoveryMembers {
		w := &o.Witnesses.RecoveryMembers[i]
		if name := w.Recovery.RecoveryMember; w.Hidden && memberByName(o.Etcd.Members, name) == nil {
			list = append(list, name)
		}
	}
	return list
}

// awaitsAddition is true for the pod of the second voter of an etcd without learners, which is admitted
// before its member is added. The controller may have stopped waiting for the response, or ended, and etcd
// may carry it out all the same a moment later. Without the pod, the new voter would end the quorum for
// ever. So the pod stays until etcd in it has ended often enough, which takes half a minute.
func awaitsAddition(o *Observed, p *Pod) bool {
	const ends = 3
	if !p.Owned || isGone(p) || len(o.Etcd.Members) != 1 || memberByName(o.Etcd.Members, p.Name) != nil || upgradePathOf(o).knowsLearners() {
		return false
	}
	return p.MayFill && len(p.Peers) == 2 && slices.Contains(p.Peers, o.Etcd.Members[0].Name) &&
		p.RestartCount < ends && o.Now.Sub(p.Made) < preparedPatience
}
