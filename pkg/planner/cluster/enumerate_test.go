// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The enumeration goes through every combination of a few facts about each member
// and about the cluster, and checks every plan and every status. Members differ only
// in these facts, so combinations are counted once, whatever their order; who leads
// is a fact of the cluster.

// exhaustive adds every combination for three members and more of them for four; it
// takes some minutes.
var exhaustive = flag.Bool("exhaustive", false, "enumerate the larger space of states")

// A status is looked at for every so many states, and every so many of these are
// written and computed again; both are prime, so that no fact is left out.
const (
	statusEvery = 7
	restEvery   = 11
)

// podState and memberKind are abstract values of what Observed says in more fields.
type podState byte

const (
	podReady podState = iota
	podNotReady
	podWaiting
	podTerminating
	podFinished
	podMissing
)

type memberKind byte

const (
	kindVoter memberKind = iota
	kindLearner
	kindUnstartedVoter
	kindUnstartedLearner
)

// shape is one member.
type shape struct {
	kind   memberKind
	health Health
	pod    podState
	claim  bool
	old    bool // its pod was made for the version before the declared one
	// leaving: its clients are sent elsewhere; routed: they are still led to it.
	leaving, routed bool
	stale           bool // its pod was made from another declaration
}

// alphabet returns the shapes that are possible.
func alphabet(kinds []memberKind, pods []podState, versions, leaving bool) []shape {
	var shapes []shape
	for _, k := range kinds {
		for _, h := range []Health{Healthy, Unhealthy, Unknown} {
			for _, p := range pods {
				if h == Healthy && (p == podFinished || p == podMissing || p == podWaiting) {
					continue // nobody answers from there
				}
				if h == Healthy && (k == kindUnstartedVoter || k == kindUnstartedLearner) {
					continue
				}
				for _, c := range []bool{false, true} {
					shapes = append(shapes, shape{kind: k, health: h, pod: p, claim: c})
					if versions && h == Healthy && k == kindVoter && !c {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, old: true})
					}
					if leaving && k == kindVoter && !c && p == podReady {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, leaving: true}, shape{kind: k, health: h, pod: p, leaving: true, routed: true})
						if h == Healthy {
							shapes = append(shapes, shape{kind: k, health: h, pod: p, routed: true})
						}
						if versions && h == Healthy {
							shapes = append(shapes, shape{kind: k, health: h, pod: p, old: true, routed: true}, shape{kind: k, health: h, pod: p, old: true, leaving: true})
						}
					}
					if versions && k == kindVoter && (h == Healthy && p == podReady || h == Unhealthy && p == podWaiting) {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, claim: c, stale: true})
					}
				}
			}
		}
	}
	return shapes
}

// surroundings is what is true of the cluster besides its members.
type surroundings struct {
	size         int
	leader       int // index of the leader; -1: they do not agree
	linearizable bool
	situation    situation
}

type situation byte

const (
	living situation = iota
	newborn
	onHold
	deleted
	serviceGone
	orphaned
	otherCluster
	strangeMember
	foreignService
	secured
	askedToRecover
	reseeded
	unpreparedPods
	startingPods
	interrupted
	situations
)

var memberNames = []string{"a", "b", "c", "d", "e"}

// build makes the observation. The object is shared between states that do not
// change it.
func (s surroundings) build(members []shape, o *Observed) {
	o.Pods, o.Claims, o.Etcd.Members = o.Pods[:0], o.Claims[:0], o.Etcd.Members[:0]
	for i, m := range members {
		s.addMember(i, m, o)
	}
	o.Etcd.Linearizable, o.Etcd.ClusterID = s.linearizable, testClusterID
	o.Cluster.Status.MemberStatuses = nil
	if s.leader >= 0 || !s.linearizable {
		sayStarted(o) // otherwise nobody has said it yet
	}
	agree(o)
	o.PeerService = PeerService{State: Current, Seed: "a", ClusterID: "c0ffee"}
	o.ClientService = Current
	c := o.Cluster
	c.Spec.Replicas, c.Spec.Paused, c.DeletionTimestamp = ptr.To(int32(s.size)), false, nil
	o.Certificates = nil
	c.Status.Recovery, o.Reseed = nil, Reseed{}
	c.Status.Phase = v1beta2.ClusterPhaseRunning
	switch s.situation {
	case newborn:
		o.PeerService.ClusterID, o.ClientService, c.Status.Phase = "", Missing, v1beta2.ClusterPhaseCreating
	case onHold:
		c.Spec.Paused = true
	case deleted:
		c.DeletionTimestamp = &metav1.Time{Time: testNow}
	case serviceGone:
		o.PeerService = PeerService{}
	case orphaned:
		o.Pods = append(o.Pods, Pod{Name: "x", UID: "pod-x", Owned: true, Running: true, Version: testVersion, Template: testTemplate})
		o.Claims = append(o.Claims, Claim{Name: "x", UID: "claim-x", Owned: true})
	case otherCluster:
		o.PeerService.ClusterID = "bad"
	case strangeMember:
		o.Etcd.Members = append(o.Etcd.Members, Member{ID: 99, Name: "stranger", Stranger: true, Started: true, Health: Healthy, Leader: uint64(s.leader + 1), Version: testVersion})
	case foreignService:
		o.PeerService = PeerService{State: Foreign}
	case secured:
		o.Certificates = []Certificate{{Use: v1beta2.CertificateUsePeer, Secret: "s", State: CertificateMissing}}
	case askedToRecover:
		asked()(o)
	case reseeded:
		recorded(v1beta2.RecoveryPhaseSeeding)(o)
		seedPod(0xbeef)(o)
	case living, situations, unpreparedPods, startingPods, interrupted:
	}
	s.prepare(o)
}

