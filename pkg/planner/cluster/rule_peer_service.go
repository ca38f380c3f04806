// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// rulePeerService creates the headless Service, which gives members their DNS names, before
// any member.
func rulePeerService(o *Observed) (Plan, bool) {
	if o.PeerService != Missing {
		return Plan{}, false
	}
	return Plan{Actions: []Action{CreatePeerService{}}, RequeueAfter: recheckWaiting}, true
}
