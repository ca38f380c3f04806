// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// fullFrom is the share of the quota in percent from which it should be raised.
	fullFrom = 80
	// wasteFrom is the share of the quota in percent from which unused space counts.
	wasteFrom = 50
	// largestQuota is the most that etcd's makers advise.
	largestQuota = 8 << 30
)

// spaceSteps are about the size of the database.
func (f *findings) spaceSteps() []v1beta2.NextStep {
	var list []v1beta2.NextStep
	if f.hasAlarm(etcd.AlarmCorrupt) {
		list = append(list, v1beta2.NextStep{Why: "a member's data differs from the others': save what each has before it is replaced", Command: f.get("members")})
	}
	noSpace := f.hasAlarm(etcd.AlarmNoSpace)
	full, waste := f.space()
	if full {
		list = append(list, f.quotaSteps()...)
	}
	if waste || noSpace {
		why := "release unused space, one member at a time"
		if noSpace {
			why += "; the controller disarms the alarm NOSPACE when every database is below its quota"
		}
		list = append(list, v1beta2.NextStep{Why: why, Command: f.post("defrag")})
	}
	return list
}

// quotaSteps are for a database that is mostly in use: a defragmentation releases little of it.
func (f *findings) quotaSteps() []v1beta2.NextStep {
	compact := v1beta2.NextStep{
		Why: "or delete keys, then drop the history up to now: after that, older revisions cannot be read",
		Command: fmt.Sprintf(`kubectl etcd ctl %[1]s -n %[2]s --yes -- compaction --physical "$(kubectl etcd ctl %[1]s -n %[2]s -- get x -w fields | sed -n 's/^"Revision" : //p')"`,
			f.Cluster.Name, f.Cluster.Namespace),
	}
	const used = "most of the database is in use: "
	quota, desired := f.smallestQuota(), resources.QuotaBackendBytes(f.Cluster)
	switch {
	case quota < desired:
		return []v1beta2.NextStep{{
			Why:     fmt.Sprintf("%sspec.etcd.quotaBackendBytes is %s, and a member still runs with %s: the controller restarts it", used, bytes(desired), bytes(quota)),
			Command: f.kubectl("get etcd " + f.Cluster.Name + " -o wide"),
		}}
	case quota < largestQuota:
		return []v1beta2.NextStep{{
			Why: used + "raise the quota, if the volume has room (at most 8Gi is usual)",
			Command: f.kubectl(fmt.Sprintf(`patch etcd %s --type=merge -p '{"spec":{"etcd":{"quotaBackendBytes":"%s"}}}'`,
				f.Cluster.Name, bytes(min(2*quota, largestQuota)))),
		}, compact}
	default:
		compact.Why = used + strings.TrimPrefix(compact.Why, "or ")
		return []v1beta2.NextStep{compact}
	}
}

func bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// smallestQuota returns the smallest quota with which a member runs.
func (f *findings) smallestQuota() int64 {
	var smallest int64
	for _, m := range f.members {
		if m.Quota > 0 && (smallest == 0 || m.Quota < smallest) {
			smallest = m.Quota
		}
	}
	return smallest
}

func (f *findings) hasAlarm(alarm etcd.AlarmType) bool {
	return slices.ContainsFunc(f.alarms(), func(a string) bool { return strings.Contains(a, string(alarm)) })
}

// space says whether a database is nearly full, and whether much of one is unused.
func (f *findings) space() (full, waste bool) {
	for _, m := range f.members {
		if m.Quota == 0 || m.DBSize == 0 {
			continue
		}
		inUse := m.DBSizeInUse
		if inUse == 0 {
			inUse = m.DBSize // etcd before 3.4 does not report it, and it may be all
		}
		full = full || 100*inUse >= fullFrom*m.Quota
		waste = waste || (100*m.DBSize >= wasteFrom*m.Quota && 2*inUse < m.DBSize)
	}
	return full, waste
}
