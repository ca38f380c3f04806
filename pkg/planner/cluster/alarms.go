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
	// awayPatience is how long a member that does not serve, and whose database may be full, keeps an alarm
	// raised. A member that restarts is back by then, with the quota of its new pod. For a member that stays
	// away, the others do not reject writes for longer: etcd raises the alarm again when it comes back full.
	awayPatience = 2 * time.Minute
)

// upkeepAlarms disarms the alarm NOSPACE once its cause has ended, whatever has ended it. The members
// restarted with a larger quota, or any program has compacted and defragmented. Data that differs is
// for a person: then no alarm is disarmed. It also returns when the next attempt is due; 0 for none.
func upkeepAlarms(o *Observed, plan Plan) (actions []Action, next time.Duration) {
	raised := listNoSpace(o.Etcd.Members)
	if len(raised) == 0 || !keepsUp(o, plan) || !o.Etcd.Linearizable || findCorrupt(o.Etcd.Members) != nil || findFull(o) != nil {
		return nil, 0
	}
	if pause := awayPause(o); pause > 0 {
		return nil, pause
	}
	for _, id := range raised {
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
	if made.Last.IsZero() {
		return 0
	}
	return job.Delay(firstDisarmPause, longestDisarmPause, max(made.Count, 1)) - o.Now.Sub(made.Last)
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

// awayPause is how long to wait for a member that does not serve, and whose database may be full. The wait
// begins when the condition Available tells of it, so that a restart of the controller does not prolong it. A clock
// that was set back makes it twice as long at most.
func awayPause(o *Observed) time.Duration {
	if !isFullMemberAway(o) {
		return 0
	}
	written := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionAvailable)
	if written.Reason != string(ReasonDatabaseFull) || written.Message != writesRejected(o).message {
		return awayPatience
	}
	at, err := time.Parse(time.RFC3339, written.LastUpdateTime)
	if err != nil {
		return 0
	}
	return awayPatience - o.Now.Sub(at).Abs()
}

// findFull returns a member that serves and whose database has no room for every write, or nil.
func findFull(o *Observed) *Member {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; m.Health == Healthy && isFull(o, m, m.DBSize) {
			return m
		}
	}
	return nil
}

// isFull is true if a database of this size may have no room for every write. No pod tells the quota of an unmanaged
// member, and etcd says it from 3.6 on. Before that the member is full for as long as the alarm that it has raised
// itself: the program that runs it knows its quota.
func isFull(o *Observed, m *Member, size int64) bool {
	if hasUnknownQuota(m) {
		return slices.Contains(listNoSpace(o.Etcd.Members), m.ID)
	}
	return !isBelowQuota(o.Pods, m, size)
}

// hasUnknownQuota is true for a member that another program runs and that does not say its quota.
func hasUnknownQuota(m *Member) bool { return m.Unmanaged && m.Quota == 0 }

// isFullMemberAway is true if the database of a member that does not serve may be full: unless its own response says
// that it is not. The size in the status may be from before the database filled, as after the API was brought back from
// a backup. A member that has not started has no data.
func isFullMemberAway(o *Observed) bool {
	return slices.ContainsFunc(o.Etcd.Members, func(m Member) bool {
		return m.Started && m.Health != Healthy && (m.DBSize == 0 && !hasUnknownQuota(&m) || isFull(o, &m, m.DBSize))
	})
}

// isBelowQuota is true if a database of this size has room for every write. A quota that is not known, such
// as that of a member without a pod, leaves no room.
func isBelowQuota(pods []Pod, m *Member, size int64) bool {
	quota := effectiveQuota(pods, m)
	return size < quota.Bytes-quota.Headroom
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
			". Which member is wrong is for a person to find: the alarm names the first one that differs from the leader, and the leader may be the wrong one. " +
			"Save the data of each member before anything else, follow docs/how-to/corrupt-member.md, and disarm the alarm at the end: kubectl etcd ctl " + o.Cluster.Name + " -n " + o.Cluster.Namespace + " -- alarm disarm."}
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
	case m == nil && isFullMemberAway(o):
		r.message += describeAwayFull(o.Cluster)
	case m == nil:
		r.message += "each database is below its quota again. The controller disarms the alarm."
	case len(listUnmanaged(o.Etcd.Members)) > 0:
		r.byItself = false
		r.message += describeFullBesideOthers(o, m)
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

// describeFullBesideOthers is describeFull while another program runs members, too. Then no member of the cluster
// restarts with a larger quota or is defragmented by the controller, and it does neither to an unmanaged one.
func describeFullBesideOthers(o *Observed, m *Member) string {
	target := o.Cluster.Name + " -n " + o.Cluster.Namespace
	switch {
	case hasUnknownQuota(m):
		return fmt.Sprintf("member %s, which another program runs, has raised it, and does not say its quota. Restart that member with a larger --quota-backend-bytes, "+
			"or delete keys, compact the history and defragment it (etcdctl compaction REVISION, etcdctl defrag). Then disarm the alarm (etcdctl alarm disarm).", m.Name)
	case m.Unmanaged:
		return fmt.Sprintf("the database of %s, which another program runs, has reached its quota of %s. Restart that member with a larger --quota-backend-bytes, "+
			"or delete keys, compact the history and defragment it (etcdctl compaction REVISION, etcdctl defrag). The controller disarms the alarm when each database is below its quota.",
			m.Name, describeBytes(effectiveQuota(o.Pods, m).Bytes))
	default:
		return fmt.Sprintf("the database of %s has reached its quota of %s. While another program runs members of this etcd, the controller restarts no member with another quota. "+
			"Delete keys, compact the history (kubectl etcd ctl %s -- compaction REVISION) and defragment one member after the other (kubectl etcd ctl %s --member %s -- defrag). "+
			"The controller disarms the alarm when each database is %s below its quota.",
			m.Name, describeBytes(effectiveQuota(o.Pods, m).Bytes), target, target, m.Name, describeBytes(effectiveQuota(o.Pods, m).Headroom))
	}
}

// describeAwayFull names no member: the age of the message is that of the wait, see awayPause.
func describeAwayFull(cluster *v1beta2.EtcdCluster) string {
	return fmt.Sprintf("each database of a member that serves is below its quota again, and that of a member that does not serve may be full. The controller waits %v for that member, then disarms the alarm. "+
		"Bring it back, or have another member replace it: kubectl etcd replace %s MEMBER -n %s. The field status.memberStatuses says which member does not serve, and why.", awayPatience, cluster.Name, cluster.Namespace)
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
