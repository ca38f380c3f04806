// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func TestRecordedClusterIDs(t *testing.T) {
	t.Parallel()
	moving := &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseCutover, OldClusterID: "a", ClusterID: "b"}
	for name, test := range map[string]struct {
		record resources.Record
		want   []uint64
	}{
		"no record":                              {resources.Record{}, nil},
		"an unknown ID":                          {resources.Record{ClusterID: "unknown"}, nil},
		"the ID of the record":                   {resources.Record{ClusterID: "a"}, []uint64{10}},
		"both while the data moves":              {resources.Record{ClusterID: "a", Recovery: moving}, []uint64{10, 11}},
		"only the new one after the data moved":  {resources.Record{ClusterID: "b", Recovery: &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, OldClusterID: "a", ClusterID: "b"}}, []uint64{11}},
		"none while that of the data is unknown": {resources.Record{ClusterID: "unknown", Recovery: moving}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := recordedClusterIDs(planner.Record{Record: test.record}); !slices.Equal(got, test.want) {
				t.Errorf("the IDs are %x", got)
			}
		})
	}
}

// lists are members that give their member lists away.
type lists struct {
	Etcd
	of   map[string]etcd.Membership
	late map[string]bool
}

func (l lists) OwnMembers(_ context.Context, _ etcd.Target, e etcd.Endpoint) (etcd.Membership, error) {
	if list, told := l.of[e.Name]; told {
		return list, nil
	}
	if l.late[e.Name] {
		return etcd.Membership{}, &etcd.Error{Op: "list own members", Member: e.Name, Kind: etcd.ErrTimeout}
	}
	return etcd.Membership{}, &etcd.Error{Op: "list own members", Member: e.Name, Kind: etcd.ErrLearner}
}

// TestMembersProveTheCluster: before a record says the cluster ID, only a response counts whose member list names the
// member of that pod, and one with the same cluster ID. Members of another cluster never tell the ID, also if they are most.
// If only learners respond, their IDs in the last status do.
func TestMembersProveTheCluster(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	// Each word is a response: a cluster ID, and + if the list proves it, - if it does not, t if the list comes too late,
	// ? for a learner, l for a learner whose ID the status has.
	for said, want := range map[string]struct {
		id            byte
		counts, other int
	}{
		"": {}, "1+": {'1', 1, 0}, "1+ 1+": {'1', 2, 0}, "1+ 2+": {0, 0, 2}, "1+ 1+ 2+": {'1', 2, 1}, "2+ 1+ 1+ 2+": {0, 0, 4}, "1+ 2+ 3+": {0, 0, 3},
		"2-": {0, 0, 1}, "2- 2-": {0, 0, 2}, "1+ 2- 2-": {'1', 1, 2}, "1+ 1-": {'1', 2, 0},
		"1?": {0, 0, 0}, "1? 1?": {0, 0, 0}, "1l": {'1', 1, 0}, "1l 1l": {'1', 2, 0}, "1l 2l": {0, 0, 0}, "1l 2?": {0, 0, 0}, "1+ 1?": {'1', 2, 0},
		"1+ 2?": {'1', 1, 1}, "1+ 2l": {'1', 1, 1}, "2- 1l": {0, 0, 1}, "1t": {0, 0, 0}, "1t 1t": {0, 0, 0}, "1l 2t": {0, 0, 0}, "1+ 1t": {'1', 2, 0},
	} {
		s, statuses := &seen{Observed: planner.Observed{Cluster: c.DeepCopy()}}, map[string]etcd.StatusResult{"silent": {Err: etcd.ErrTimeout}}
		s.target.Endpoints = []etcd.Endpoint{{Name: "silent"}}
		members := lists{of: map[string]etcd.Membership{}, late: map[string]bool{}}
		for i, text := range strings.Fields(said) {
			name, id, listed := fmt.Sprint("c-", i), uint64(text[0]), fmt.Sprint("c-", i)
			reported := v1beta2.MemberStatus{Name: name, ID: "8"}
			switch text[1] {
			case '-':
				listed = "c-another"
			case 't':
				members.late[name] = true
			case 'l':
				reported.ID = "7"
			}
			s.Cluster.Status.MemberStatuses = append(s.Cluster.Status.MemberStatuses, reported)
			if strings.ContainsAny(text, "+-") {
				members.of[name] = etcd.Membership{ClusterID: id, Members: []etcd.Member{{ID: 7, Name: listed, PeerURLs: []string{resources.PeerURL(c, listed)}}}}
			}
			statuses[name] = etcd.StatusResult{Health: etcd.MemberHealth{ID: 7, ClusterID: id}}
			s.target.Endpoints = append(s.target.Endpoints, etcd.Endpoint{Name: name})
		}
		s.identify(t.Context(), members, statuses)
		counts, other := 0, 0
		for _, a := range statuses {
			switch {
			case a.Err == nil:
				counts++
			case errors.Is(a.Err, etcd.ErrOtherCluster):
				other++
			}
		}
		ids := []uint64(nil)
		if want.id != 0 {
			ids = []uint64{uint64(want.id)}
		}
		if wants := strings.Contains(said, "l") && want.id != 0 && !strings.Contains(said, "+"); s.Etcd.Unlisted != wants {
			t.Errorf("%q: learners alone told the ID: %t", said, s.Etcd.Unlisted)
		}
		if counts != want.counts || other != want.other || !slices.Equal(s.clusterIDs, ids) || !slices.Equal(s.target.ClusterIDs, ids) {
			t.Errorf("%q: %d count, %d are of another cluster, the IDs are %x", said, counts, other, s.clusterIDs)
		}
	}
}

