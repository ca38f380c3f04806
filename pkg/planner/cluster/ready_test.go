// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// kstatusOf is what Flux and Helm make of a cluster with a status.
func kstatusOf(t *testing.T, cluster *v1beta2.EtcdCluster, s v1beta2.ClusterStatus) status.Status {
	t.Helper()
	shown := cluster.DeepCopy()
	shown.Status = s
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// waitsSince has the last status say that it has waited for something for a while.
func waitsSince(reason string, ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.BlockedBy = &v1beta2.BlockedBy{Reason: reason, Since: metav1.NewTime(testNow.Add(-ago))}
	}
}

// wasReady has the last status say that the cluster was Ready, and since when it is degraded.
func wasReady(degraded corev1.ConditionStatus, ago time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{
			{Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionTrue, Reason: "AsDeclared", Message: "3 voters", ObservedGeneration: o.Cluster.Generation},
			{Type: v1beta2.ClusterConditionDegraded, Status: degraded, LastTransitionTime: testNow.Add(-ago).Format(time.RFC3339)},
		}
	}
}

func changed(o *Observed) { o.Cluster.Generation++ }

func TestReady(t *testing.T) {
	corrupt := func(o *Observed) { o.Etcd.Members[0].Alarms = []Alarm{{Type: alarmCorrupt}} }
	taken := func(o *Observed) { o.ClientService = NotOwned }
	const soon, late = waits.Soon, waits.Late
	for _, tt := range []struct {
		name    string
		size    int
		members string
		edits   []func(*Observed)
		want    status.Status
		reason  string
	}{
		{"as declared", 3, "a b c", nil, status.CurrentStatus, "AsDeclared"},
		{"one member", 1, "a", nil, status.CurrentStatus, "AsDeclared"},
		{"another leader", 3, "a b:leads c", nil, status.CurrentStatus, "AsDeclared"},
		{"hibernated", 0, "a:nopod,claim", edits(noQuorum), status.CurrentStatus, "Hibernated"},
		{"about to hibernate", 0, "a:claim", nil, status.InProgressStatus, "Hibernating"},

		{"not started", 3, "", edits(unresponsive), status.InProgressStatus, "Creating"},
		{"grows", 3, "a b", nil, status.InProgressStatus, "MemberJoining"},
		{"joins", 3, "a b c:learner,unstarted", nil, status.InProgressStatus, "WaitingForMember"},
		{"shrinks", 1, "a b c", nil, status.InProgressStatus, ""},
		{"upgrades", 3, "a b:v=3.7.0,podv=3.7.0 c", edits(wants("3.7.0")), status.InProgressStatus, ""},
		{"rolls out", 3, "a:claim b:claim,stale c:claim", nil, status.InProgressStatus, "RollingOut"},
		{"a member is sick", 3, "a b c:sick", nil, status.InProgressStatus, "MembersUnhealthy"},
		{"a pod is not ready", 3, "a b c:notready", nil, status.InProgressStatus, "MembersUnhealthy"},
		{"a member is replaced", 3, "a b c:nopod", nil, status.InProgressStatus, ""},

		{"quorum permanently lost", 3, "a b:nopod c:nopod", edits(noQuorum), status.InProgressStatus, "QuorumLost"},
		{"quorum permanently lost, no user acts", 3, "a b:nopod c:nopod", edits(noQuorum, waitsSince("QuorumLost", soon)), status.FailedStatus, "QuorumLost"},
		{"quorum permanently lost, recovers by itself", 3, "a b:nopod c:nopod", edits(noQuorum, automatic(0), waitsSince("QuorumLost", soon)), status.InProgressStatus, ""},
		{"quorum lost for a while", 3, "a b:down c:down", edits(noQuorum, waitsSince("QuorumLost", soon)), status.InProgressStatus, "QuorumLost"},
		{"quorum lost for long", 3, "a b:down c:down", edits(noQuorum, waitsSince("QuorumLost", late)), status.FailedStatus, "QuorumLost"},
		{"data that differs", 3, "a b c", edits(corrupt), status.FailedStatus, "DataCorrupt"},
		{"a database is full", 3, "a b c", edits(size(16<<20), noSpace(1)), status.FailedStatus, "DatabaseFull"},
		{"a database is full and is being defragmented", 3, "a b c", edits(size(16<<20), noSpace(1), askedFor()), status.InProgressStatus, "DatabaseFull"},
		{"a database is full and its member restarts with a larger quota", 3, "a:claim b:claim,stale c:claim", edits(size(16<<20), noSpace(1)), status.InProgressStatus, "RollingOut"},
		{"the alarm of a database that was full is disarmed", 3, "a b c", edits(size(1), noSpace(1)), status.InProgressStatus, "DatabaseFull"},
		{"a database is full: no election", 3, "a b c", edits(size(16<<20), noSpace(1), wasReady(corev1.ConditionFalse, 0)), status.FailedStatus, "DatabaseFull"},
		{"a version out of reach", 3, "a b c", edits(wants("3.9.0")), status.InProgressStatus, "VersionStep"},
		{"a version out of reach, unchanged", 3, "a b c", edits(wants("3.9.0"), waitsSince("VersionStep", soon)), status.FailedStatus, "VersionStep"},
		{"what an earlier cluster leaves", 3, "", edits(unresponsive, pod("old", false)), status.InProgressStatus, "OldPods"},
		{"what an earlier cluster leaves permanently", 3, "", edits(unresponsive, pod("old", false), waitsSince("OldPods", soon)), status.FailedStatus, "OldPods"},
		{"a name that is taken", 3, "a b c", edits(taken), status.InProgressStatus, "NameConflict"},
		{"a name that stays taken", 3, "a b c", edits(taken, waitsSince("NameConflict", soon)), status.FailedStatus, "NameConflict"},
		{"another wait lasted before", 3, "a b c", edits(taken, waitsSince("NoLeader", late)), status.InProgressStatus, "NameConflict"},

		{"paused as declared", 3, "a b c", edits(pausedSpec), status.CurrentStatus, "AsDeclared"},
		{"paused on the way", 5, "a b c", edits(pausedSpec), status.FailedStatus, "Paused"},
		{"paused, an old pod", 3, "a:claim b:claim,stale c:claim", edits(pausedSpec), status.FailedStatus, "Paused"},

		{"an election", 3, "a:noleader b:noleader c:noleader", edits(noQuorum, wasReady(corev1.ConditionFalse, 0)), status.CurrentStatus, "AsDeclared"},
		{"no responses for a moment", 3, "a:unknown b:unknown c:unknown", edits(noQuorum, wasReady(corev1.ConditionUnknown, readyHold-time.Second)), status.CurrentStatus, "AsDeclared"},
		{"no responses any more", 3, "a:unknown b:unknown c:unknown", edits(noQuorum, wasReady(corev1.ConditionUnknown, readyHold)), status.InProgressStatus, "EtcdUnreachable"},
		{"one response is late", 3, "a b c:unknown", edits(wasReady(corev1.ConditionFalse, 0)), status.CurrentStatus, "AsDeclared"},
		{"an election after a change", 3, "a:noleader b:noleader c:noleader", edits(noQuorum, wasReady(corev1.ConditionFalse, 0), changed), status.InProgressStatus, "NoLeader"},
		{"an election before it was ever Ready", 3, "a:noleader b:noleader c:noleader", edits(noQuorum), status.InProgressStatus, "NoLeader"},
		{"a pod does not exist: no election", 3, "a b c:nopod", edits(wasReady(corev1.ConditionFalse, 0)), status.InProgressStatus, ""},
		{"a pod is not ready: no election", 3, "a b c:notready", edits(wasReady(corev1.ConditionFalse, 0)), status.InProgressStatus, "MembersUnhealthy"},
	} {
		o := observed(t, tt.size, tt.members, tt.edits...)
		s := statusOf(o)
		if got := kstatusOf(t, o.Cluster, s); got != tt.want {
			t.Errorf("%s: %s, want %s: %+v", tt.name, got, tt.want, find(s, v1beta2.ClusterConditionReady))
		}
		if c := find(s, v1beta2.ClusterConditionReady); tt.reason != "" && c.Reason != tt.reason {
			t.Errorf("%s: reason %s, want %s (%s)", tt.name, c.Reason, tt.reason, c.Message)
		}
		if problem := checkReady(&o, s); problem != "" {
			t.Errorf("%s: %s", tt.name, problem)
		}
	}
}

