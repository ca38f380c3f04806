// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ruleUnmanagedMembers changes nothing in a cluster that has a member which this controller
// did not add: its place in the quorum is not known.
func ruleUnmanagedMembers(o *Observed) (Plan, bool) {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Unmanaged {
			return wait(recheckWaiting, ReasonUnmanagedMember,
				fmt.Sprintf("member %s (%s) was not added by this controller", hexID(m.ID), m.Name),
				"Remove that member with etcdctl member remove "+hexID(m.ID)+"."), true
		}
	}
	return Plan{}, false
}
