// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// parted are members without a quorum; each has its own member list.
type parted struct {
	*oneMember
	statuses map[string]etcd.StatusResult
	list     error
	awaited  []string
}

func (p *parted) Statuses(context.Context, etcd.Target) map[string]etcd.StatusResult {
	return p.statuses
}

func (p *parted) Members(context.Context, etcd.Target) (etcd.Membership, error) {
	return etcd.Membership{}, p.list
}

func (p *parted) OwnMembers(_ context.Context, _ etcd.Target, e etcd.Endpoint) (etcd.Membership, error) {
	if e.Name == "c-mute" {
		return etcd.Membership{}, &etcd.Error{Op: "list own members", Kind: etcd.ErrTimeout}
	}
	return etcd.Membership{Members: []etcd.Member{
		{ID: 1, Name: e.Name, PeerURLs: []string{resources.PeerURL(p.cluster, e.Name)}},
		{ID: 9, PeerURLs: []string{"http://elsewhere:2380"}},
	}}, nil
}

// Await and AwaitEnd implement Waker.
func (p *parted) Await(_ types.NamespacedName, _ etcd.Target, e etcd.Endpoint) {
	p.awaited = append(p.awaited, e.Name)
}

func (p *parted) AwaitEnd(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

// observeParted makes these members respond. Each has the ID by which the status knows it,
// unless its response has another ID.
func observeParted(t *testing.T, statuses map[string]etcd.StatusResult, list error) (*seen, *parted) {
	t.Helper()
	p := &parted{oneMember: stopped(), statuses: statuses, list: list}
	var pods []*corev1.Pod
	for name := range statuses {
		p.cluster.Status.MemberStatuses = append(p.cluster.Status.MemberStatuses, v1beta2.MemberStatus{ID: "1", Name: name, Role: v1beta2.MemberRoleFollower})
		pod := resources.Pod(p.cluster, resources.MemberPod{Name: name})
		pod.Status.PodIP, pod.Status.Phase = "10.0.0.1", corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: resources.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		pods = append(pods, pod)
	}
	s := &seen{Observed: planner.Observed{Cluster: p.cluster}}
	r := &Reconciler{Config: Config{Etcd: p, Objects: p, Waker: p}}
	observeEtcd(t.Context(), &run{Reconciler: r, seen: s}, pods)
	return s, p
}

// TestViews: without a quorum the controller asks each responding member for its own member
// list. A member with another ID than the status has for its name says nothing about the
// member of the status.
func TestViews(t *testing.T) {
	t.Parallel()
	health := func(id uint64, learner bool) etcd.StatusResult {
		return etcd.StatusResult{Health: etcd.MemberHealth{ID: id, Learner: learner, RaftIndex: 9}}
	}
	s, _ := observeParted(t, map[string]etcd.StatusResult{
		"c-votes": health(1, false), "c-learns": health(1, true), "c-mute": health(1, false), "c-other": health(2, false),
		"c-silent": {Err: &etcd.Error{Op: "status", Kind: etcd.ErrTimeout}},
	}, &etcd.Error{Op: "list members", Kind: etcd.ErrNoQuorum})
	got := map[string]*planner.View{}
	for _, m := range s.Etcd.Members {
		if m.View != nil {
			got[m.Name] = m.View
		}
	}
	want := map[string]*planner.View{
		"c-votes":  {Members: []planner.Member{{ID: 1, Name: "c-votes", Started: true}, {ID: 9, Name: "9", Unmanaged: true, PeerURLs: []string{"http://elsewhere:2380"}}}},
		"c-learns": {Learner: true},
		"c-mute":   {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the views: %s", diff)
	}
}

// TestDenied: a member that denies a request serves, so the controller does not wait for
// its start. It is not the same as a member that does not respond.
func TestDenied(t *testing.T) {
	t.Parallel()
	const leader = 7
	follows := etcd.StatusResult{Health: etcd.MemberHealth{ID: 1, Leader: leader}}
	denied, unresponsive := &etcd.Error{Op: "status", Kind: etcd.ErrDenied}, &etcd.Error{Op: "status", Kind: etcd.ErrUnavailable}
	for name, test := range map[string]struct {
		response   etcd.StatusResult
		list       error
		is, awaits bool
	}{
		"it denies its status":               {etcd.StatusResult{Err: denied}, nil, true, false},
		"it denies its member list":          {follows, denied, true, false},
		"it does not respond":                {etcd.StatusResult{Err: unresponsive}, nil, false, true},
		"it does not know the other members": {follows, unresponsive, false, false},
	} {
		s, p := observeParted(t, map[string]etcd.StatusResult{"c-a": test.response}, test.list)
		if s.Etcd.Denied != test.is || len(p.awaited) > 0 != test.awaits || s.Etcd.Err == "" {
			t.Errorf("%s: denied %t, %q is awaited, %q", name, s.Etcd.Denied, p.awaited, s.Etcd.Err)
		}
	}
}

// TestListTooLarge: a member that responds with too large a list is no member that does not respond.
func TestListTooLarge(t *testing.T) {
	t.Parallel()
	follows := etcd.StatusResult{Health: etcd.MemberHealth{ID: 1, Leader: 7}}
	for _, kind := range []error{etcd.ErrTooLarge, etcd.ErrUnavailable} {
		s, _ := observeParted(t, map[string]etcd.StatusResult{"c-a": follows}, &etcd.Error{Op: "list members", Kind: kind})
		if s.Etcd.ListTooLarge != (kind == etcd.ErrTooLarge) { //nolint:errorlint // the kinds themselves
			t.Errorf("%v: too large %t", kind, s.Etcd.ListTooLarge)
		}
	}
}

// TestVoterNeverBootstrapsAgain: the pod of a voter names only itself, whether the pod is
// recreated or changed. A pod that names other members is recognised.
func TestVoterNeverBootstrapsAgain(t *testing.T) {
	t.Parallel()
	n := &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
	r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n}}
	s := &seen{Observed: planner.Observed{Cluster: n.cluster}}
	may := map[string]bool{"c-a": true, "c-b": true}
	for _, joined := range []bool{false, true} {
		n.pod = nil
		action := planner.CreatePod{Name: "c-a", Peers: []string{"c-a", "c-b"}, Joined: joined}
		if err := carryOut(t.Context(), &run{Reconciler: r, seen: s}, action); err != nil {
			t.Fatal(err)
		}
		if o := observedPod(n.cluster, n.made); o.MayFill == joined || len(o.Peers) == len(may) == joined {
			t.Errorf("joined %t: made a pod that may fill %t, of %v", joined, o.MayFill, o.Peers)
		}
		n.pod = resources.Pod(n.cluster, resources.MemberPod{
			Name: "c-a", Bootstrap: true, InitialCluster: []resources.Peer{{Name: "c-a", URL: resources.PeerURL(n.cluster, "c-a")}},
		})
		n.pod.UID, n.calls = "pod-uid", nil
		if !observedPod(n.cluster, n.pod).MayFill {
			t.Fatal("the pod may not bootstrap: nothing is tested")
		}
		var labelled *corev1.Pod
		api := &labeller{n, &labelled}
		r := &Reconciler{Config: Config{Objects: api, Etcd: n, Gate: n, Recorder: n}}
		label := planner.LabelPod{Name: "c-a", UID: "pod-uid", Role: planner.PodVoter, Joined: joined}
		if err := carryOut(t.Context(), &run{Reconciler: r, seen: s}, label); err != nil {
			t.Fatal(err)
		}
		if changed := labelled != nil && !resources.MayFill(labelled); changed != joined {
			t.Errorf("joined %t: the pod may not begin again any more %t", joined, changed)
		}
	}
}

