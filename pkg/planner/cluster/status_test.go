// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func statusOf(o Observed) v1beta2.ClusterStatus { return Status(o, Decide(o)) }

func TestPhase(t *testing.T) {
	recordNotOwned := func(o *Observed) {
		o.Record = Record{State: NotOwned, Record: resources.Record{BootstrapMember: "x", ClusterID: "bad"}}
	}
	served := func(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseNone }
	for _, tt := range []struct {
		name    string
		size    int
		members string
		edits   []func(*Observed)
		want    v1beta2.ClusterPhase
		reason  string
	}{
		{"nothing yet", 3, "", edits(unresponsive), v1beta2.ClusterPhaseCreating, ""},
		{"the record of an earlier cluster", 3, "", edits(unresponsive, recordNotOwned), v1beta2.ClusterPhaseCreating, ""},
		{"the bootstrap member responds, nothing recorded", 3, "a", edits(neverServed), v1beta2.ClusterPhaseCreating, ""},
		{"recorded", 3, "a", edits(served), v1beta2.ClusterPhaseRunning, ""},
		{"a minority is down", 3, "a b c:down", nil, v1beta2.ClusterPhaseRunning, ""},
		{"cut off from the controller", 3, "a:unknown b:unknown c:unknown", edits(noQuorum), v1beta2.ClusterPhaseRunning, ""},
		{"a majority is down", 3, "a b:down c:down", edits(noQuorum), v1beta2.ClusterPhaseFailed, "2 of 3 voters do not serve. A quorum needs 2."},
		{"a majority is lost with its data", 3, "a b:nopod c:nopod", edits(noQuorum), v1beta2.ClusterPhaseFailed, "2 of 3 voters and their data no longer exist. A quorum needs 2."},
		{"a majority comes back by itself", 3, "a b:nopod,claim c:nopod,claim", edits(noQuorum), v1beta2.ClusterPhaseFailed, "2 of 3 voters do not serve. A quorum needs 2."},
		{"asleep", 0, "a:nopod,claim", edits(noQuorum), v1beta2.ClusterPhaseHibernated, ""},
		{"paused", 3, "a b c", edits(pausedSpec), v1beta2.ClusterPhaseRunning, ""},
	} {
		if got := statusOf(observed(t, tt.size, tt.members, tt.edits...)); got.Phase != tt.want || got.Reason != tt.reason {
			t.Errorf("%s: phase %s %q, want %s %q", tt.name, got.Phase, got.Reason, tt.want, tt.reason)
		}
	}
}

// TestPausedIsSaid: a paused cluster is left alone, and its status says so and goes on
// telling how it is.
func TestPausedIsSaid(t *testing.T) {
	o := observed(t, 3, "a b c:down", pausedSpec)
	s := statusOf(o)
	if !s.ControlPaused || find(s, v1beta2.ClusterConditionPaused).Status != corev1.ConditionTrue {
		t.Errorf("it is not said that it is paused: %+v", s)
	}
	if find(s, v1beta2.ClusterConditionDegraded).Status != corev1.ConditionTrue || *s.Tolerance != 0 {
		t.Errorf("its status is not kept: %+v", s)
	}
	o = observed(t, 3, "a b c")
	if s := statusOf(o); s.ControlPaused {
		t.Errorf("the status says that it is paused: %+v", s)
	}
}