// prepare has pods wait for the members that are missing, unless the situation is about
// those: there are none, they do not run yet, or the controller was stopped before it
// admitted the pod of a member that it had added.
func (s surroundings) prepare(o *Observed) {
	prepareMissing(o)
	switch s.situation {
	case unpreparedPods:
		o.Prepared, o.PreparedClaims = nil, nil
	case startingPods:
		for i := range o.Prepared {
			o.Prepared[i].Running = false
		}
	case interrupted:
		for i := range o.Etcd.Members {
			if m := &o.Etcd.Members[i]; !m.Started {
				o.Prepared = append(o.Prepared, Pod{Name: m.Name, UID: "prepared-" + m.Name, Owned: true, Running: i%2 == 0, Version: testVersion, Template: testTemplate})
				o.Pods = slices.DeleteFunc(o.Pods, func(p Pod) bool { return p.Name == m.Name })
			}
		}
	default:
	}
}

func (s surroundings) addMember(i int, m shape, o *Observed) {
	name, version, template := memberNames[i], testVersion, testTemplate
	if m.stale {
		template = "before"
	}
	if m.old {
		version = "3.5.9"
	}
	learner := m.kind == kindLearner || m.kind == kindUnstartedLearner
	member := Member{
		ID: uint64(i + 1), Name: name, Health: m.health, Version: version, Learner: learner,
		Started: m.kind == kindVoter || m.kind == kindLearner,
	}
	if m.pod == podReady || m.pod == podNotReady {
		member.RaftIndex = uint64(80 + i)
	}
	if m.health == Healthy {
		member.Leader = uint64(s.leader + 1)
		if s.leader < 0 {
			member.Leader = uint64(1 + i%2)
		}
	} else {
		member.Version, member.Reason = "", ReasonNoAnswer
	}
	o.Etcd.Members = append(o.Etcd.Members, member)
	if m.claim {
		o.Claims = append(o.Claims, Claim{Name: name, UID: "claim-" + name, Owned: true})
	}
	role := PodVoter
	switch {
	case learner:
		role = PodLearner
	case m.leaving:
		role = PodLeaving
	}
	if m.pod != podMissing {
		o.Pods = append(o.Pods, Pod{
			Name: name, UID: "pod-" + name, Owned: true, Role: role, Routed: m.routed, Version: version,
			Terminating: m.pod == podTerminating, Finished: m.pod == podFinished,
			Running: m.pod != podFinished && m.pod != podWaiting, Ready: m.pod == podReady, Template: template,
		})
	}
}

// multisets calls visit with every multiset of n shapes whose smallest is first.
func multisets(shapes []shape, n, first int, visit func([]shape)) {
	current := make([]shape, n)
	var fill func(at, from int)
	fill = func(at, from int) {
		if at == n {
			visit(current)
			return
		}
		for i := from; i < len(shapes); i++ {
			current[at] = shapes[i]
			fill(at+1, i)
		}
	}
	if n == 0 {
		if first == 0 {
			visit(nil)
		}
		return
	}
	current[0] = shapes[first]
	fill(1, first)
}

// space is a part of the states: so many members out of an alphabet.
type space struct {
	members    int
	shapes     []shape
	situations []situation
}

