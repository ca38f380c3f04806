// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/diagnosis"

// ruleScaleDown removes one voter. It prefers a voter that does not serve, then one whose pod is not
// ready, then the one with the highest member ID. It removes the leader only if no other voter can be
// removed. If there is one voter too many because a member is replaced, it removes that member after
// the new member serves.
func ruleScaleDown(o *Observed) (Plan, bool) {
	surplus := len(listVoters(o.Etcd.Members)) - desiredSize(o.Cluster)
	if surplus <= 0 {
		return Plan{}, false
	}
	candidate := removalCandidate(o, surplus <= surge(o))
	if candidate.Health == Healthy && findLeader(o.Etcd.Members) == nil {
		return wait(recheckQuorum, ReasonNoLeader,
			"the members do not agree on a leader, and the leader must not be removed", noActionNeeded), true
	}
	for _, m := range listRestarting(o) {
		if m != candidate {
			return wait(recheckWaiting, ReasonWaitingForMember,
				"member "+m.Name+" restarts with another version, and no other member is removed meanwhile", noActionNeeded), true
		}
	}
	if p := podByName(o.Pods, candidate.Name); isGone(p) && p != nil && declarationOf(o).isStale(p) && pvcByName(o.PVCs, candidate.Name) == nil {
		return removeVoter(o, candidate, RemoveReplaced), true // its pod was sent away before
	}
	other := quorumOf(o).findUnready(candidate)
	if other != nil && candidate.Health == Healthy && (changeDue(o, candidate) == replace || hasJustStarted(o, other)) {
		return awaitBesideRemoval(o, candidate, other), true
	}
	if changeDue(o, candidate) != replace {
		return removeVoter(o, candidate, RemoveScaleDown), true
	}
	if other := quorumOf(o).findStarting(o.Now, candidate); other != nil && candidate.Health == Healthy && !podByName(o.Pods, candidate.Name).Terminating {
		return awaitBesideRemoval(o, candidate, other), true
	}
	if candidate.Health != Healthy && findLeader(o.Etcd.Members) == candidate && !isLongUnresponsive(o, candidate) {
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+candidate.Name+" leads and does not respond, so it cannot transfer its leadership before it is replaced", noActionNeeded), true
	}
	if mustBeReplaced(o.Cluster, o.Now, o.Pods, candidate) {
		return removeVoter(o, candidate, RemoveAway), true
	}
	return removeVoter(o, candidate, RemoveReplaced), true
}

// awaitBesideRemoval waits for another voter before the candidate goes: until its pod is ready, or until it serves. A new
// voter needs some seconds. Otherwise the candidate serves on, and clients are sent to it; see staysOut.
func awaitBesideRemoval(o *Observed, candidate, other *Member) Plan {
	pod := podByName(o.Pods, other.Name)
	switch {
	case other.Health == Healthy && !isGone(pod) && !pod.Ready:
		return waitReady(other)
	case isStarting(o.Now, pod):
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+other.Name+" is new and does not serve yet; member "+candidate.Name+" is replaced after that", noActionNeeded)
	case other.Health == Healthy:
		return wait(recheckWaiting, ReasonWaitingForPod,
			"pod "+other.Name+" is being deleted; member "+candidate.Name+" is replaced after member "+other.Name+" serves again",
			noActionNeeded+" "+diagnosis.ConfirmNodeOff)
	default:
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			"member "+other.Name+" does not serve; member "+candidate.Name+" is replaced after member "+other.Name+" serves", serveAgain)
	}
}
