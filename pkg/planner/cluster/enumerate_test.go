// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The enumeration goes through every combination of a few facts about each member
// and about the cluster, and checks every plan and every status. Members differ only
// in these facts, so combinations are counted once, whatever their order. The leader
// is a fact of the cluster.

// exhaustive adds every combination for three members and more of them for four; it
// takes some minutes.
var exhaustive = flag.Bool("exhaustive", false, "enumerate the larger space of states")

// statesEvery leaves states out: all of them take minutes. A prime above 5 leaves no fact out.
var statesEvery = flag.Int64("states-every", 7, "check every n-th state only")

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
	podAway // for longer than a member may be; that it may come back is podNotReady
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
	pvc    bool
	old    bool // its pod was made for the version before the declared one
	// draining: its clients are sent elsewhere; routed: they are still led to it.
	draining, routed bool
	stale            bool // its pod was made from another declaration
}

// alphabet returns the shapes that are possible.
func alphabet(kinds []memberKind, pods []podState, versions, draining bool) []shape {
	var shapes []shape
	for _, k := range kinds {
		for _, h := range []Health{Healthy, Unhealthy, Unknown} {
			for _, p := range pods {
				if h == Healthy && (p == podFinished || p == podMissing || p == podWaiting || p == podAway) {
					continue // no member responds from there
				}
				if h == Healthy && (k == kindUnstartedVoter || k == kindUnstartedLearner) {
					continue
				}
				for _, c := range []bool{false, true} {
					shapes = append(shapes, shape{kind: k, health: h, pod: p, pvc: c})
					if versions && h == Healthy && k == kindVoter && !c {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, old: true})
					}
					if draining && k == kindVoter && !c && p == podReady {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, draining: true}, shape{kind: k, health: h, pod: p, draining: true, routed: true})
						if h == Healthy {
							shapes = append(shapes, shape{kind: k, health: h, pod: p, routed: true})
						}
						if versions && h == Healthy {
							shapes = append(shapes, shape{kind: k, health: h, pod: p, old: true, routed: true}, shape{kind: k, health: h, pod: p, old: true, draining: true})
						}
					}
					if versions && k == kindVoter && (h == Healthy && p == podReady || h == Unhealthy && p == podWaiting) {
						shapes = append(shapes, shape{kind: k, health: h, pod: p, pvc: c, stale: true})
					}
				}
			}
		}
	}
	return shapes
}

// surroundings is what is true of the cluster, apart from its members.
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
	serviceMissing
	recordMissing
	orphaned
	otherCluster
	strangeMember
	serviceNotOwned
	secured
	askedToRecover
	recoveryUnderWay
	volumeRead
	unpreparedPods
	startingPods
	interrupted
	// Kubernetes was restored to a time at which the pods and PVCs of members waited for their membership.
	waitingAgain
	drained // the node of a member is cordoned
	// An earlier cluster of this name has left a PVC, which is taken back or not.
	foundVolume
	takingBack
	// The cluster takes over an etcd. Its old members are kept, or their removal is requested. Then
	// one of them may lead, or only one of them may respond.
	oldKept
	oldRemoved
	oldLeads
	oldUnresponsive
	// The alarm NOSPACE is raised: the databases are full, or have room again. The alarm CORRUPT may be raised
	// beside it.
	databasesFull
	databasesRoomy
	dataDiffers
	situations
)

var memberNames = []string{"a", "b", "c", "d", "e"}

