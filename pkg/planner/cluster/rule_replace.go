// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/diagnosis"

// ruleReplace removes a voter that has lost its pod and its data, once the pod of its
// successor waits. Rule scale-up then adds the successor. The pod of a voter with a PVC is
// created again by rule recreate-pods. It keeps its vote, and a lost voter is replaced beside it: the quorum
// counts without both. If there are more voters than the desired size, rule
// scale-down removes the lost one.
//
// A voter that is away for too long, or whose replacement a user requested, keeps its vote
// until its successor votes: it may come back with data that another loss makes precious.
// Rules scale-up and scale-down see to that. Two kinds of voters go first, because nothing
// could join beside them: in an etcd without learners one that does not respond, and one that
// findBlockingMember returns.
func ruleReplace(o *Observed) (Plan, bool) {
	if len(listVoters(o.Etcd.Members)) > desiredSize(o.Cluster) {
		return Plan{}, false
	}
	var returning *Plan
	for _, m := range listVoters(o.Etcd.Members) {
		pod := podByName(o.Pods, m.Name)
		away, reason := mustBeReplaced(o.Cluster, o.Now, o.Pods, m), RemoveAway
		if !away && m.Health != Healthy && !isGone(pod) && isReplacementRequested(o.Cluster, m) {
			away, reason = true, RemoveReplaced
		}
		switch {
		case away && upgradePathOf(o).knowsLearners() && findBlockingMember(o.Etcd.Members) != m:
			continue
		case away && nextPrepared(o) != nil:
			return removeVoter(o, m, reason), true
		case away:
			return awaitPrepared(o), true
		case !isGone(pod):
			continue
		}
		if pvcByName(o.PVCs, m.Name) != nil {
			if plan, leads := handOver(o.Etcd.Members, o.Pods, m); leads {
				return plan, true
			}
			if returning == nil {
				returning = awaitReturn(m)
			}
			continue
		}
		if nextPrepared(o) == nil {
			return awaitPrepared(o), true
		}
		if plan := removeVoter(o, m, RemoveLost); returning == nil || !isAtRisk(plan) {
			return plan, true
		}
	}
	if returning == nil || mayJoinBeside(o) {
		return Plan{}, false
	}
	return *returning, true
}

// mayJoinBeside is true below the desired size: a lost voter was removed meanwhile, and its successor joins beside the
// voter that comes back. Nothing joins without a quorum of others.
func mayJoinBeside(o *Observed) bool {
	voters := len(listVoters(o.Etcd.Members))
	return voters < desiredSize(o.Cluster) && upgradePathOf(o).knowsLearners() && quorumOf(o).countServing() >= diagnosis.Quorum(voters)
}

// awaitReturn waits for a voter whose pod goes and comes back. Its node may never report the end of that pod.
func awaitReturn(m *Member) *Plan {
	plan := wait(recheckWaiting, ReasonWaitingForPod,
		"pod "+m.Name+" is being deleted and is created again with its PVC",
		noActionNeeded+" "+diagnosis.ConfirmNodeOff)
	return &plan
}
