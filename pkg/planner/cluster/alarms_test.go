// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// size gives every member a database of n bytes, under a quota of 16 MiB. Its headroom is 2 MiB.
func size(n int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(resource.MustParse("16Mi"))}
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].DBSize = n
		}
		for i := range o.Pods {
			o.Pods[i].Quota = resources.Quota{Bytes: 16 << 20, Headroom: 2 << 20}
		}
	}
}

// sizeOf gives one member a database of n bytes.
func sizeOf(name string, n int64) func(*Observed) {
	return func(o *Observed) { memberByName(o.Etcd.Members, name).DBSize = n }
}

// quotaOf starts one member with another quota.
func quotaOf(name string, bytes int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.Etcd = &v1beta2.EtcdOptions{QuotaBackendBytes: ptr.To(*resource.NewQuantity(bytes, resource.BinarySI))}
		podByName(o.Pods, name).Quota.Bytes = bytes
	}
}

// saysQuota has one member say its quota itself, as etcd does from 3.6 on.
func saysQuota(name string, bytes int64) func(*Observed) {
	return func(o *Observed) { memberByName(o.Etcd.Members, name).Quota = bytes }
}

// reportedSize has the last status report a database of n bytes.
func reportedSize(name string, n int64) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.MemberStatuses = append(o.Cluster.Status.MemberStatuses,
			v1beta2.MemberStatus{Name: name, ID: hexID(memberByName(o.Etcd.Members, name).ID), DBSize: n})
	}
}

// awaited has the last status say for some time that a full member is away. It is for the end of a list of edits.
func awaited(ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionAvailable, Status: corev1.ConditionFalse, Reason: string(ReasonDatabaseFull),
			Message: writesRejected(o).message, LastUpdateTime: o.Now.Add(-ago).Format(time.RFC3339),
		})
	}
}

func doesNotServe(o *Observed) { o.Etcd.Members[2].Reason = ReasonNotServing }

func corruptData(o *Observed) {
	o.Etcd.Members[0].Alarms = append(o.Etcd.Members[0].Alarms, Alarm{alarmCorrupt, 2})
}

// TestDisarmsWhenItsCauseHasEnded: the alarm NOSPACE goes when every database has room for any write,
// however that came, and not before.
func TestDisarmsWhenItsCauseHasEnded(t *testing.T) {
	const full, roomy = 16 << 20, 14<<20 - 1
	checkDecisions(t, []decision{
		{"a full database", 3, "a b c", edits(size(full), noSpace(1)), "steady"},
		{"every database has room", 3, "a b c", edits(size(roomy), noSpace(1)), "steady: DisarmNoSpace 1"},
		{"a member that was removed had raised it, too", 3, "a b c", edits(size(roomy), noSpace(3, 77)), "steady: DisarmNoSpace 3, DisarmNoSpace 4d"},
		{"one database has no room for the largest write", 3, "a b c", edits(size(roomy), sizeOf("b", roomy+1), noSpace(1)), "steady"},
		{"no alarm", 3, "a b c", edits(size(full)), "steady"},
		{"it was disarmed a moment ago", 3, "a b c", edits(size(roomy), noSpace(1), disarmed(1, 1, firstDisarmPause-1)), "steady"},
		{"a moment ago etcd was not reached", 3, "a b c", edits(size(roomy), noSpace(1), disarmed(1, 0, firstDisarmPause-1)), "steady"},
		{"it came back after a pause", 3, "a b c", edits(size(roomy), noSpace(1), disarmed(1, 1, firstDisarmPause)), "steady: DisarmNoSpace 1"},
		{"the pause grows", 3, "a b c", edits(size(roomy), noSpace(1), disarmed(1, 5, 16*firstDisarmPause-1)), "steady"},
		{"it comes back again and again", 3, "a b c:sick", edits(size(roomy), doesNotServe, noSpace(3), disarmed(3, 99, longestDisarmPause-1)), "steady"},
		{"the longest pause is over", 3, "a b c:sick", edits(size(roomy), doesNotServe, noSpace(3), disarmed(3, 99, longestDisarmPause)), "steady: DisarmNoSpace 3"},
		{"another alarm was disarmed", 3, "a b c", edits(size(roomy), noSpace(1, 3), disarmed(3, 1, 0)), "steady: DisarmNoSpace 1"},
		{"one member", 1, "a", edits(size(roomy), noSpace(1)), "steady: DisarmNoSpace 1"},
		{"the quota of one member was raised", 3, "a b c", edits(size(full), quotaOf("a", 1<<30), noSpace(1)), "steady"},
		{"the quota of each member was raised", 3, "a b c", edits(size(full), quotaOf("a", 1<<30), quotaOf("b", 1<<30), quotaOf("c", 1<<30), noSpace(1)), "steady: DisarmNoSpace 1"},
		{"etcd says a larger quota than its pod", 1, "a", edits(size(full), saysQuota("a", 1<<30), noSpace(1)), "steady: DisarmNoSpace 1"},
		{"etcd says a smaller quota than its pod", 1, "a", edits(size(roomy), saysQuota("a", 15<<20), noSpace(1)), "steady"},
		{"the quota of a member is not known", 1, "a", edits(sizeOf("a", 1), noSpace(1), func(o *Observed) { o.Pods[0].Quota = resources.Quota{} }), "steady"},
		{"only a member that does not serve still reports it", 3, "a b c:sick", edits(size(roomy), func(o *Observed) { o.Etcd.Members[2].Alarms = []Alarm{{alarmNoSpace, 1}} }), "steady"},
		{"during a rollout", 3, "a:claim b:claim,stale c:claim", edits(size(roomy), noSpace(1)), "rollout: DisarmNoSpace 1, RecreatePod b 3.6.11"},
		{"at the end of a defragmentation", 1, "a", edits(size(roomy), noSpace(1), askedFor(), result("a", hasSucceeded)), "operation: DisarmNoSpace 1"},
		{"without a quorum", 3, "a b c", edits(size(roomy), noSpace(1), noQuorum), "quorum: wait EtcdUnreachable"},
		{"paused", 3, "a b c", edits(size(roomy), noSpace(1), pausedSpec), "paused"},
		{"data that differs", 3, "a b c", edits(size(roomy), noSpace(1), corruptData), "steady: RecordCorruptVoters 3, EnsurePodDisruptionBudget 3"},
	})
}

