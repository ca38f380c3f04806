// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// A disarmed alarm may come back: a member that the controller does not reach raises it again with the next
	// write of a client, and a voter that lags reports it still. Each attempt is a write of etcd, so the pause
	// between two attempts grows.
	firstDisarmPause, longestDisarmPause = time.Second, 10 * time.Minute
	// DisarmMemory is how long an attempt counts.
	DisarmMemory = 2 * longestDisarmPause
	// enoughDisarms is after how many attempts an alarm is for a person.
	enoughDisarms = 4
)

// upkeepAlarms disarms the alarm NOSPACE once its cause has ended, whatever has ended it. The members
// restarted with a larger quota, or any program has compacted and defragmented. Data that differs is
// for a person: then no alarm is disarmed. It also returns when the next attempt is due; 0 for none.
func upkeepAlarms(o *Observed, plan Plan) (actions []Action, next time.Duration) {
	if !keepsUp(o, plan) || !o.Etcd.Linearizable || findCorrupt(o.Etcd.Members) != nil || findFull(o) != nil {
		return nil, 0
	}
	for _, id := range listNoSpace(o.Etcd.Members) {
		if pause := disarmPause(o, id); pause <= 0 {
			actions = append(actions, DisarmNoSpace{ID: id})
		} else if next == 0 || pause < next {
			next = pause
		}
	}
	return actions, next
}

// disarmPause is how long to wait before the next attempt to disarm the alarm of a member.
func disarmPause(o *Observed, id uint64) time.Duration {
	made := o.Etcd.Disarms[id]
	if made.Count == 0 {
		return 0
	}
	return job.Delay(firstDisarmPause, longestDisarmPause, made.Count) - o.Now.Sub(made.Last)
}

// findStubborn returns the ID of a member whose alarm comes back each time that it is disarmed; false for none.
func findStubborn(o *Observed) (id uint64, found bool) {
	list := listNoSpace(o.Etcd.Members)
	i := slices.IndexFunc(list, func(id uint64) bool { return o.Etcd.Disarms[id].Count >= enoughDisarms })
	if i < 0 {
		return 0, false
	}
	return list[i], true
}

// findFull returns a member that serves and whose database has no room for every write, or nil. A
// member whose quota is not known counts as full. A member that does not serve does not count: the
// others would wait for it, and it raises the alarm again if its database is still full.
func findFull(o *Observed) *Member {
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		if quota := effectiveQuota(o.Pods, m); m.Health == Healthy && m.DBSize >= quota.Bytes-quota.Headroom {
			return m
		}
	}
	return nil
}

// effectiveQuota returns the quota with which a member runs; zero if it is not known. The declared
// one may be newer.
func effectiveQuota(pods []Pod, m *Member) resources.Quota {
	var quota resources.Quota
	if pod := podByName(pods, m.Name); pod != nil {
		quota = pod.Quota
	}
	if m.Quota > 0 {
		quota.Bytes = m.Quota
	}
	return quota
}

// rejection says why etcd rejects writes although a quorum responds.
type rejection struct {
	reason  Reason
	message string
	// byItself is true if the controller ends it.
	byItself bool
}

// writesRejected returns nil if etcd accepts writes, as far as its alarms tell.
func writesRejected(o *Observed) *rejection {
	if m := findCorrupt(o.Etcd.Members); m != nil {
		return &rejection{reason: ReasonDataCorrupt, message: "etcd has found that the data of its members differs, and rejects writes: " + strings.Join(AlarmTexts(m), ", ") +
			". Save the data of each member, replace the member that differs, and disarm the alarm with etcdctl alarm disarm."}
	}
	if len(listNoSpace(o.Etcd.Members)) == 0 {
		return nil
	}
	r := &rejection{reason: ReasonDatabaseFull, message: "etcd rejects writes (alarm NOSPACE), and serves reads and deletions: ", byItself: true}
	stubborn, found := findStubborn(o)
	switch m := findFull(o); {
	case m == nil && found:
		r.byItself = false
		r.message += describeStubborn(o, stubborn)
	case m == nil:
		r.message += "each database is below its quota again. The controller disarms the alarm."
	case isBelow(effectiveQuota(o.Pods, m).Bytes, o.Cluster):
		r.message += fmt.Sprintf("the database of %s has reached its quota of %s, and spec.etcd.quotaBackendBytes is %s. The controller restarts the members with it, then disarms the alarm.",
			m.Name, describeBytes(effectiveQuota(o.Pods, m).Bytes), describeBytes(resources.QuotaBackendBytes(o.Cluster)))
	default:
		r.byItself = false
		r.message += describeFull(o, m)
	}
	return r
}

// describeFull names the member, its quota and what ends the alarm.
func describeFull(o *Observed, m *Member) string {
	target := o.Cluster.Name + " -n " + o.Cluster.Namespace
	return fmt.Sprintf("the database of %s has reached its quota of %s. Raise spec.etcd.quotaBackendBytes, or delete keys, compact the history (kubectl etcd ctl %s -- compaction REVISION) and defragment "+
		"(kubectl etcd defrag %s). The controller disarms the alarm when each database is %s below its quota.",
		m.Name, describeBytes(effectiveQuota(o.Pods, m).Bytes), target, target, describeBytes(effectiveQuota(o.Pods, m).Headroom))
}

// describeStubborn names the member whose alarm comes back, and what ends that.
func describeStubborn(o *Observed, id uint64) string {
	name, state := strconv.FormatUint(id, 16), "which is no member any more"
	if i := slices.IndexFunc(o.Etcd.Members, func(m Member) bool { return m.ID == id }); i >= 0 {
		m := &o.Etcd.Members[i]
		if name, state = m.Name, "which is healthy"; m.Health != Healthy {
			state = "which is not healthy: its database may be full"
		}
	}
	return fmt.Sprintf("the alarm of member %s, %s, is still raised after %d attempts to disarm it. The controller tries again every %v at least. "+
		"Bring that member back, or have another member replace it: kubectl etcd replace %s MEMBER -n %s.",
		name, state, o.Etcd.Disarms[id].Count, longestDisarmPause, o.Cluster.Name, o.Cluster.Namespace)
}

// isBelow is true if a quota is less than the declared one.
func isBelow(quota int64, cluster *v1beta2.EtcdCluster) bool {
	return quota > 0 && quota < resources.QuotaBackendBytes(cluster)
}

func describeBytes(n int64) string {
	if n == 0 {
		return "unknown size"
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}
