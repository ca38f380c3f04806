// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ruleScaleUp adds one member: one more, or one to replace another.
func ruleScaleUp(o *Observed) (Plan, bool) {
	voters := len(o.voters())
	if voters >= o.size()+o.surge() {
		return Plan{}, false
	}
	voter := !o.knowsLearners()
	if healthy := o.healthyVoters(); healthy < quorum(voters) || (voter && healthy-len(o.restarting()) < voters) {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("%d of %d voters serve; a member is added only to a healthy cluster", healthy, voters),
			"the members that do not serve must come back"), true
	}
	return Plan{Actions: o.join(voter), RequeueAfter: recheckWaiting}, true
}

// join adds a member and makes what it runs on. Whoever sees the pod sees the member
// in etcd's list, so that a pod which is not there is an orphan. Only where the new
// voter is needed for the quorum the pod comes first: if the controller stopped in
// between, nothing but the member itself could bring the quorum back.
func (o *Observed) join(voter bool) []Action {
	add := AddMember{Name: o.NewName, Voter: voter, Replaces: len(o.voters()) >= o.size()}
	var actions []Action
	if o.persistent() {
		actions = append(actions, CreateClaim{Name: o.NewName, Version: o.joinVersion()})
	}
	actions = append(actions, CreatePod{
		Name: o.NewName, Learner: !voter, Peers: append(o.peerNames(), o.NewName), Version: o.joinVersion(),
	})
	if voter && len(o.voters()) == 1 {
		return append(actions, add)
	}
	return append([]Action{add}, actions...)
}