// TestOtherResponsesProveNothing: a list counts only with the ID and the cluster ID of the response.
func TestOtherResponsesProveNothing(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	own := etcd.Member{ID: 7, Name: "c-a", PeerURLs: []string{resources.PeerURL(c, "c-a")}}
	for name, test := range map[string]struct {
		list   etcd.Membership
		proves bool
	}{
		"the member of the pod":                   {etcd.Membership{ClusterID: 1, Members: []etcd.Member{own}}, true},
		"before it has published its name":        {etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, PeerURLs: own.PeerURLs}}}, true},
		"its name at another peer URL":            {etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, Name: "c-a", PeerURLs: []string{"http://c-a:2380"}}}}, true},
		"another name at another peer URL":        {etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, Name: "c-b", PeerURLs: []string{"http://c-a:2380"}}}}, false},
		"the peer URL of another member":          {etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, Name: "c-a", PeerURLs: []string{resources.PeerURL(c, "c-b")}}}}, false},
		"the ID of another member":                {etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 8, Name: "c-a", PeerURLs: own.PeerURLs}}}, false},
		"the list of the next to get the address": {etcd.Membership{ClusterID: 2, Members: []etcd.Member{own}}, false},
	} {
		err := prove(t.Context(), lists{of: map[string]etcd.Membership{"c-a": test.list}}, c, etcd.Target{}, etcd.Endpoint{Name: "c-a"}, etcd.MemberHealth{ID: 7, ClusterID: 1})
		if (err == nil) != test.proves || err != nil && !errors.Is(err, etcd.ErrOtherCluster) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestOtherClusterAtTheAddressOfAMember: the member does not respond, and the status says what does.
func TestOtherClusterAtTheAddressOfAMember(t *testing.T) {
	t.Parallel()
	other := etcd.StatusResult{Health: etcd.MemberHealth{ID: 1, ClusterID: 0xbad, Leader: 1}, Err: &etcd.Error{Op: "status", Kind: etcd.ErrOtherCluster}}
	s, _ := observeParted(t, map[string]etcd.StatusResult{"c-a": other}, &etcd.Error{Op: "list members", Kind: etcd.ErrUnavailable})
	if m := s.Etcd.Members[0]; m.Health != planner.Unknown || m.Reason != planner.ReasonClusterIDMismatch || !strings.Contains(m.Message, "bad") || planner.Responds(&m) {
		t.Errorf("the member is %+v", m)
	}
	if s.Etcd.ClusterID != 0 || s.Etcd.OtherClusterID != 0xbad || len(s.voters.Endpoints) != 0 {
		t.Errorf("cluster ID %x, other %x, voters %v", s.Etcd.ClusterID, s.Etcd.OtherClusterID, s.voters)
	}
}

// TestUnprovenResponseIsNotAwaited: without a record, what responds with the list of another cluster says no cluster ID. To await
// it would observe the cluster again at once, and again.
func TestUnprovenResponseIsNotAwaited(t *testing.T) {
	t.Parallel()
	other := etcd.StatusResult{Health: etcd.MemberHealth{ID: 2, ClusterID: 0xbad, Leader: 2}}
	s, p := observeParted(t, map[string]etcd.StatusResult{"c-a": other}, nil)
	if s.Etcd.ClusterID != 0 || s.Etcd.OtherClusterID != 0xbad || s.Etcd.Linearizable || len(s.voters.Endpoints) > 0 || len(p.awaited) > 0 {
		t.Errorf("cluster ID %x, other %x, voters %v, awaited %v", s.Etcd.ClusterID, s.Etcd.OtherClusterID, s.voters, p.awaited)
	}
}

// TestUnknownLearnerWaitsForAPerson: nothing confirms the cluster ID of a learner that no status names. It is reported, and
// nothing follows it.
func TestUnknownLearnerWaitsForAPerson(t *testing.T) {
	t.Parallel()
	statuses := map[string]etcd.StatusResult{"c-a": {Health: etcd.MemberHealth{ID: 2, ClusterID: 0xbad, Learner: true}}}
	s := &seen{Observed: planner.Observed{Cluster: &v1beta2.EtcdCluster{}}, target: etcd.Target{Endpoints: []etcd.Endpoint{{Name: "c-a"}}}}
	s.identify(t.Context(), lists{}, statuses)
	s.addRespondingMembers(statuses)
	s.noteOtherCluster(statuses)
	if s.Etcd.ClusterID != 0 || s.Etcd.OtherClusterID != 0xbad || len(s.Etcd.Members) > 0 {
		t.Errorf("cluster ID %x, other %x, members %v", s.Etcd.ClusterID, s.Etcd.OtherClusterID, s.Etcd.Members)
	}
}

// TestStatusOfAnyMemberListIsValid: etcdctl adds members of any name at any URL, and one that has not started
// has no name at all.
func TestStatusOfAnyMemberListIsValid(t *testing.T) {
	t.Parallel()
	names := []string{"", "c-own", "c-other", "1", "2", "a\x1b[31m\n", "\xff", strings.Repeat("x", 1<<16), "default", "default"}
	urls := [][]string{nil, {""}, {"http://c-own.c.n.svc:2380"}, {"http://old:2380", "http://\x00"}, {strings.Repeat("u", 1<<16)}}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
		if seed%3 == 0 {
			c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://x:2379"}}}
		}
		s := &seen{Observed: planner.Observed{Cluster: c, Record: planner.Record{Record: resources.Record{ClusterID: "a"}}}}
		s.Etcd.Linearizable, s.Etcd.ClusterID = true, 10
		for range random.IntN(8) {
			id := []uint64{0, 1, 2, 3, 0xffffffffffffffff, random.Uint64()}[random.IntN(6)]
			if slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == id }) {
				continue
			}
			s.Etcd.Members = append(s.Etcd.Members, member(c, etcd.Member{
				ID: id, Name: names[random.IntN(len(names))], PeerURLs: urls[random.IntN(len(urls))], Learner: random.IntN(2) == 0,
			}))
		}
		if c.Existing() != nil {
			s.nameOldMembers()
		}
		judge(&run{seen: s}, nil)
		status := planner.Status(s.Observed, planner.Decide(s.Observed))
		fitted, rejected := validation.FitClusterStatus(status, v1beta2.ClusterStatus{})
		duplicates := 0 // etcd itself does not list two members of one URL
		for _, m := range s.Etcd.Members {
			if !m.Unmanaged {
				duplicates++
			}
		}
		if len(rejected) > max(0, duplicates-1) {
			t.Fatalf("seed %d: the API rejects the status: %v", seed, rejected)
		}
		if again, _ := validation.FitClusterStatus(fitted, v1beta2.ClusterStatus{}); !cmp.Equal(again, fitted) {
			t.Fatalf("seed %d: the status does not stay", seed)
		}
	}
}

