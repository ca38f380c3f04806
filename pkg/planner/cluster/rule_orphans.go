// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "slices"

// ruleOrphans deletes the pods and PVCs of members that are no longer in etcd's list. The
// list was read after the pods were, so a pod that is not in it belongs to a removed member.
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
		if p.Owned && !p.Terminating && memberByName(o.Etcd.Members, p.Name) == nil {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if c.Owned && !c.Terminating && memberByName(o.Etcd.Members, c.Name) == nil {
			actions = append(actions, dropPVC(o.Cluster, c))
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
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
