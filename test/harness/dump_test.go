// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"testing"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	events := "2026-11-28T12:00:01Z   Pod   a-0   Created   Container was created\n2026-11-28T12:00:05Z   EtcdCluster   a   MemberAdded   a-1\n"
	said := "[pod/controller-x/controller] 2026-11-28T12:00:03.5Z I1128 added cluster=\"ns-1/a\"\n" +
		"[pod/controller-x/controller] 2026-11-28T12:00:04Z I1128 added cluster=\"other/a\"\nno prefix ns-1\n"
	want := []string{
		"2026-11-28T12:00:01Z   Pod   a-0   Created   Container was created",
		"2026-11-28T12:00:03.5Z I1128 added cluster=\"ns-1/a\"",
		"2026-11-28T12:00:05Z   EtcdCluster   a   MemberAdded   a-1",
	}
	if got := timeline("ns-1", events, said); !slices.Equal(got, want) {
		t.Errorf("timeline %q, want %q", got, want)
	}
}
