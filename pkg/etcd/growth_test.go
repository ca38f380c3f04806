// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "testing"

func TestGrowthLimit(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		size, inUse, quota, want int64
	}{
		"a small database may grow by the room":    {size: 10 * mib, inUse: 10 * mib, want: (15 + 64) * mib},
		"a large one by half":                      {size: 1000 * mib, inUse: 1000 * mib, want: (1500 + 64) * mib},
		"free space is used first":                 {size: 1000 * mib, inUse: 400 * mib, want: 1000 * mib},
		"attempts that failed do not add up":       {size: 1564 * mib, inUse: 1000 * mib, want: 1564 * mib},
		"half of what the quota leaves":            {size: 1800 * mib, inUse: 1800 * mib, quota: 2000 * mib, want: 1900 * mib},
		"a quota that is far away is no bound":     {size: 100 * mib, inUse: 100 * mib, quota: 8000 * mib, want: (150 + 64) * mib},
		"over its quota it may not grow":           {size: 2100 * mib, inUse: 2100 * mib, quota: 2000 * mib, want: 2100 * mib},
		"a member that does not tell what is used": {size: 100 * mib, want: (150 + 64) * mib},
	} {
		t.Run(name, func(t *testing.T) {
			h := &MemberHealth{DBSize: test.size, DBSizeInUse: test.inUse, Quota: test.quota}
			if got := growthLimit(h); got != test.want {
				t.Errorf("got %d MiB, want %d MiB", got/mib, test.want/mib)
			}
		})
	}
}
