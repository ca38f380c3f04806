// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// rulePeerService creates the headless Service first. It records the name of the bootstrap
// member, so that two controllers cannot create two of them, and it gives members their DNS
// names.
func rulePeerService(o *Observed) (Plan, bool) {
	if o.PeerService.State != Missing {
		return Plan{}, false
	}
	action := CreatePeerService{Seed: o.NewName}
	switch remains := o.remains(); {
	case o.bootstrapped() || len(remains) > 1:
		// The Service of a running cluster was deleted: it is created again without a
		// bootstrap member.
		action = CreatePeerService{ClusterID: o.knownClusterID()}
	case len(remains) == 1:
		// It was deleted while the cluster was starting: the bootstrap member stays the only
		// one.
		action.Seed = remains[0]
	}
	return Plan{Actions: []Action{action}, RequeueAfter: recheckWaiting}, true
}
