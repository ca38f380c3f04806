// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// machines run an etcd that a cluster takes over. Each responds at a URL.
type machines struct {
	*parted
	Cache

	at   map[string]etcd.MemberHealth
	list etcd.Membership
	// own are the lists of single members, by their URLs, where they are not that list.
	own map[string]etcd.Membership
	// hangs is a URL that does not respond until the request ends.
	hangs string
	asked []string
}

func (m *machines) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	results := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		m.asked = append(m.asked, e.URL)
		where := e.URL
		if _, elsewhere := m.at[e.Address]; elsewhere {
			where = e.Address
		}
		if e.URL == m.hangs {
			<-ctx.Done()
		}
		health, responds := m.at[where]
		results[e.Name] = etcd.StatusResult{Health: health}
		if !responds {
			results[e.Name] = etcd.StatusResult{Err: &etcd.Error{Op: "status", Member: e.Name, Kind: etcd.ErrUnavailable}}
		}
	}
	return results
}

func (m *machines) Members(_ context.Context, target etcd.Target) (etcd.Membership, error) {
	if len(target.Endpoints) == 0 {
		return etcd.Membership{}, &etcd.Error{Op: "list members", Kind: etcd.ErrUnavailable}
	}
	return m.list, nil
}

func (m *machines) OwnMembers(ctx context.Context, _ etcd.Target, e etcd.Endpoint) (etcd.Membership, error) {
	if ctx.Err() != nil {
		return etcd.Membership{}, ctx.Err()
	}
	if own, differs := m.own[e.URL]; differs {
		return own, nil
	}
	return m.list, nil
}

func (m *machines) FailedReads(context.Context, etcd.Target) map[string]error { return nil }

func (m *machines) ClusterVersion(context.Context, etcd.Target, etcd.Endpoint) (string, error) {
	return "3.6.0", nil
}

// Cluster implements Cache: there is one other EtcdCluster.
func (m *machines) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	if namespace == "n" && name == "other" {
		return &v1beta2.EtcdCluster{}, nil
	}
	return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), name)
}

// GetCluster implements Objects: the API tells nothing about the namespace closed.
func (m *machines) GetCluster(_ context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	if namespace == "closed" {
		return nil, apierrors.NewForbidden(v1beta2.Resource("etcdclusters"), name, nil)
	}
	return nil, apierrors.NewNotFound(v1beta2.Resource("etcdclusters"), name)
}

// GetSecret implements Objects: there is no Secret.
func (m *machines) GetSecret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

const oldID = 0xabc

func newMachines() *machines {
	at := map[string]etcd.MemberHealth{}
	list := etcd.Membership{ClusterID: oldID}
	for i, name := range []string{"x", "y", "z"} {
		id := uint64(i + 1)
		at["http://"+name+":2379"] = etcd.MemberHealth{ID: id, ClusterID: oldID, Leader: 1, Version: "3.6.11"}
		list.Members = append(list.Members, etcd.Member{ID: id, Name: name, PeerURLs: []string{"http://" + name + ":2380"}, ClientURLs: []string{"http://" + name + ":2379"}})
	}
	m := &machines{parted: &parted{oneMember: stopped()}, at: at, list: list}
	m.cluster.Status = v1beta2.ClusterStatus{}
	m.cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://x:2379"}}}
	return m
}

func (m *machines) observe(t *testing.T, edits ...func(*seen)) *run {
	t.Helper()
	r := &run{Reconciler: &Reconciler{Config: Config{Cache: m, Etcd: m, Objects: m, Waker: m}}, seen: &seen{Observed: planner.Observed{Cluster: m.cluster}}}
	r.key = types.NamespacedName{Namespace: m.cluster.Namespace, Name: m.cluster.Name}
	for _, edit := range edits {
		edit(r.seen)
	}
	observeEtcd(t.Context(), r, nil)
	return r
}

func healthy(r *run) []string {
	var names []string
	for _, m := range r.seen.Etcd.Members {
		if m.Unmanaged && m.Health == planner.Healthy {
			names = append(names, m.Name)
		}
	}
	return names
}