// atAddress is what a cache shows of a recovery member, and what responds at the address of its pod.
type atAddress struct {
	Cache
	*oneMember
	health etcd.MemberHealth
	list   etcd.Membership
}

func (a *atAddress) Pod(string, string) (*corev1.Pod, error)                   { return a.pod, nil }
func (a *atAddress) PVC(string, string) (*corev1.PersistentVolumeClaim, error) { return a.pvc, nil }

func (a *atAddress) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	return map[string]etcd.StatusResult{target.Endpoints[0].Name: {Health: a.health}}
}

func (a *atAddress) OwnMembers(context.Context, etcd.Target, etcd.Endpoint) (etcd.Membership, error) {
	return a.list, nil
}

// TestRecoveryMemberProvesItself: a member of another cluster at the address of the recovery member never tells the
// cluster ID with which the data goes on.
func TestRecoveryMemberProvesItself(t *testing.T) {
	t.Parallel()
	for listed, serves := range map[string]bool{"c-a": true, "c-another": false} {
		a := &atAddress{oneMember: stopped(), health: etcd.MemberHealth{ID: 7, Leader: 7, ClusterID: 1}}
		a.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		a.list = etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, PeerURLs: []string{resources.PeerURL(a.cluster, listed)}}}}
		s := &seen{Observed: planner.Observed{Cluster: a.cluster}}
		s.Record.Recovery = &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a"}
		if err := observeRecovery(t, &run{Reconciler: &Reconciler{Config: Config{Cache: a, Etcd: a, Objects: a}}, seen: s}); err != nil {
			t.Fatal(err)
		}
		if m := s.RecoveryMember; m.Pod == nil || m.Serves != serves || (m.ClusterID != 0) != serves {
			t.Errorf("its list names %s: it is %+v", listed, m)
		}
	}
}

