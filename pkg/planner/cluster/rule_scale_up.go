// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ruleScaleUp adds one member: one more, or one to replace another. It adds none before
// the pod of that member waits for it.
func ruleScaleUp(o *Observed) (Plan, bool) {
	voters := len(o.voters())
	if voters >= o.size()+o.surge() {
		return Plan{}, false
	}
	if o.joining() == nil {
		return o.awaitPrepared(), true
	}
	voter := !o.knowsLearners()
	if healthy := o.healthyVoters(); healthy < quorum(voters) || (voter && healthy-len(o.restarting()) < voters) {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("%d of %d voters serve; a member is added only to a healthy cluster", healthy, voters),
			"the members that do not serve must come back"), true
	}
	return Plan{Actions: o.join(voter), RequeueAfter: recheckWaiting}, true
}

// join adds the member of a prepared pod to etcd and admits the pod. Only where the new
// voter is needed for the quorum the pod is admitted first: if the controller stopped in
// between, nothing but the member itself could bring the quorum back.
func (o *Observed) join(voter bool) []Action {
	p := o.joining()
	add := AddMember{Name: p.Name, UID: p.UID, Voter: voter, Replaces: len(o.voters()) >= o.size()}
	admit := AdmitPod{Name: p.Name, UID: p.UID, Peers: append(o.peerNames(), p.Name)}
	if voter && len(o.voters()) == 1 {
		add.Admitted = true
		return []Action{admit, add}
	}
	return []Action{add, admit}
}