// TestAlarmBesideOldMembers: an old member before 3.6 says no quota. It is full only if it has raised the alarm itself, and
// then a person disarms it. No advice names what the controller does not do beside old members.
func TestAlarmBesideOldMembers(t *testing.T) {
	const full, roomy, members = 16 << 20, 14<<20 - 1, "a b c x:old"
	const waits = "take-over: wait OldMembersKept"
	disarms := func(id string) string { return "take-over: DisarmNoSpace " + id + ", wait OldMembersKept" }
	guards := func(n int) func(*Observed) { return func(o *Observed) { o.PodDisruptionBudget.MinAvailable = n } }
	id := func(name string) uint64 { o := observed(t, 3, members); return memberByName(o.Etcd.Members, name).ID }
	checkDecisions(t, []decision{
		{"a member of the cluster has raised it, and has room", 3, members, edits(joins, size(roomy), noSpace(id("a"))), disarms("1")},
		{"a member of the cluster is full", 3, members, edits(joins, size(full), noSpace(id("a"))), waits},
		{"an old member has raised it", 3, members, edits(joins, size(1), noSpace(id("x"))), waits},
		{"an old member that says its quota has room", 3, members, edits(joins, size(roomy), saysQuota("x", full), noSpace(id("x"))), disarms("4")},
		{"an old member that says its quota is full", 3, members, edits(joins, size(1), sizeOf("x", full), saysQuota("x", full), noSpace(id("x"))), waits},
		{"an old member that does not serve has not raised it", 3, "a b c x:old,unknown", edits(joins, size(roomy), sizeOf("x", 0), noSpace(id("a")), guards(3)), disarms("1")},
		{"an old member that has raised it does not serve", 3, "a b c x:old,unknown", edits(joins, size(roomy), sizeOf("x", 0), noSpace(id("x")), guards(3)), waits},
		{"an old member that has raised it does not serve at the bound", 3, "a b c x:old,unknown", edits(joins, size(roomy), sizeOf("x", 0), noSpace(id("x")), awaited(awayPatience), guards(3)), disarms("4")},
	})
	for name, test := range map[string]struct {
		edits     []func(*Observed)
		want, not string
	}{
		"unknown quota":        {edits(size(1), noSpace(id("x"))), "Then disarm the alarm (etcdctl alarm disarm).", "The controller disarms"},
		"known quota":          {edits(size(1), sizeOf("x", full), saysQuota("x", full), noSpace(id("x"))), "the database of x, which another program runs, has reached its quota of 16Mi", "alarm disarm"},
		"full member":          {edits(size(full), noSpace(id("a"))), "(kubectl etcd ctl c -n n --member a -- defrag)", "Raise"},
		"quota that is raised": {edits(size(full), quotaOf("b", 1<<30), noSpace(id("a"))), "the controller restarts no member with another quota", "The controller restarts the members"},
	} {
		o := observed(t, 3, members, append(edits(joins), test.edits...)...)
		if r := writesRejected(&o); r.byItself || !strings.Contains(r.message, test.want) || strings.Contains(r.message, test.not) {
			t.Errorf("%s: by itself %t: %s", name, r.byItself, r.message)
		}
	}
}

