// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleScaleDown removes one voter: one that does not serve if there is one, the leader only if
// no other can be removed, the youngest otherwise. If there is one voter too many because one
// is replaced, it removes the replaced one.
func ruleScaleDown(o *Observed) (Plan, bool) {
	surplus := len(o.voters()) - o.size()
	if surplus <= 0 {
		return Plan{}, false
	}
	candidate := o.removalCandidate(surplus <= o.surge())
	if candidate.Health == Healthy && o.leader() == nil {
		return wait(recheckQuorum, ReasonNoLeader,
			"the members do not agree on a leader, and the leader must not be removed", noActionNeeded), true
	}
	for _, m := range o.restarting() {
		if m != candidate {
			return wait(recheckWaiting, ReasonWaitingForMember,
				"member "+m.Name+" restarts with another version, and no other member is removed meanwhile", noActionNeeded), true
		}
	}
	if p := o.pod(candidate.Name); p.gone() && p != nil && o.stale(p) && o.pvc(candidate.Name) == nil {
		return removeVoter(o, candidate, RemoveReplaced), true // its pod was sent away before
	}
	if o.due(candidate) != replace {
		return removeVoter(o, candidate, RemoveScaleDown), true
	}
	if other := o.notReady(candidate); other != nil && candidate.Health == Healthy {
		return waitReady(other), true
	}
	if candidate.Health != Healthy && o.leader() == candidate {
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+candidate.Name+" leads and does not respond, so it cannot transfer its leadership before it is replaced", noActionNeeded), true
	}
	if o.mustBeReplaced(candidate) {
		return removeVoter(o, candidate, RemoveAway), true
	}
	return removeVoter(o, candidate, RemoveReplaced), true
}