// TestOldMembersAreFound: the members behind one endpoint are found at the URLs that they advertise.
func TestOldMembersAreFound(t *testing.T) {
	t.Parallel()
	m := newMachines()
	r := m.observe(t)
	if !r.seen.Etcd.Linearizable || r.seen.Etcd.ClusterID != oldID {
		t.Fatalf("the list was not read: %+v", r.seen.Etcd)
	}
	if got := healthy(r); !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("healthy are %v", got)
	}
	if e, found := r.seen.endpoint("z"); !found || e.URL != "http://z:2379" || len(r.seen.voters.Endpoints) != 3 {
		t.Errorf("z is at %+v, voters are %+v", e, r.seen.voters.Endpoints)
	}
	want := []resources.Peer{{Name: "y", URL: "http://y:2380"}, {Name: "c-new", URL: "http://c-new.c.n.svc:2380"}}
	if diff := cmp.Diff(want, peers(r.seen, []string{"y", "c-new"})); diff != "" {
		t.Errorf("the peers of a new member: %s", diff)
	}
}

// TestOldMembersThatAreNotFound: an old member counts by the ID that responds, and by nothing else.
func TestOldMembersThatAreNotFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*machines)
		healthy []string
		asked   string // gets no request
	}{
		"another member responds at the URL":           {func(m *machines) { m.at["http://z:2379"] = m.at["http://y:2379"] }, []string{"x", "y"}, ""},
		"a member of another etcd responds at the URL": {func(m *machines) { m.at["http://z:2379"] = etcd.MemberHealth{ID: 3, ClusterID: 1, Leader: 1} }, []string{"x", "y"}, ""},
		"a member that knows no leader": {func(m *machines) {
			m.at["http://z:2379"] = etcd.MemberHealth{ID: 3, ClusterID: oldID}
		}, []string{"x", "y"}, ""},
		"a member that advertises the machine of the controller": {func(m *machines) {
			m.list.Members[2].ClientURLs = []string{"http://127.0.0.1:2379", "http://localhost:2379", "http://169.254.169.254:80"}
		}, []string{"x", "y"}, "http://127.0.0.1:2379"},
		"a member that advertises another scheme": {func(m *machines) { m.list.Members[2].ClientURLs = []string{"https://z:2379"} }, []string{"x", "y"}, "https://z:2379"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachines()
			test.change(m)
			r := m.observe(t)
			if got := healthy(r); !slices.Equal(got, test.healthy) {
				t.Errorf("healthy are %v", got)
			}
			if test.asked != "" && slices.Contains(m.asked, test.asked) {
				t.Errorf("asked %v", m.asked)
			}
			if z := r.seen.Etcd.Members[2]; z.Health == planner.Unknown && z.Message == "" {
				t.Errorf("nothing says why z is not healthy: %+v", z)
			}
		})
	}
}

// TestShortNamesOfOldMembers: a short name is one of the cluster's namespace, and never one of another.
func TestShortNamesOfOldMembers(t *testing.T) {
	t.Parallel()
	m := newMachines()
	m.at["x.n.svc:2379"], m.at["z.n.svc:2379"] = m.at["http://x:2379"], m.at["http://z:2379"]
	delete(m.at, "http://x:2379")
	delete(m.at, "http://z:2379")
	r := m.observe(t)
	if got := healthy(r); !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("healthy are %v: %s", got, r.seen.Etcd.Err)
	}
	if e, _ := r.seen.endpoint("z"); e.URL != "http://z:2379" || e.Address != "z.n.svc:2379" {
		t.Errorf("z is at %+v", e)
	}
	for _, text := range []string{"http://10.0.0.1:2379", "http://[fd00::1]:2379", "http://etcd-0.etcd.n.svc:2379", "http://localhost:2379"} {
		if got := at(etcd.Endpoint{}, text, "n"); got.Address != "" {
			t.Errorf("%s gave %+v", text, got)
		}
	}
	for text, want := range map[string]string{"http://etcd:2379": "etcd.n.svc:2379", "http://etcd-0.etcd:2379": "etcd-0.etcd.n.svc:2379", "http://etcd.example.:2379": ""} {
		if got := at(etcd.Endpoint{}, text, "n"); got.URL != text || got.Address != want {
			t.Errorf("%s gave %+v, want the address %q", text, got, want)
		}
	}
}