// labeller keeps the pod that was changed.
type labeller struct {
	*nursery
	pod **corev1.Pod
}

func (l *labeller) UpdatePod(_ context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	*l.pod = p
	return p, nil
}

// versions are members. Each of them knows a cluster version, or none.
type versions struct {
	*oneMember
	decided map[string]bool
	asked   []string
}

func (v *versions) ClusterVersion(_ context.Context, _ etcd.Target, e etcd.Endpoint) (string, error) {
	v.asked = append(v.asked, e.Name)
	if !v.decided[e.Name] {
		return "", etcd.ErrVersionUndecided
	}
	return "3.3.0", nil
}

// TestClusterVersionIsReadOnlyForAMemberThatJoinsAsAVoter: every voter must know it.
func TestClusterVersionIsReadOnlyForAMemberThatJoinsAsAVoter(t *testing.T) {
	t.Parallel()
	waiting := []planner.Pod{{Name: "c-waits"}}
	for _, test := range []struct {
		name         string
		version      string
		prepared     []planner.Pod
		linearizable bool
		decided      map[string]bool
		undecided    bool
		asked        int
	}{
		{"all voters know it", "3.3.27", waiting, true, map[string]bool{"c-a": true, "c-b": true}, false, 2},
		{"one voter does not", "3.3.27", waiting, true, map[string]bool{"c-a": true}, true, 2},
		{"no pod waits", "3.3.27", nil, true, nil, false, 0},
		{"no member list", "3.3.27", waiting, false, nil, false, 0},
		{"learners join before it is decided", "3.4.30", waiting, true, nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := &versions{oneMember: stopped(), decided: test.decided}
			s := &seen{Observed: planner.Observed{Cluster: v.cluster, Prepared: test.prepared}}
			s.Etcd.Linearizable = test.linearizable
			responses := map[string]etcd.StatusResult{}
			for _, name := range []string{"c-a", "c-b"} {
				s.voters.Endpoints = append(s.voters.Endpoints, etcd.Endpoint{Name: name})
				responses[name] = etcd.StatusResult{Health: etcd.MemberHealth{Version: test.version}}
			}
			observeClusterVersion(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Etcd: v}}, seen: s}, responses)
			if s.Etcd.VersionUndecided != test.undecided || len(v.asked) != test.asked {
				t.Errorf("undecided %v, asked %v", s.Etcd.VersionUndecided, v.asked)
			}
		})
	}
}