func TestTolerance(t *testing.T) {
	for _, tt := range []struct {
		name    string
		members string
		edits   []func(*Observed)
		want    *int32
	}{
		{"three of three", "a b c", nil, ptr.To[int32](1)},
		{"five of five", "a b c d e", nil, ptr.To[int32](2)},
		{"four of four: no better than three", "a b c d", nil, ptr.To[int32](1)},
		{"two of three", "a b c:down", nil, ptr.To[int32](0)},
		{"one of one", "a", nil, ptr.To[int32](0)},
		{"a learner does not count", "a b c d:learner", nil, ptr.To[int32](1)},
		{"a pod that goes does not count", "a b c:terminating", nil, ptr.To[int32](0)},
		{"lost, one serves", "a:noleader b:nopod c:nopod", edits(noQuorum), ptr.To[int32](-2)},
		{"lost, none serves", "a:nopod b:nopod c:nopod", edits(noQuorum), ptr.To[int32](-2)},
		{"lost, two say that they serve", "a b:nopod c:nopod d e:nopod", edits(noQuorum), ptr.To[int32](-1)},
		{"not known", "a:unknown b:unknown c:unknown", edits(noQuorum), nil},
		{"no member is known", "", edits(unresponsive), nil},
	} {
		got := statusOf(observed(t, 3, tt.members, tt.edits...)).Tolerance
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: tolerance (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestMemberStatuses(t *testing.T) {
	o := observed(t, 5, "b:leads a:learner c:unstarted,down d:sick,claim e:terminating f:unknown", func(o *Observed) {
		o.Etcd.Members[0].RaftIndex = 5000
		o.Etcd.Members[1].RaftIndex = 3000
		o.Etcd.Members[0].DBSize = 7
		podByName(o.Pods, "c").Waiting = "ImagePullBackOff"
	})
	got := statusOf(o)
	if !slices.Equal(got.Members.Ready, []string{"b"}) || !slices.Equal(got.Members.Unready, []string{"a", "c", "d", "e", "f"}) {
		t.Errorf("ready %v, unready %v", got.Members.Ready, got.Members.Unready)
	}
	if got.Leader != "b" || got.Replicas != 5 || got.DBSize != 7 {
		t.Errorf("leader %q, size %d, dbSize %d", got.Leader, got.Replicas, got.DBSize)
	}
	want := []struct {
		name    string
		role    v1beta2.MemberRole
		healthy corev1.ConditionStatus
		reason  string
		lag     int64
	}{
		{"a", v1beta2.MemberRoleLearner, corev1.ConditionTrue, "", 2000},
		{"b", v1beta2.MemberRoleLeader, corev1.ConditionTrue, "", 0},
		{"c", v1beta2.MemberRolePending, corev1.ConditionFalse, string(ReasonUnresponsive), 4900},
		{"d", v1beta2.MemberRoleFollower, corev1.ConditionFalse, string(ReasonUnresponsive), 4900},
		{"e", v1beta2.MemberRoleFollower, corev1.ConditionTrue, "", 4900},
		{"f", v1beta2.MemberRoleFollower, corev1.ConditionUnknown, string(ReasonUnresponsive), 4900},
	}
	if len(got.MemberStatuses) != len(want) {
		t.Fatalf("%d member statuses, want %d", len(got.MemberStatuses), len(want))
	}
	for i, w := range want {
		s := got.MemberStatuses[i]
		if s.Name != w.name || s.Role != w.role || s.Healthy != w.healthy || s.Reason != w.reason || s.RaftLag != w.lag {
			t.Errorf("member %d: %+v, want %+v", i, s, w)
		}
	}
	if d := got.MemberStatuses[3]; d.Claim != "d" || d.Pod != "d" || d.Node != "node-d" {
		t.Errorf("member d: claim %q, pod %q, node %q", d.Claim, d.Pod, d.Node)
	}
}

func TestVersionsInStatus(t *testing.T) {
	for _, tt := range []struct {
		name, members, spec, current, target string
		edits                                []func(*Observed)
	}{
		{"at rest", "a b c", testVersion, testVersion, "", nil},
		{"moving", "a b:v=3.7.0,podv=3.7.0 c", "3.7.0", testVersion, "3.7.0", nil},
		{"the slowest counts even if it does not respond", "a:v=3.7.0,podv=3.7.0 b:v=3.7.0,podv=3.7.0 c:down", "3.7.0", testVersion, "3.7.0", nil},
		{"no member responds: what was known stays", "a:down b:down c:down", testVersion, testVersion, "", edits(noQuorum)},
		{"what a volume is to run is a plan", "a b c:claimv=3.6.10,nopod", testVersion, testVersion, "", edits(lastSaid(testVersion))},
		{"what a new member is to run is a plan", "a b c:learner,unstarted,neverran,podv=3.6.10", testVersion, testVersion, "", nil},
		{"a container that was started may run what it was made for", "a b c:down,podv=3.6.10", testVersion, "3.6.10", testVersion, edits(lastSaid(testVersion))},
		{"not started", "", testVersion, "", "", edits(unresponsive)},
	} {
		got := statusOf(observed(t, 3, tt.members, append(tt.edits, wants(tt.spec))...))
		if got.CurrentVersion != tt.current || got.TargetVersion != tt.target {
			t.Errorf("%s: current %q, target %q; want %q, %q", tt.name, got.CurrentVersion, got.TargetVersion, tt.current, tt.target)
		}
	}
}

func TestBlockedBy(t *testing.T) {
	o := observed(t, 3, "a b:down c:down", noQuorum)
	first := statusOf(o)
	if first.BlockedBy == nil || first.BlockedBy.Reason != "QuorumLost" || !first.BlockedBy.Since.Time.Equal(testNow) {
		t.Fatalf("blockedBy %+v", first.BlockedBy)
	}

	o.Cluster.Status = first
	o.Now = testNow.Add(time.Hour)
	o.Etcd.Err = "another message"
	if second := statusOf(o); !second.BlockedBy.Since.Time.Equal(testNow) {
		t.Errorf("the time of the same wait moved to %v", second.BlockedBy.Since)
	}

	o = observed(t, 3, "a b c:learner,unstarted")
	o.Cluster.Status = first
	o.Now = testNow.Add(time.Hour)
	if third := statusOf(o); third.BlockedBy.Reason != "WaitingForMember" || third.BlockedBy.Since.Time.Equal(testNow) {
		t.Errorf("another wait: %+v", third.BlockedBy)
	}

	o = observed(t, 3, "a b c")
	o.Cluster.Status = first
	if fourth := statusOf(o); fourth.BlockedBy != nil {
		t.Errorf("no wait: %+v", fourth.BlockedBy)
	}
}

// TestAlternatingWait: a wait whose reason goes to and fro is Stalled after its bound.
func TestAlternatingWait(t *testing.T) {
	bootstrapping := func(p Pod) Observed {
		p.Name, p.UID, p.Owned, p.Version = "a", "pod-a", true, testVersion
		return observed(t, 3, "", unresponsive, func(o *Observed) { o.Pods = append(o.Pods, p) })
	}
	runs, ended := Pod{Running: true}, Pod{Waiting: "CrashLoopBackOff"}
	for name, test := range map[string]struct {
		looks   []Observed
		stalled bool
	}{
		"a container that ends again and again": {[]Observed{bootstrapping(runs), bootstrapping(ended), bootstrapping(runs), bootstrapping(ended)}, true},
		"a quorum that comes and goes":          {[]Observed{observed(t, 3, "a b:down c:down", noQuorum), observed(t, 3, "a b c", noQuorum), observed(t, 3, "a b:down c:down", noQuorum)}, true},
		"a container that could not be created": {[]Observed{bootstrapping(Pod{Waiting: "ContainerCreating"}), bootstrapping(Pod{Waiting: "CreateContainerConfigError: no secret"})}, false},
		"another wait":                          {[]Observed{bootstrapping(Pod{Waiting: "ErrImagePull"}), bootstrapping(runs)}, false},
	} {
		var status v1beta2.ClusterStatus
		for i := range test.looks {
			o := test.looks[i]
			o.Now = testNow.Add(time.Duration(i) * waits.Late)
			if i > 0 {
				o.Cluster.Status.BlockedBy = status.BlockedBy
			}
			status = statusOf(o)
		}
		if c := find(status, v1beta2.ClusterConditionStalled); (c != nil) != test.stalled {
			t.Errorf("%s: Stalled is %+v while it waits for %+v", name, c, status.BlockedBy)
		}
	}
}

// TestStatusAtRest makes sure that a cluster at rest yields the same status again,
// whatever changes all the time: otherwise every look would be a write.
func TestStatusAtRest(t *testing.T) {
	before := func(o *Observed) {
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].DBSize = 100 << 20
		}
	}
	rest := observed(t, 3, "a b c:claim", before)
	written := statusOf(rest)
	for name, edit := range map[string]func(*Observed){
		"nothing":            func(*Observed) {},
		"time":               func(o *Observed) { o.Now = o.Now.Add(time.Hour) },
		"raft index":         func(o *Observed) { o.Etcd.Members[0].RaftIndex += 500 },
		"a little more data": func(o *Observed) { o.Etcd.Members[1].DBSize += 5 << 20 },
		"a little less data": func(o *Observed) { o.Etcd.Members[1].DBSize -= 5 << 20 },
		"another new name":   func(o *Observed) { o.NewName = "c-other" },
		"order of the pods":  func(o *Observed) { slices.Reverse(o.Pods) },
		"order of the PVCs":  func(o *Observed) { slices.Reverse(o.PVCs) },
	} {
		o := observed(t, 3, "a b c:claim", before)
		o.Cluster.Status = *written.DeepCopy()
		edit(&o)
		if diff := cmp.Diff(written, statusOf(o)); diff != "" {
			t.Errorf("%s changed the status (-before +after):\n%s", name, diff)
		}
	}
	for name, edit := range map[string]func(*Observed){
		"much more data": func(o *Observed) { o.Etcd.Members[1].DBSize *= 2 },
		"much behind":    func(o *Observed) { o.Etcd.Members[0].RaftIndex += 5000 },
		"a new leader":   func(o *Observed) { lead(o, 2) },
		"generation":     func(o *Observed) { o.Cluster.Generation++ },
	} {
		o := observed(t, 3, "a b c:claim", before)
		o.Cluster.Status = *written.DeepCopy()
		edit(&o)
		if cmp.Diff(written, statusOf(o)) == "" {
			t.Errorf("%s did not change the status", name)
		}
	}
}

func lead(o *Observed, id uint64) {
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Leader = id
	}
}