// TestOldMembersWithoutTheirData: old members that start again without their data have the same IDs, and
// a member list without the members of the cluster. While a voter of the cluster may hold the data,
// that list does not count.
func TestOldMembersWithoutTheirData(t *testing.T) {
	t.Parallel()
	voter := v1beta2.MemberStatus{Name: "c-a", ID: "a", Role: v1beta2.MemberRoleFollower}
	for name, test := range map[string]struct {
		edit func(*seen)
		role v1beta2.MemberRole
		read bool
	}{
		"the PVC of a voter exists":     {func(s *seen) { s.PVCs = []planner.PVC{{Name: "c-a", Owned: true}} }, voter.Role, false},
		"the pod of a voter exists":     {func(s *seen) { s.Pods = []planner.Pod{{Name: "c-a", Owned: true}} }, voter.Role, false},
		"the label of a pod says voter": {func(s *seen) { s.Pods = []planner.Pod{{Name: "c-a", Owned: true, Role: planner.PodVoter}} }, v1beta2.MemberRoleLearner, false},
		"the pod of a voter has ended": {func(s *seen) {
			s.Pods = []planner.Pod{{Name: "c-a", Owned: true, Finished: true, Role: planner.PodVoter}}
		}, voter.Role, true},
		"nothing of a voter exists":         {func(*seen) {}, voter.Role, true},
		"a learner holds a copy of nothing": {func(s *seen) { s.Pods = []planner.Pod{{Name: "c-a", Owned: true, Role: planner.PodLearner}} }, v1beta2.MemberRoleLearner, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachines()
			own := voter
			own.Role = test.role
			m.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{own, {Name: "x", ID: "1", Unmanaged: true}}
			if got := m.observe(t, test.edit).seen.Etcd.Linearizable; got != test.read {
				t.Errorf("the list of the old members counts: %t", got)
			}
		})
	}
}

// TestOldMembersListTheOwnVoters: while no voter of the cluster returns the list, that of the old members counts if it names
// each voter that may exist as a voter with its ID. Old members without their data cannot know these IDs.
func TestOldMembersListTheOwnVoters(t *testing.T) {
	t.Parallel()
	reported := func(name, id string, role v1beta2.MemberRole) func(*seen) {
		return func(s *seen) {
			s.Cluster.Status.MemberStatuses = append(s.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{Name: name, ID: id, Role: role})
		}
	}
	pvc := func(name string) func(*seen) {
		return func(s *seen) { s.PVCs = append(s.PVCs, planner.PVC{Name: name, Owned: true}) }
	}
	nothing := func(*seen) {}
	for name, test := range map[string]struct {
		edit   func(*seen)
		change func(*etcd.Membership)
		says   string
	}{
		"each with its ID":                   {nothing, func(*etcd.Membership) {}, ""},
		"not with its ID":                    {nothing, func(l *etcd.Membership) { l.Members[3].ID = 8 }, "c-a"},
		"not as a voter":                     {nothing, func(l *etcd.Membership) { l.Members[3].Learner = true }, "c-a"},
		"another member has its ID":          {nothing, func(l *etcd.Membership) { l.Members[3].Name, l.Members[3].PeerURLs = "y", nil }, "c-a"},
		"another cluster":                    {nothing, func(l *etcd.Membership) { l.ClusterID = 1 }, "cluster 1"},
		"no record":                          {func(s *seen) { s.Record.ClusterID = "unknown" }, func(*etcd.Membership) {}, "cluster abc"},
		"a voter without a pod and a PVC":    {reported("c-b", "9", v1beta2.MemberRoleFollower), func(*etcd.Membership) {}, "c-b"},
		"a PVC that no status names":         {pvc("c-b"), func(*etcd.Membership) {}, "c-b"},
		"a PVC of a member that was removed": {func(s *seen) { pvc("c-b")(s); s.Record.Removed = []string{"c-b"} }, func(*etcd.Membership) {}, ""},
		"a learner":                          {func(s *seen) { pvc("c-b")(s); reported("c-b", "9", v1beta2.MemberRoleLearner)(s) }, func(*etcd.Membership) {}, ""},
		"a learner whose pod says voter": {func(s *seen) {
			s.Pods = []planner.Pod{{Name: "c-b", Owned: true, Role: planner.PodVoter}}
			reported("c-b", "9", v1beta2.MemberRoleLearner)(s)
		}, func(*etcd.Membership) {}, "c-b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachines()
			m.list.Members = append(m.list.Members, etcd.Member{ID: 7, Name: "c-a", PeerURLs: []string{resources.PeerURL(m.cluster, "c-a")}})
			m.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "c-a", ID: "7", Role: v1beta2.MemberRoleLeader}, {Name: "x", ID: "1", Unmanaged: true}}
			test.change(&m.list)
			r := m.observe(t, func(s *seen) { s.Record.ClusterID = "abc" }, pvc("c-a"), test.edit)
			if r.seen.Etcd.Linearizable != (test.says == "") || !strings.Contains(r.seen.Etcd.Err, test.says) {
				t.Errorf("the list counts: %t, %q", r.seen.Etcd.Linearizable, r.seen.Etcd.Err)
			}
			if got := healthy(r); test.says == "" && (!slices.Equal(got, []string{"x", "y", "z"}) || len(r.seen.voters.Endpoints) != 3) {
				t.Errorf("healthy are %v, voters %v", got, r.seen.voters.Endpoints)
			}
		})
	}
}

