// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleUnmanagedMembers(t *testing.T) {
	checkDecisions(t, []decision{
		{"an unmanaged member", 3, "a b c d:unmanaged", nil, "unmanaged-members: wait UnmanagedMember"},
		{"stops repairs too", 3, "a:nopod b c d:unmanaged", nil, "unmanaged-members: FindMember a, wait UnmanagedMember"},
	})
}
