// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleOrphans deletes the pods and PVCs of members that are no longer in etcd's list. The
// list was read after the pods were, so a pod that is not in it belongs to a removed member.
func ruleOrphans(o *Observed) (Plan, bool) {
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Owned && !p.Terminating && o.member(p.Name) == nil {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if c.Owned && !c.Terminating && o.member(c.Name) == nil {
			actions = append(actions, o.dropPVC(c))
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}