// build makes the observation. The object is shared between states that do not
// change it.
func (s surroundings) build(members []shape, o *Observed) {
	o.Pods, o.PVCs, o.Etcd.Members = o.Pods[:0], o.PVCs[:0], o.Etcd.Members[:0]
	for i, m := range members {
		s.addMember(i, m, o)
	}
	o.Etcd.Linearizable, o.Etcd.ClusterID = s.linearizable, testClusterID
	o.Cluster.Status.MemberStatuses = nil
	if s.leader >= 0 || !s.linearizable {
		sayStarted(o) // otherwise no status has reported it yet
	}
	agree(o)
	o.Record = Record{State: Current, Record: resources.Record{BootstrapMember: "a", ClusterID: "c0ffee"}}
	o.PeerService = Current
	o.ClientService = Current
	c := o.Cluster
	c.Spec.Replicas, c.Spec.Paused, c.DeletionTimestamp = ptr.To(int32(s.size)), false, nil
	o.Certificates, c.Spec.Bootstrap, o.Found = nil, nil, nil
	c.Status.Recovery, o.RecoveryMember = nil, RecoveryMember{}
	c.Status.Phase = v1beta2.ClusterPhaseRunning
	switch s.situation {
	case newborn:
		o.Record.ClusterID, o.ClientService, c.Status.Phase = "", Missing, v1beta2.ClusterPhaseCreating
	case foundVolume, takingBack:
		o.Record.ClusterID, o.ClientService, c.Status.Phase = "", Missing, v1beta2.ClusterPhaseCreating
		found(KindPVC, "z", "old")(o)
		if s.situation == takingBack {
			c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
		}
	case onHold:
		c.Spec.Paused = true
	case deleted:
		c.DeletionTimestamp = &metav1.Time{Time: testNow}
	case serviceMissing:
		o.PeerService = Missing
	case recordMissing:
		o.Record = Record{}
	case orphaned:
		o.Pods = append(o.Pods, Pod{Name: "x", UID: "pod-x", Owned: true, Running: true, Version: testVersion, Template: testTemplate})
		o.PVCs = append(o.PVCs, PVC{Name: "x", UID: "claim-x", Owned: true})
	case otherCluster:
		o.Record.ClusterID = "bad"
	case strangeMember:
		o.Etcd.Members = append(o.Etcd.Members, Member{ID: 99, Name: hexID(99), Unmanaged: true, Started: s.size%2 == 1, Health: Unknown})
	case serviceNotOwned:
		o.PeerService = NotOwned
	case secured:
		o.Certificates = []certificates.Certificate{{Use: v1beta2.CertificateUsePeer, Secret: "s", State: certificates.Missing}}
	case askedToRecover:
		asked()(o)
	case recoveryUnderWay:
		recorded(v1beta2.RecoveryPhaseFilling)(o)
		recoveryPod(0xbeef)(o)
	case volumeRead:
		recorded(v1beta2.RecoveryPhaseFilling, func(r *v1beta2.RecoveryStatus) {
			r.Source = v1beta2.RecoverySource{Member: memberNames[0], PVC: memberNames[0]}
		})(o)
		if s.size%2 == 0 { // in half of the states the recovery member exists already
			recoveryPod(0)(o)
		}
	case oldKept, oldRemoved, oldLeads, oldUnresponsive:
		s.addOld(o)
	case databasesFull, databasesRoomy, dataDiffers:
		s.raiseAlarms(o)
	case living, situations, unpreparedPods, startingPods, interrupted, waitingAgain, drained:
	}
	if s.situation == drained {
		for i := range o.Pods {
			o.Pods[i].Cordoned = o.Pods[i].Name == memberNames[0]
		}
	}
	s.prepare(o)
}

// raiseAlarms has every member that responds report the alarms.
func (s surroundings) raiseAlarms(o *Observed) {
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		m.Quota = 16 << 20
		if m.Health != Healthy {
			continue
		}
		m.Alarms, m.DBSize = []Alarm{{alarmNoSpace, 1}}, 1<<20
		if s.situation == databasesFull && i%2 == 0 {
			m.DBSize = 16 << 20
		}
		if s.situation == dataDiffers {
			m.Alarms = append(m.Alarms, Alarm{alarmCorrupt, 2})
		}
	}
}