// slowAPI tells whether nodes are read within the time limit of a request to etcd.
type slowAPI struct {
	*atAddress
	limited bool
}

func (a *slowAPI) GetNode(ctx context.Context, _ string) (*corev1.Node, error) {
	_, a.limited = ctx.Deadline()
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(7, 0)}}}}, nil
}

// TestNodesHaveTheirOwnTime: a recovery goes on although a busy Kubernetes takes longer for the nodes than etcd may take.
func TestNodesHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	a := &slowAPI{atAddress: &atAddress{oneMember: stopped(), health: etcd.MemberHealth{ID: 7, Leader: 7, ClusterID: 1}}}
	a.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	a.list = etcd.Membership{ClusterID: 1, Members: []etcd.Member{{ID: 7, PeerURLs: []string{resources.PeerURL(a.cluster, "c-a")}}}}
	s := &seen{Observed: planner.Observed{Cluster: a.cluster, Pods: []planner.Pod{{Name: "c-old", Owned: true, Node: "n"}}}}
	s.Record.Recovery = &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: "c-a"}
	if err := observeRecovery(t, &run{Reconciler: &Reconciler{Config: Config{Cache: a, Etcd: a, Objects: a}}, seen: s}); err != nil {
		t.Fatal(err)
	}
	if !s.RecoveryMember.Serves || a.limited || s.Pods[0].NodeReadySince.Unix() != 7 {
		t.Errorf("limited %t, it is %+v, the old pod is %+v", a.limited, s.RecoveryMember, s.Pods[0])
	}
}

// TestRecoveryMemberWithItsSourceIsObserved: the planner learns whether the pod of the recovery member mounts the PVC
// that the recovery reads.
func TestRecoveryMemberWithItsSourceIsObserved(t *testing.T) {
	t.Parallel()
	for _, dropped := range []bool{false, true} {
		a := &atAddress{oneMember: stopped()}
		recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a", Source: v1beta2.RecoverySource{Member: "c-old", PVC: "c-old"}}
		filling := *recovery
		filling.Phase = v1beta2.RecoveryPhaseFilling
		pod, err := resources.RecoveryPod(a.cluster, &filling, resources.MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		if dropped {
			resources.DropSource(pod)
		}
		a.pod = pod
		s := &seen{Observed: planner.Observed{Cluster: a.cluster}}
		s.Record.Recovery = recovery
		r := &run{Reconciler: &Reconciler{Config: Config{Cache: a, Etcd: a, Objects: a, AgentImage: "agent:2"}}, seen: s}
		if err := observeRecovery(t, r); err != nil {
			t.Fatal(err)
		}
		if m := s.RecoveryMember; m.MountsSource == dropped || !m.Pod.Fills || !m.Pod.OtherInitImage {
			t.Errorf("dropped %t: it is %+v, %+v", dropped, m, m.Pod)
		}
	}
}

// TestRecoveryMemberIsObservedAsItIsCreated: one that keeps its minor version is not outdated. Otherwise the
// controller would delete and create it for ever.
func TestRecoveryMemberIsObservedAsItIsCreated(t *testing.T) {
	t.Parallel()
	for phase, outdated := range map[v1beta2.RecoveryPhase]bool{v1beta2.RecoveryPhaseCutover: false, v1beta2.RecoveryPhaseFilling: true} {
		a := &atAddress{oneMember: stopped()}
		recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-a", Source: v1beta2.RecoverySource{Member: "c-old"}}
		a.cluster.Spec.Version = "3.6.8"
		pod, err := resources.RecoveryPod(atVersion(a.cluster, "3.5.26"), recovery, resources.MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		a.pod, a.pvc = pod, resources.PVC(a.cluster, "c-a")
		metav1.SetMetaDataAnnotation(&a.pvc.ObjectMeta, resources.AnnotationVersion, "3.5.26")
		s := &seen{Observed: planner.Observed{Cluster: a.cluster}}
		s.Record.Recovery = recovery
		if err := observeRecovery(t, &run{Reconciler: &Reconciler{Config: Config{Cache: a, Etcd: a, Objects: a}}, seen: s}); err != nil {
			t.Fatal(err)
		}
		if m := s.RecoveryMember; m.Pod == nil || m.Pod.Outdated != outdated {
			t.Errorf("%s: it is %+v", phase, m.Pod)
		}
	}
}

// observeRecovery reads the recovery member, and asks it.
func observeRecovery(t *testing.T, r *run) error {
	t.Helper()
	if err := observeRecoveryPod(r); err != nil {
		return err
	}
	return observeRecoveryMember(t.Context(), r)
}
