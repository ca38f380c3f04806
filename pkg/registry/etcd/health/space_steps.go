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
	if f.hasOthers() {
		return append(list, f.spaceStepsBesideOthers(noSpace)...)
	}
	full, waste := f.space()
	if full {
		list = append(list, f.quotaSteps()...)
	}
	if waste || noSpace {
		list = append(list, v1beta2.NextStep{Why: "release unused space, one member at a time" + disarmsAfter(noSpace), Command: f.post("defrag")})
	}
	return list
}

const (
	used = "most of the database is in use: "
	// compaction is why to compact the history.
	compaction = "delete keys, then drop the history up to now: after that, older revisions cannot be read"
)

func disarmsAfter(noSpace bool) string {
	if !noSpace {
		return ""
	}
	return "; the controller disarms the alarm NOSPACE when every database is below its quota"
}

// hasOthers is true while another program may run members of this etcd. The controller then restarts no member that serves, not
// even with a larger quota, and begins no operation.
func (f *findings) hasOthers() bool {
	return f.Cluster.MayHaveOldMembers() || f.listsUnmanaged()
}

// spaceStepsBesideOthers are what works while another program runs members, too: etcdctl at the members of this cluster. The
// condition Available says what to do at the others, because this probe sends them no requests.
func (f *findings) spaceStepsBesideOthers(noSpace bool) []v1beta2.NextStep {
	var list []v1beta2.NextStep
	if full, _ := f.space(); full {
		list = append(list, f.compactStep(used+compaction))
	}
	for _, m := range f.members {
		if full, waste := spaceOf(m); full || waste || noSpace && isNearQuota(m, m.DBSize) {
			list = append(list, v1beta2.NextStep{
				Why:     "release unused space of member " + m.Name + ", one member at a time" + disarmsAfter(noSpace),
				Command: fmt.Sprintf("kubectl etcd ctl %s -n %s --member %s -- defrag", f.Cluster.Name, f.Cluster.Namespace, m.Name),
			})
		}
	}
	if noSpace {
		list = append(list, v1beta2.NextStep{
			Why:     "the condition Available says what to do at a member that another program runs",
			Command: f.kubectl("get etcd " + f.Cluster.Name + ` -o jsonpath='{.status.conditions[?(@.type=="Available")].message}'`),
		})
	}
	return list
}

func (f *findings) compactStep(why string) v1beta2.NextStep {
	return v1beta2.NextStep{
		Why: why,
		Command: fmt.Sprintf(`kubectl etcd ctl %[1]s -n %[2]s --yes -- compaction --physical "$(kubectl etcd ctl %[1]s -n %[2]s -- get x -w fields | sed -n 's/^"Revision" : //p')"`,
			f.Cluster.Name, f.Cluster.Namespace),
	}
}

// quotaSteps are for a database that is mostly in use: a defragmentation releases little of it.
func (f *findings) quotaSteps() []v1beta2.NextStep {
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
		}, f.compactStep("or " + compaction)}
	default:
		return []v1beta2.NextStep{f.compactStep(used + compaction)}
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
		isFull, isWasteful := spaceOf(m)
		full, waste = full || isFull, waste || isWasteful
	}
	return full, waste
}

// spaceOf is space of one member. Neither is known of a member that does not say its quota.
func spaceOf(m *v1beta2.MemberHealth) (full, waste bool) {
	if m.Quota == 0 || m.DBSize == 0 {
		return false, false
	}
	inUse := m.DBSizeInUse
	if inUse == 0 {
		inUse = m.DBSize // etcd before 3.4 does not report it, and it may be all
	}
	return isNearQuota(m, inUse), 100*m.DBSize >= wasteFrom*m.Quota && 2*inUse < m.DBSize
}

func isNearQuota(m *v1beta2.MemberHealth, size int64) bool {
	return m.Quota > 0 && 100*size >= fullFrom*m.Quota
}