// TestReadyAtRestIsStable: what is written once about a cluster at rest is not written again.
func TestReadyAtRestIsStable(t *testing.T) {
	for _, members := range []string{"a b c", "a b c:sick", "a:unknown b:unknown c:unknown"} {
		o := observed(t, 3, members)
		if strings.Contains(members, "unknown") {
			noQuorum(&o)
		}
		first := statusOf(o)
		o.Cluster.Status = first
		o.Now = testNow.Add(time.Second)
		again := statusOf(o)
		if !slices.Equal(first.Conditions, again.Conditions) {
			t.Errorf("%s: conditions change at rest:\n%+v\n%+v", members, first.Conditions, again.Conditions)
		}
	}
}

// TestStalledPassesAway: the conditions that are there only while they are True go.
func TestStalledPassesAway(t *testing.T) {
	o := observed(t, 3, "a b c", wants("3.9.0"), waitsSince("VersionStep", waits.Soon))
	o.Cluster.Status = statusOf(o)
	if find(o.Cluster.Status, v1beta2.ClusterConditionStalled) == nil {
		t.Fatal("it is not Stalled")
	}
	o.Cluster.Spec.Version = testVersion
	if s := statusOf(o); find(s, v1beta2.ClusterConditionStalled) != nil || find(s, v1beta2.ClusterConditionReconciling) != nil {
		t.Errorf("conditions of what is over stay: %+v", s.Conditions)
	}
}