// addOld adds the members of the etcd that the cluster takes over.
func (s surroundings) addOld(o *Observed) {
	existing := &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old:2379"}, OldMembers: v1beta2.OldMembersRemove}
	if s.situation == oldKept {
		existing.OldMembers = v1beta2.OldMembersKeep
	}
	o.Cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: existing}
	for i, name := range []string{"x", "y", "z"} {
		m := Member{ID: uint64(97 + i), Name: name, Unmanaged: true, PeerURLs: []string{"http://" + name + ":2380"}, Started: true, Health: Healthy, Leader: uint64(s.leader + 1), Version: testVersion}
		if s.situation == oldUnresponsive && i > 0 {
			m.Health, m.Reason, m.Leader, m.Version = Unknown, ReasonUnresponsive, 0, ""
		}
		o.Etcd.Members = append(o.Etcd.Members, m)
		o.Cluster.Status.MemberStatuses = append(o.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{ID: hexID(m.ID), Name: name, Unmanaged: true})
	}
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; s.situation == oldLeads && m.Health == Healthy {
			m.Leader = 97
		}
	}
}

// prepare has pods wait for the members that are missing, unless the situation is about
// such pods. Then none exist, they do not run yet, or the controller stopped before it
// admitted the pod of a member that it had added.
func (s surroundings) prepare(o *Observed) {
	prepareMissing(o)
	switch s.situation {
	case unpreparedPods:
		o.Prepared, o.PreparedPVCs = nil, nil
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
	case waitingAgain:
		var names []string
		for i := range o.Etcd.Members {
			if m := &o.Etcd.Members[i]; m.Started && !m.Unmanaged {
				names = append(names, m.Name)
			}
		}
		again(names...)(o)
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
		member.Version, member.Reason = "", ReasonUnresponsive
	}
	o.Etcd.Members = append(o.Etcd.Members, member)
	if m.pvc {
		o.PVCs = append(o.PVCs, PVC{Name: name, UID: "claim-" + name, Owned: true})
	}
	role := PodVoter
	switch {
	case learner:
		role = PodLearner
	case m.draining:
		role = PodDraining
	}
	var since time.Time
	if m.pod == podAway {
		since = testNow.Add(-o.Cluster.Spec.MemberLossTimeout())
	}
	if m.pod != podMissing {
		o.Pods = append(o.Pods, Pod{
			AwaySince: since,
			Name:      name, UID: "pod-" + name, Owned: true, Role: role, InEndpoints: m.routed, Version: version,
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
	away := []podState{podReady, podNotReady, podAway, podMissing}
	beside := []situation{oldKept, oldRemoved, oldLeads, oldUnresponsive}
	alarmed := []situation{databasesFull, databasesRoomy, dataDiffers}
	full := alphabet(kinds, all, true, true)
	result := []space{
		{0, full, every},
		{1, full, every},
		{2, alphabet(kinds, away, false, false), own},
		{3, alphabet(kinds[:2], away[:3], false, false), every[:1]},
		{2, alphabet(kinds, few, false, true), []situation{drained}},
		{3, alphabet(kinds[:2], few, false, false), []situation{drained}},
		{2, alphabet(kinds, few, true, false), beside},
		{2, alphabet(kinds, few, true, false), alarmed},
		{3, alphabet(kinds[:1], few, true, false), alarmed},
	}
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
			space{3, alphabet(kinds[:2], few, true, false), beside},
			space{3, alphabet(kinds, few, true, false), every[:1]},
			space{4, alphabet(kinds[:1], few, true, true), every[:1]},
			space{5, alphabet(kinds[:1], few, true, false), every[:1]})
	}
}

func newObserved() *Observed {
	return &Observed{Now: testNow, NewName: newName, BootstrapName: "a", Template: testTemplate, Cluster: &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid", Finalizers: []string{resources.Finalizer}},
		Spec:       v1beta2.ClusterSpec{Version: testVersion},
	}}
}

func (s surroundings) describe(members []shape) string {
	var b strings.Builder
	fmt.Fprintf(&b, "size %d, leader %d, linearizable %t, situation %d", s.size, s.leader, s.linearizable, s.situation)
	for i, m := range members {
		fmt.Fprintf(&b, "\n  %s: %+v", memberNames[i], m)
	}
	return b.String()
}