// TestViewedMembers: the members that the most advanced survivor knows are known, too. One that
// the status has named before keeps its place.
func TestViewedMembers(t *testing.T) {
	t.Parallel()
	view := func(names ...string) *planner.View {
		v := &planner.View{}
		for i, name := range names {
			v.Members = append(v.Members, planner.Member{ID: uint64(i + 1), Name: name, Started: true, Unmanaged: name == "elsewhere"})
		}
		return v
	}
	s := &seen{Observed: planner.Observed{Pods: []planner.Pod{{Name: "c-c", Owned: true, Waiting: "CrashLoopBackOff"}}}}
	s.Etcd.Members = []planner.Member{
		{ID: 1, Name: "c-a", RaftIndex: 7, View: view("c-a", "c-removed")},
		{ID: 2, Name: "c-b", RaftIndex: 9, View: view("c-a", "c-b", "c-c", "elsewhere")},
		{ID: 5, Name: "c-e"},
	}
	s.addViewedMembers()
	if len(s.Etcd.Members) != 4 {
		t.Fatalf("members %+v", s.Etcd.Members)
	}
	if m := s.Etcd.Members[3]; m.Name != "c-c" || m.ID != 3 || m.Health != planner.Unhealthy || m.Message != "it does not respond: CrashLoopBackOff" {
		t.Errorf("the viewed member is %+v", m)
	}
	s.Etcd.Members = []planner.Member{{ID: 1, Name: "c-a"}}
	if s.addViewedMembers(); len(s.Etcd.Members) != 1 {
		t.Errorf("no member has a view, and the members are %+v", s.Etcd.Members)
	}
}

// TestVoterThatRespondsAsLearner: a voter that has not applied its promotion does not count for
// the quorum. No read can show that its disk takes writes.
func TestVoterThatRespondsAsLearner(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                        string
		listed, responds, confirmed bool
		want                        planner.Health
	}{
		{"voter", false, false, true, planner.Healthy},
		{"learner", true, true, true, planner.Healthy},
		{"voter that responds as a learner", false, true, true, planner.Unhealthy},
		{"voter of the last status", false, true, false, planner.Healthy},
	} {
		s := &seen{Observed: planner.Observed{Cluster: stopped().cluster}}
		s.Etcd.Linearizable = test.confirmed
		s.Etcd.Members = []planner.Member{{ID: 1, Name: "c-a", Learner: test.listed}}
		judge(&run{Reconciler: &Reconciler{}, seen: s}, map[string]etcd.StatusResult{
			"c-a": {Health: etcd.MemberHealth{ID: 1, Leader: 2, Learner: test.responds}},
		})
		if got := s.Etcd.Members[0].Health; got != test.want {
			t.Errorf("%s: health %v, want %v", test.name, got, test.want)
		}
	}
}

// TestAwaitedVoter: while the only voter of an etcd without learners responds, the status comes to
// name the voter that was added to it and has not started. Nothing names it after that.
func TestAwaitedVoter(t *testing.T) {
	t.Parallel()
	owned := func(names ...string) (pods []planner.Pod) {
		for _, name := range names {
			pods = append(pods, planner.Pod{Name: name, Owned: true})
		}
		return pods
	}
	second := planner.Member{ID: 2, Name: "c-b"}
	for _, test := range []struct {
		name    string
		version string
		second  planner.Member
		pods    []planner.Pod
		pvcs    []planner.PVC
		want    int
	}{
		{"added, and not started", "3.3.27", second, owned("c-a", "c-b"), nil, 2},
		{"with its PVC", "3.3.27", second, owned("c-a", "c-b"), []planner.PVC{{Name: "c-a"}, {Name: "c-b"}}, 2},
		{"started, so that it may have left since", "3.3.27", planner.Member{ID: 2, Name: "c-b", Started: true}, owned("c-a", "c-b"), nil, 1},
		{"not added by this controller", "3.3.27", planner.Member{ID: 2, Unmanaged: true}, owned("c-a"), nil, 1},
		{"without a pod", "3.3.27", second, owned("c-a"), nil, 1},
		{"beside the pod of a third member", "3.3.27", second, owned("c-a", "c-b", "c-c"), nil, 1},
		{"beside the PVC of a third member", "3.3.27", second, owned("c-a", "c-b"), []planner.PVC{{Name: "c-c"}}, 1},
		{"in an etcd with learners", "3.5.26", second, owned("c-a", "c-b"), nil, 1},
	} {
		first := planner.Member{ID: 1, Name: "c-a", Started: true, Version: test.version}
		first.View = &planner.View{Members: []planner.Member{{ID: 1, Name: "c-a"}, test.second}}
		s := &seen{Observed: planner.Observed{Pods: test.pods, PVCs: test.pvcs}}
		s.Etcd.Members = []planner.Member{first}
		if s.addAwaitedVoter(); len(s.Etcd.Members) != test.want {
			t.Errorf("%s: the members are %+v", test.name, s.Etcd.Members)
		}
	}
}