// TestStatusKeepsWhatOthersWrite: the conditions and the backup of other writers stay.
func TestStatusKeepsWhatOthersWrite(t *testing.T) {
	o := observed(t, 3, "a b c")
	other := v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionBackupHealthy, Status: corev1.ConditionTrue, LastUpdateTime: "then"}
	backup := &v1beta2.LastBackup{Name: "b", Time: metav1.NewTime(testNow)}
	o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{other}
	o.Cluster.Status.LastBackup = backup
	got := statusOf(o)
	if !slices.Contains(got.Conditions, other) {
		t.Errorf("conditions %v", got.Conditions)
	}
	if diff := cmp.Diff(backup, got.LastBackup); diff != "" {
		t.Error(diff)
	}
}

func TestServiceInStatus(t *testing.T) {
	for state, want := range map[ObjectState]string{Missing: "", NotOwned: "", Current: "c-client", Drifted: "c-client"} {
		got := statusOf(observed(t, 3, "a b c", clients(state)))
		if got.ServiceName != want || (want != "") != (got.ClientPort == clientPort) {
			t.Errorf("client service %d: %q:%d, want %q", state, got.ServiceName, got.ClientPort, want)
		}
	}
	if got := statusOf(observed(t, 3, "a b c")); got.Selector != "app=etcd,etcd_cluster=c" || got.ObservedGeneration != 7 {
		t.Errorf("selector %q, generation %d", got.Selector, got.ObservedGeneration)
	}
}