// TestLooksAgainAfterDisarming: no event tells that the alarm has ended.
func TestLooksAgainAfterDisarming(t *testing.T) {
	if again := Decide(observed(t, 3, "a b c", size(1), noSpace(1))).RequeueAfter; again != recheckUnannounced {
		t.Errorf("looks again after %v", again)
	}
}

// TestWaitsForFullMember: a member that does not serve may come back full, so it is waited for, and not for
// longer than a restart takes.
func TestWaitsForFullMember(t *testing.T) {
	const full, roomy, isAway = 16 << 20, 14<<20 - 1, "a b c:unknown"
	const waits, disarms = "steady", "steady: DisarmNoSpace 1"
	away := func(more ...func(*Observed)) []func(*Observed) {
		return append(edits(size(roomy), sizeOf("c", 0), noSpace(1)), more...)
	}
	checkDecisions(t, []decision{
		{"it ends, and its last response says that it is full", 3, "a b c:sick", away(sizeOf("c", full), doesNotServe), waits},
		{"the status says that it was full", 3, isAway, away(reportedSize("c", full)), waits},
		{"its size was never known", 3, isAway, away(), waits},
		{"it has no pod", 3, "a b c:claim,nopod", away(reportedSize("c", 1)), "recreate-pods: CreatePod c[a b c]"},
		{"a moment before the bound", 3, isAway, away(awaited(awayPatience - time.Second)), waits},
		{"at the bound", 3, isAway, away(awaited(awayPatience)), disarms},
		{"at the bound, and it responds", 3, "a b c:sick", away(sizeOf("c", full), doesNotServe, awaited(awayPatience)), disarms},
		{"a member that serves is full at the bound", 3, isAway, away(awaited(awayPatience), sizeOf("a", full)), waits},
		{"the clock was set back", 3, isAway, away(awaited(-time.Hour)), disarms},
		{"the status said something else", 3, isAway, away(awaited(time.Hour), func(o *Observed) { o.Cluster.Status.Conditions[0].Message = "" }), waits},
		{"the status says that it had room, and may be from before", 3, isAway, away(reportedSize("c", 1)), waits},
		{"it responds, does not serve and has room", 3, "a b c:sick", away(sizeOf("c", 1), doesNotServe), disarms},
		{"it responds, does not serve and has a larger quota", 3, "a b c:sick", away(sizeOf("c", full), doesNotServe, func(o *Observed) { podByName(o.Pods, "c").Quota.Bytes = 1 << 30 }), disarms},
	})
	o := observed(t, 3, isAway, away(awaited(awayPatience-3*time.Second))...)
	if again := Decide(o).RequeueAfter; again != 3*time.Second {
		t.Errorf("looks again after %v", again)
	}
	if after := statusOf(o); find(after, v1beta2.ClusterConditionAvailable).LastUpdateTime != o.Cluster.Status.Conditions[0].LastUpdateTime {
		t.Error("the status does not keep the time at which the wait began")
	}
	o = observed(t, 3, isAway, away(disarmed(1, enoughDisarms-1, 0))...)
	if r := writesRejected(&o); !r.byItself || !strings.Contains(r.message, "that of a member that does not serve may be full. The controller waits 2m0s") {
		t.Errorf("by itself %t: %s", r.byItself, r.message)
	}
}

// disarmed has the controller have disarmed the alarm of a member n times, the last time some time ago.
func disarmed(id uint64, n int, ago time.Duration) func(*Observed) {
	return func(o *Observed) { o.Etcd.Disarms = map[uint64]Disarms{id: {Count: n, Last: o.Now.Add(-ago)}} }
}

// TestLooksAgainAfterPause: no event tells that the next attempt to disarm an alarm is due.
func TestLooksAgainAfterPause(t *testing.T) {
	if again := Decide(observed(t, 3, "a b c", size(1), noSpace(1), disarmed(1, 1, firstDisarmPause/4))).RequeueAfter; again != firstDisarmPause*3/4 {
		t.Errorf("looks again after %v", again)
	}
}