// TestConditionsTellTheGeneration: each is about the spec that was observed.
func TestConditionsTellTheGeneration(t *testing.T) {
	s := statusOf(observed(t, 3, "a b c"))
	for _, c := range s.Conditions {
		if c.ObservedGeneration != 7 {
			t.Errorf("%s is about generation %d", c.Type, c.ObservedGeneration)
		}
	}
}

// checkReady holds for every status: what Ready says is true, and exactly one of Ready,
// Reconciling and Stalled is.
func checkReady(o *Observed, s v1beta2.ClusterStatus) string {
	var yes []string
	for _, c := range s.Conditions {
		switch c.Type {
		case v1beta2.ClusterConditionReconciling, v1beta2.ClusterConditionStalled:
			if c.Status != corev1.ConditionTrue {
				return "condition " + string(c.Type) + " is there and not True"
			}
			yes = append(yes, string(c.Type))
		case v1beta2.ClusterConditionReady:
			if c.Reason == "" {
				return "Ready gives no reason"
			}
			if c.Status == corev1.ConditionTrue {
				yes = append(yes, string(c.Type))
			}
		default: // says something else
		}
	}
	if len(yes) != 1 {
		return "not one of Ready, Reconciling and Stalled: " + strings.Join(yes, ", ")
	}
	if yes[0] != v1beta2.ConditionReady || desiredSize(o.Cluster) == 0 {
		return ""
	}
	held := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionReady).Status == corev1.ConditionTrue
	switch {
	case len(listOwnVoters(o.Etcd.Members)) != desiredSize(o.Cluster) || len(listOwn(o.Etcd.Members)) != desiredSize(o.Cluster):
		return "Ready with other members than declared"
	case !held && (!o.Etcd.Linearizable || quorumOf(o).countServing()-countServingUnmanaged(o) != desiredSize(o.Cluster) || len(s.Members.Ready) != desiredSize(o.Cluster)):
		return "Ready although not every voter is healthy"
	case s.TargetVersion != "":
		return "Ready during a change of version"
	}
	return ""
}