// TestOldMembersFollowTheSameLeader: an old member that follows another leader than the voters of the
// cluster does not count.
func TestOldMembersFollowTheSameLeader(t *testing.T) {
	t.Parallel()
	m := newMachines()
	own := m.cluster.DeepCopy()
	pod := resources.Pod(own, resources.MemberPod{Name: "c-a"})
	pod.Status.PodIP, pod.Status.Phase = "10.0.0.1", corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	m.at["10.0.0.1:2379"] = etcd.MemberHealth{ID: 7, ClusterID: oldID, Leader: 1}
	m.at["http://z:2379"] = etcd.MemberHealth{ID: 3, ClusterID: oldID, Leader: 3}
	m.list.Members = append(m.list.Members, etcd.Member{ID: 7, Name: "c-a", PeerURLs: []string{resources.PeerURL(own, "c-a")}})
	r := &run{Reconciler: &Reconciler{Config: Config{Cache: m, Etcd: m, Objects: m, Waker: m}}, seen: &seen{Observed: planner.Observed{Cluster: m.cluster}}}
	observeEtcd(t.Context(), r, []*corev1.Pod{pod})
	if got := healthy(r); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("healthy are %v", got)
	}
}

// TestNamesOfOldMembers: etcd takes any name, and the same name twice.
func TestNamesOfOldMembers(t *testing.T) {
	t.Parallel()
	m := newMachines()
	m.list.Members[0].Name, m.list.Members[1].Name, m.list.Members[2].Name = "default", "default", "a=b,c"
	m.list.Members[2].PeerURLs = []string{"http://z:2380", "http://z:2390"}
	r := m.observe(t)
	if got := healthy(r); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the names are %v", got)
	}
	if got := peers(r.seen, []string{"3"}); len(got) != 2 || got[0].Name != got[1].Name {
		t.Errorf("a member with two URLs: %+v", got)
	}
}

// TestUnusableEndpoints: without usable endpoints there is no member list.
func TestUnusableEndpoints(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*machines)
		says   string
	}{
		"no response": {func(m *machines) { clear(m.at) }, "status at http://x:2379"},
		"two etcds": {func(m *machines) {
			m.cluster.Spec.Bootstrap.Existing.ClientEndpoints = []string{"http://x:2379", "http://w:2379"}
			m.at["http://w:2379"] = etcd.MemberHealth{ID: 9, ClusterID: 1, Leader: 9}
		}, "belong to different etcd clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachines()
			test.change(m)
			r := m.observe(t)
			if r.seen.Etcd.Linearizable || !strings.Contains(r.seen.Etcd.Err, test.says) {
				t.Errorf("linearizable %t: %s", r.seen.Etcd.Linearizable, r.seen.Etcd.Err)
			}
		})
	}
}

// TestMembersOfAnotherCluster: the etcd of another EtcdCluster is known by the peer URLs in its own list, and gets no request
// that changes members. An endpoint that a tenant runs may return a list that hides it, with the same cluster ID.
func TestMembersOfAnotherCluster(t *testing.T) {
	t.Parallel()
	others := etcd.Membership{ClusterID: oldID, Members: []etcd.Member{{ID: 2, Name: "other-a", PeerURLs: []string{"http://other-a.other.n.svc:2380"}}}}
	const ofOthers = "http://y:2379"
	for name, test := range map[string]struct {
		change func(*machines)
		of     string
		voters int
	}{
		"all members":            {func(m *machines) { m.list = others }, "n/other", 0},
		"none":                   {func(m *machines) { m.list.Members[1].PeerURLs = []string{"http://etcd-0.etcd.n.svc:2380"} }, "", 3},
		"of another namespace":   {func(m *machines) { m.list.Members[1].PeerURLs = []string{"http://etcd-0.etcd.open.svc:2380"} }, "", 3},
		"of one that is closed":  {func(m *machines) { m.list.Members[1].PeerURLs = []string{"http://a.c.closed.svc:2380"} }, "", 0},
		"an advertised endpoint": {func(*machines) {}, "n/other", 2},
		"a given endpoint": {func(m *machines) {
			m.cluster.Spec.Bootstrap.Existing.ClientEndpoints = []string{"http://x:2379", ofOthers}
			m.list.Members[1].ClientURLs = nil
		}, "n/other", 2},
	} {
		m := newMachines()
		if test.of == "n/other" {
			m.own = map[string]etcd.Membership{ofOthers: others}
		}
		test.change(m)
		r := m.observe(t)
		if r.seen.Etcd.OfCluster != test.of || len(r.seen.voters.Endpoints) != test.voters {
			t.Errorf("%s: of %q, voters %v; want %q and %d voters", name, r.seen.Etcd.OfCluster, r.seen.voters.Endpoints, test.of, test.voters)
		}
		for _, e := range slices.Concat(r.seen.voters.Endpoints, r.seen.target.Endpoints) {
			if test.of != "" && e.URL == ofOthers {
				t.Errorf("%s: requests reach the etcd of another EtcdCluster at %s", name, e.Name)
			}
		}
	}
}

