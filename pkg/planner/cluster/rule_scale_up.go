// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

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
	if healthy := o.healthyVoters(); healthy < diagnosis.Quorum(voters) || (voter && healthy-len(o.restarting()) < voters) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("%d of %d voters serve; a member is added only to a healthy cluster", healthy, voters),
			serveAgain), true
	}
	if voter && o.Etcd.VersionUndecided {
		return wait(recheckCatchUp, ReasonClusterVersionUndecided,
			"etcd before 3.4 has not decided its cluster version; a member that joins before that never starts",
			"No action needed unless this persists. etcd decides it some seconds after the bootstrap member serves."), true
	}
	if m := o.blocksJoining(); m != nil {
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+m.Name+" responds and does not serve; with the member list that it returns no other member would start",
			"Bring back member "+m.Name+", or have another member replace it with POST .../replace."), true
	}
	return Plan{Actions: o.join(voter), RequeueAfter: recheckWaiting}, true
}

// blocksJoining returns the member that keeps new ones from joining, or nil. A new member asks
// its peers for the member list in the order of their URLs. It ends if the first list that it
// gets is not its own. A member whose disk takes no writes responds for ever with the list from
// before. Source: GetClusterFromRemotePeers of etcd 3.5 and 3.6.
func (o *Observed) blocksJoining() *Member {
	var first *Member
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if m.response() == diagnosis.NoResponse || m.Unmanaged {
			continue
		}
		if first == nil || m.Name+"." < first.Name+"." { // as in the URL
			first = m
		}
	}
	if first == nil || first.Health == Healthy {
		return nil
	}
	return first
}

// join adds the member of a prepared pod to etcd and admits the pod. Only where the new
// voter is needed for the quorum the pod is admitted first: if the controller stopped in
// between, nothing but the member itself could bring the quorum back.
func (o *Observed) join(voter bool) []Action {
	p := o.joining()
	add := AddMember{Name: p.Name, UID: p.UID, As: JoinAsLearner, For: AddMissing}
	if voter {
		add.As = JoinAsVoter
	}
	if len(o.voters()) >= o.size() {
		add.For = AddSuccessor
	}
	admit := AdmitPod{Name: p.Name, UID: p.UID, Peers: append(o.peerNames(), p.Name)}
	if voter && len(o.voters()) == 1 {
		add.Admitted = true
		return []Action{admit, add}
	}
	return []Action{add, admit}
}
