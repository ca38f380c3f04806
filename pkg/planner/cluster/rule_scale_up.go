// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// ruleScaleUp adds one member: one more, or one to replace another. It adds none before
// the pod of that member waits for it.
func ruleScaleUp(o *Observed) (Plan, bool) {
	if len(listOwnVoters(o.Etcd.Members)) >= desiredSize(o.Cluster)+addable(o) {
		return Plan{}, false
	}
	if isSplit(o) && !slices.ContainsFunc(listVoters(o.Etcd.Members), func(m *Member) bool { return !awaitsVersion(o, m) }) {
		return Plan{}, false
	}
	voters := len(listVoters(o.Etcd.Members))
	if nextPrepared(o) == nil {
		return awaitPrepared(o), true
	}
	voter := !upgradePathOf(o).knowsLearners()
	if healthy := quorumOf(o).countServing(); healthy < diagnosis.Quorum(voters) || (voter && healthy-len(listRestarting(o)) < voters) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("%d of %d voters serve; a member is added only to a healthy cluster", healthy, voters),
			serveAgain), true
	}
	if voter && o.Etcd.VersionUndecided {
		return wait(recheckCatchUp, ReasonClusterVersionUndecided,
			"etcd before 3.4 has not decided its cluster version; a member that joins before that never starts",
			"No action needed unless this persists. etcd decides it some seconds after the bootstrap member serves."), true
	}
	if o.Etcd.ClusterVersion == "" && NeedsClusterVersion(o) {
		return wait(recheckCatchUp, ReasonClusterVersionUndecided,
			"no voter says the cluster version, which decides the version of a new member",
			noActionNeeded), true
	}
	if m := findBlockingMember(o.Etcd.Members); m != nil {
		return wait(recheckQuorum, ReasonWaitingForMember,
			"member "+m.Name+" responds and does not serve; with the member list that it returns no other member would start",
			"Bring back member "+m.Name+", or have another member replace it with POST .../replace."), true
	}
	return Plan{Actions: join(o, voter), RequeueAfter: recheckWaiting}, true
}

// join adds the member of a prepared pod to etcd and admits the pod. Only where the new
// voter is needed for the quorum the pod is admitted first: if the controller stopped in
// between, nothing but the member itself could bring the quorum back.
func join(o *Observed, voter bool) []Action {
	p := nextPrepared(o)
	add := AddMember{Name: p.Name, UID: p.UID, As: JoinAsLearner, For: AddMissing}
	if voter {
		add.As = JoinAsVoter
	}
	if len(listOwnVoters(o.Etcd.Members)) >= desiredSize(o.Cluster) {
		add.For = AddSuccessor
	}
	admitted := admit(p, append(listPeerNames(o.Etcd.Members, o.PVCs), p.Name))
	if voter && len(listVoters(o.Etcd.Members)) == 1 {
		add.Admitted, admitted.SecondVoter = true, true
		return []Action{admitted, add}
	}
	return []Action{add, admitted}
}
