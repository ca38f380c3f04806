// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestClusterVersionDecidesWhereAMemberIsUnknown: member c was seen at 3.5.27 last. Whether it ran
// 3.6.11 afterwards decides which version a new member may have, and only the cluster version tells.
func TestClusterVersionDecidesWhereAMemberIsUnknown(t *testing.T) {
	t.Parallel()
	const (
		restarted = "a:v=3.6.11,podv=3.6.11,claim b:v=3.6.11,podv=3.6.11,claim c:claimv=3.6.11,podv=3.6.11,sick"
		unread    = "a:v=3.6.11,podv=3.6.11,claim b:v=3.6.11,podv=3.6.11,claim c:nopod"
		seen      = "a:v=3.6.11,podv=3.6.11,claim b:v=3.6.11,podv=3.6.11,claim c:claimv=3.6.11,podv=3.6.11"
	)
	for _, test := range []struct {
		name, members, desired, decided string
		needs                           bool
		want                            string
	}{
		{"it may have run the newer version", restarted, "3.6.11", "", true, "3.5.27"},
		{"the unresponsive member has run the newer version", restarted, "3.6.11", "3.6.0", false, ""},
		{"the unresponsive member has not run the newer version", restarted, "3.6.11", "3.5.0", true, "3.5.27"},
		{"the declaration was taken back", unread, "3.5.27", "", true, ""},
		{"too late", unread, "3.5.27", "3.6.0", false, "3.6.11"},
		{"in time", unread, "3.5.27", "3.5.0", true, ""},
		{"it responds", seen, "3.6.11", "", false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := observed(t, 3, test.members, wants(test.desired), seenBefore, decided(test.decided))
			if got := upgradePathOf(&o).joinVersion(); got != test.want {
				t.Errorf("a new member gets version %q, want %q", got, test.want)
			}
			if got := NeedsClusterVersion(&o); got != test.needs {
				t.Errorf("the cluster version is needed: %v, want %v", got, test.needs)
			}
		})
	}
}