func spaces() []space {
	all := []podState{podReady, podNotReady, podWaiting, podTerminating, podFinished, podMissing}
	few := []podState{podReady, podTerminating, podMissing}
	kinds := []memberKind{kindVoter, kindLearner, kindUnstartedVoter, kindUnstartedLearner}
	every := make([]situation, situations)
	for i := range every {
		every[i] = situation(i)
	}
	own := every[:strangeMember]
	full := alphabet(kinds, all, true, true)
	result := []space{{0, full, every}, {1, full, every}}
	switch {
	case *exhaustive:
		return append(result,
			space{2, full, own},
			space{3, full, every[:1]},
			space{3, alphabet(kinds, few, true, false), own[1:]},
			space{4, alphabet(kinds[:2], few, true, false), every[:1]},
			space{5, alphabet(kinds[:1], few, true, false), every[:1]})
	case testing.Short() || raceEnabled:
		return append(result, space{3, alphabet(kinds[:2], few, false, true), every[:1]})
	default:
		return append(result,
			space{2, full, own},
			space{3, alphabet(kinds, few, true, false), every[:1]},
			space{4, alphabet(kinds[:1], few, true, true), every[:1]},
			space{5, alphabet(kinds[:1], few, true, false), every[:1]})
	}
}

func TestEveryState(t *testing.T) {
	type job struct {
		space space
		first int
	}
	jobs := make(chan job)
	var states, statuses atomic.Int64
	var spoke sync.Map // the names of the rules that spoke
	var workers sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				e := &explorer{t: t, spoke: map[string]bool{}}
				multisets(j.space.shapes, j.space.members, j.first, func(m []shape) { e.visit(j.space, m) })
				states.Add(e.states)
				statuses.Add(e.statuses)
				for rule := range e.spoke {
					spoke.Store(rule, true)
				}
			}
		})
	}
	for _, s := range spaces() {
		for first := range s.shapes {
			jobs <- job{s, first}
		}
	}
	close(jobs)
	workers.Wait()
	t.Logf("%d states, %d statuses, %v", states.Load(), statuses.Load(), time.Since(start).Round(10*time.Millisecond))
	for _, rule := range Rules() {
		if rule == "operation" {
			continue // it takes steps of its own through the same states; see TestRuleOperation
		}
		if _, found := spoke.Load(rule); !found && !testing.Short() && !raceEnabled {
			t.Errorf("rule %s never speaks: nothing here tests it", rule)
		}
	}
}

// explorer checks the states of one part of a space.
type explorer struct {
	t                *testing.T
	states, statuses int64
	// spoke holds the names of the rules that spoke.
	spoke map[string]bool
}

func newObserved() *Observed {
	return &Observed{Now: testNow, NewName: newName, Template: testTemplate, Cluster: &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid", Finalizers: []string{resources.Finalizer}},
		Spec:       v1beta2.ClusterSpec{Version: testVersion},
	}}
}

func (e *explorer) visit(s space, members []shape) {
	if e.t.Failed() {
		return
	}
	o := newObserved()
	for _, around := range s.situations {
		for size := 0; size <= 5; size++ {
			for leader := -1; leader < len(members); leader++ {
				for _, linearizable := range []bool{true, false} {
					e.check(surroundings{size, leader, linearizable, around}, members, o)
				}
			}
		}
	}
}

func (e *explorer) check(s surroundings, members []shape, o *Observed) {
	s.build(members, o)
	f := countFacts(o, s.situation != newborn)
	plan := Decide(*o)
	e.states++
	e.spoke[plan.Rule] = true
	for _, i := range planInvariants {
		if wrong := i.check(f, plan); wrong != "" {
			e.t.Errorf("%s: %s\nplan: %s\nstate: %s", i.name, wrong, describe(plan), s.describe(members))
		}
	}
	if e.states%statusEvery != 0 {
		return
	}
	status := Status(*o, plan)
	if wrong := checkStatus(f, status); wrong != "" {
		e.t.Errorf("%s\nplan: %s\nstate: %s", wrong, describe(plan), s.describe(members))
	}
	e.statuses++
	if e.statuses%restEvery == 0 {
		e.checkRest(s, members, o, status)
	}
}

// checkRest makes sure that a status that was written is not written again.
func (e *explorer) checkRest(s surroundings, members []shape, o *Observed, status v1beta2.ClusterStatus) {
	before := o.Cluster.Status
	defer func() { o.Cluster.Status = before }()
	o.Cluster.Status, o.Now = status, testNow.Add(time.Minute)
	second := Status(*o, Decide(*o))
	o.Cluster.Status = second
	third := Status(*o, Decide(*o))
	o.Now = testNow
	if diff := cmp.Diff(second, third); diff != "" {
		e.t.Errorf("the status does not come to rest (-before +after):\n%s\nstate: %s", diff, s.describe(members))
	}
}

func (s surroundings) describe(members []shape) string {
	var b strings.Builder
	fmt.Fprintf(&b, "size %d, leader %d, linearizable %t, situation %d", s.size, s.leader, s.linearizable, s.situation)
	for i, m := range members {
		fmt.Fprintf(&b, "\n  %s: %+v", memberNames[i], m)
	}
	return b.String()
}