// TestOldMemberBesideOneThatHangs: an old member that drops packets has the status of the others last as long as it may. Their
// lists are read after that.
func TestOldMemberBesideOneThatHangs(t *testing.T) {
	t.Parallel()
	m := newMachines()
	delete(m.at, "http://z:2379")
	m.hangs = "http://z:2379"
	if got := healthy(m.observe(t)); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("healthy are %v", got)
	}
}

// TestAdvertisedURLsAreBounded: a member list names only so many URLs that are followed.
func TestAdvertisedURLsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMachines()
	for i := range 1000 {
		m.list.Members[2].ClientURLs = append(m.list.Members[2].ClientURLs, fmt.Sprintf("http://u%d.n.svc:2379", i))
	}
	if m.observe(t); len(m.asked) > 2*maxAdvertised {
		t.Errorf("requests for the status of %d endpoints", len(m.asked))
	}
}

// TestNoRequestAfterATakeOver: when no old member is left, its endpoints get no request, and a list
// with another cluster ID than the record has no voters of it.
func TestNoRequestAfterATakeOver(t *testing.T) {
	t.Parallel()
	m := newMachines()
	m.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "c-a", ID: "1"}}
	if m.observe(t); len(m.asked) > 0 {
		t.Errorf("asked %v", m.asked)
	}
	m.cluster.Status.MemberStatuses[0].Unmanaged = true
	if m.observe(t); len(m.asked) == 0 {
		t.Error("an old member in the status was not asked")
	}
}

// TestSecretOfTheRunningEtcd: without the client certificate there is no request, and the reason names the
// Secret.
func TestSecretOfTheRunningEtcd(t *testing.T) {
	t.Parallel()
	m := newMachines()
	m.cluster.ResourceVersion = "1"
	m.cluster.Spec.Bootstrap.Existing = &v1beta2.ExistingEtcd{ClientEndpoints: []string{"https://x:2379"}, TLSSecret: "none"}
	r := m.observe(t)
	if !strings.Contains(r.seen.Etcd.Err, "none") || !strings.Contains(r.seen.Etcd.Err, "it does not exist") || len(m.asked) > 0 {
		t.Errorf("%q, asked %v", r.seen.Etcd.Err, m.asked)
	}
}

// TestLastStatusKeepsOldMembers: without a list the status tells which members are unmanaged, and the
// record which were removed since.
func TestLastStatusKeepsOldMembers(t *testing.T) {
	t.Parallel()
	c := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	c.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "x", ID: "1", Unmanaged: true}, {Name: "c-a", ID: "2"}, {Name: "c-b", ID: "3"}}
	c.Status.Phase = v1beta2.ClusterPhaseRunning
	s := &seen{Observed: planner.Observed{Cluster: c}}
	s.Record.Removed = []string{"x", "c-b"} // the name of an unmanaged member may come back
	known := func() map[string]bool {
		got := map[string]bool{}
		for _, m := range s.lastKnown() {
			got[m.Name] = m.Unmanaged
		}
		return got
	}
	if got := known(); !maps.Equal(got, map[string]bool{"x": true, "c-a": false}) {
		t.Errorf("unmanaged are %v", got)
	}
	c.Status.Phase = v1beta2.ClusterPhaseCreating
	if got := known(); !maps.Equal(got, map[string]bool{"c-a": false}) {
		t.Errorf("members of an etcd that the cluster no longer joins are its members: %v", got)
	}
	c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{}}
	if got := known(); !maps.Equal(got, map[string]bool{"x": true, "c-a": false}) {
		t.Errorf("unmanaged are %v while the cluster is to join their etcd", got)
	}
}