// TestRaftIndexWithoutAQuorum: a member of a quorum that the controller does not reach commits all
// the time. That costs a status write now and then, and not at every look.
func TestRaftIndexWithoutAQuorum(t *testing.T) {
	const text = "a:noleader,index=90 b:down,index=0 c:down,index=0"
	written := statusOf(observed(t, 3, text, noQuorum))
	for name, test := range map[string]struct {
		edit    func(*Observed)
		written bool
	}{
		"more entries":                 {func(o *Observed) { o.Etcd.Members[0].RaftIndex += 7 }, false},
		"more entries after a while":   {func(o *Observed) { o.Etcd.Members[0].RaftIndex += 7; o.Now = o.Now.Add(raftIndexPause) }, true},
		"by a clock that was set back": {func(o *Observed) { o.Etcd.Members[0].RaftIndex += 7; o.Now = o.Now.Add(-time.Minute) }, true},
		"fewer entries":                {func(o *Observed) { o.Etcd.Members[0].RaftIndex -= 7 }, true},
		"another member responds":      {func(o *Observed) { o.Etcd.Members[1].RaftIndex = 91 }, true},
		"nothing new after a while":    {func(o *Observed) { o.Now = o.Now.Add(raftIndexPause) }, false},
	} {
		o := observed(t, 3, text, noQuorum)
		o.Cluster.Status = *written.DeepCopy()
		test.edit(&o)
		if diff := cmp.Diff(written, statusOf(o)); (diff != "") != test.written {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}