// TestStubbornAlarm: an alarm that comes back names its member, and waits for a person.
func TestStubbornAlarm(t *testing.T) {
	for name, test := range map[string]struct {
		id   uint64
		n    int
		want string
	}{
		"a member that does not respond": {3, enoughDisarms, "alarm of member c, which is not healthy: its database may be full, is still raised after 4 attempts"},
		"a member that was removed":      {77, 9, "alarm of member 4d, which is no member any more, is still raised after 9 attempts"},
		"not yet":                        {3, enoughDisarms - 1, ""},
	} {
		o := observed(t, 3, "a b c:sick", size(1), doesNotServe, noSpace(test.id), disarmed(test.id, test.n, 0))
		if r := writesRejected(&o); !strings.Contains(r.message, test.want) || r.byItself != (test.want == "") {
			t.Errorf("%s: by itself %t: %s", name, r.byItself, r.message)
		}
	}
}

// runs has every member run a version of etcd, as declared.
func runs(version string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.Version = version
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].Version, o.Pods[i].Version = version, version
		}
	}
}

// TestUnreadyWhileFull: before etcd 3.4.19 and 3.5.2 the alarm makes pods unready. A rollout that raises
// the quota does not wait for them. With later versions an unready pod has another cause.
func TestUnreadyWhileFull(t *testing.T) {
	const members = "a:claim,notready b:claim,notready,stale c:claim,notready"
	checkDecisions(t, []decision{
		{"3.4.18", 3, members, edits(runs("3.4.18"), size(16<<20), noSpace(1)), "rollout: RecreatePod b 3.4.18"},
		{"3.5.1", 3, members, edits(runs("3.5.1"), size(16<<20), noSpace(1)), "rollout: RecreatePod b 3.5.1"},
		{"3.4.18 without the alarm", 3, members, edits(runs("3.4.18"), size(16<<20)), "rollout: wait WaitingForReady"},
		{"3.4.19", 3, members, edits(runs("3.4.19"), size(16<<20), noSpace(1)), "rollout: wait WaitingForReady"},
		{"3.5.2", 3, members, edits(runs("3.5.2"), size(16<<20), noSpace(1)), "rollout: wait WaitingForReady"},
		{"3.6.11", 3, members, edits(size(16<<20), noSpace(1)), "rollout: wait WaitingForReady"},
		{"another cause", 3, "a:claim,notready b:claim,notready,stale c:claim,notready", edits(size(16 << 20)), "rollout: wait WaitingForReady"},
	})
}

// TestAdviceWhileFull: the status says what is still missing, and nothing that was done already.
func TestAdviceWhileFull(t *testing.T) {
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
		not   string
	}{
		"full":                      {edits(size(16 << 20)), "the database of a has reached its quota of 16Mi. Raise spec.etcd.quotaBackendBytes, or delete keys, compact the history (kubectl etcd ctl c -n n -- compaction REVISION) and defragment (kubectl etcd defrag c -n n)", "restarts"},
		"the quota was just raised": {edits(size(16<<20), quotaOf("b", 1<<30)), "the database of a has reached its quota of 16Mi, and spec.etcd.quotaBackendBytes is 1Gi. The controller restarts the members with it", "Raise"},
		"room again":                {edits(size(1)), "each database is below its quota again. The controller disarms the alarm.", "Raise"},
		"it comes back":             {edits(size(1), disarmed(1, enoughDisarms, 0)), "the alarm of member a, which is healthy, is still raised after 4 attempts to disarm it", "Raise"},
		"not known":                 {edits(size(1), func(o *Observed) { o.Pods[1].Quota = resources.Quota{} }), "the database of b has reached its quota of unknown size", "restarts"},
	} {
		o := observed(t, 3, "a b c", append(test.edits, noSpace(1))...)
		status := statusOf(o)
		for _, kind := range []v1beta2.ClusterConditionType{v1beta2.ClusterConditionAvailable, v1beta2.ClusterConditionDegraded, v1beta2.ClusterConditionReady} {
			if c := find(status, kind); c.Reason != string(ReasonDatabaseFull) || !strings.Contains(c.Message, test.want) || strings.Contains(c.Message, test.not) {
				t.Errorf("%s: %s is %s (%s): %s", name, kind, c.Status, c.Reason, c.Message)
			}
		}
		if !strings.Contains(status.Reason, test.want) || status.Phase != v1beta2.ClusterPhaseRunning {
			t.Errorf("%s: phase %s, because %s", name, status.Phase, status.Reason)
		}
	}
}
