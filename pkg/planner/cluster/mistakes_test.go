// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// mistake is a planner with something wrong about it.
type mistake struct {
	name string
	// rule is the invariant that it breaks.
	rule string
	// see changes what is observed, do what is planned; either may be nil.
	see func(*Observed)
	do  func(*Observed, Plan) Plan
	// pods are the states of pods in which it matters; nil for most.
	pods []podState
}

// waiting returns what a plan becomes that waits for one of the reasons: the actions.
func waiting(reason Reason, act func(*Observed) []Action) func(*Observed, Plan) Plan {
	return func(o *Observed, p Plan) Plan {
		if p.Wait != nil && p.Wait.Reason == reason {
			p.Actions, p.Wait = act(o), nil
		}
		return p
	}
}

// onEach returns an action for every voter.
func onEach(act func(*Observed, *Member) Action) func(*Observed) []Action {
	return func(o *Observed) []Action {
		var actions []Action
		for _, m := range listVoters(o.Etcd.Members) {
			actions = append(actions, act(o, m))
		}
		return actions
	}
}

func onFirst(act func(*Observed, *Member) Action) func(*Observed) []Action {
	return func(o *Observed) []Action { return onEach(act)(o)[:min(1, len(listVoters(o.Etcd.Members)))] }
}

func removal(_ *Observed, m *Member) Action {
	return RemoveMember{ID: m.ID, Name: m.Name, Reason: RemoveScaleDown}
}

// instead changes every action of a kind.
func instead[A Action](change func(*Observed, A) []Action) func(*Observed, Plan) Plan {
	return func(o *Observed, p Plan) Plan {
		var actions []Action
		for _, a := range p.Actions {
			if of, ok := a.(A); ok {
				actions = append(actions, change(o, of)...)
			} else {
				actions = append(actions, a)
			}
		}
		p.Actions = actions
		return p
	}
}

var awayPods = []podState{podReady, podNotReady, podAway}

var mistakes = []mistake{
	{name: "acts on a cluster that is paused", rule: "asleep", see: func(o *Observed) { o.Cluster.Spec.Paused = false }},
	{name: "acts on a cluster that goes away", rule: "asleep", see: func(o *Observed) { o.Cluster.DeletionTimestamp = nil }},
	{name: "disarms the alarm of a full database", rule: "disarm", see: func(o *Observed) {
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].DBSize = 0
		}
	}},
	{name: "disarms the alarm while a full member may be away", rule: "disarm", see: func(o *Observed) {
		for i := range o.Etcd.Members {
			if m := &o.Etcd.Members[i]; m.Health != Healthy {
				m.DBSize = 1
			}
		}
	}},
	{name: "disarms an alarm while data differs", rule: "disarm", see: func(o *Observed) {
		for i := range o.Etcd.Members {
			m := &o.Etcd.Members[i]
			m.Alarms = slices.DeleteFunc(m.Alarms, func(a Alarm) bool { return a.Type == alarmCorrupt })
		}
	}},
	{name: "replaces members while data differs", rule: "S1 data differs", see: func(o *Observed) {
		for i := range o.Etcd.Members {
			m := &o.Etcd.Members[i]
			m.Alarms = slices.DeleteFunc(m.Alarms, func(a Alarm) bool { return a.Type == alarmCorrupt })
		}
	}},
	{name: "believes one member", rule: "S2 list", see: func(o *Observed) { o.Etcd.Linearizable = true }},
	{name: "removes all that are too many", rule: "S3 one change", do: instead(func(o *Observed, a RemoveMember) []Action {
		return append([]Action{a}, onEach(removal)(o)...)
	})},
	{name: "removes without counting", rule: "S2 remove", do: waiting("QuorumAtRisk", onFirst(removal))},
	{name: "promotes without counting", rule: "S2 promote", do: waiting("QuorumAtRisk", func(o *Observed) []Action {
		if m := findJoiningMember(o.Etcd.Members); m != nil && m.Learner {
			return []Action{PromoteMember{ID: m.ID, Name: m.Name}}
		}
		return nil
	})},
	{name: "promotes a member that the status calls pending", rule: "S2 promote", do: func(o *Observed, p Plan) Plan {
		if m := findJoiningMember(o.Etcd.Members); p.Rule == "joining" && m.Learner && m.Started && !isReportedStarted(o.Cluster.Status.MemberStatuses, m) {
			p.Actions = []Action{PromoteMember{ID: m.ID, Name: m.Name}}
		}
		return p
	}},
	{name: "adds voters at once", rule: "S2 promote", do: waiting("QuorumAtRisk", func(o *Observed) []Action {
		return []Action{AddMember{Name: o.NewName, As: JoinAsVoter}}
	})},
	{name: "adds the next one while one is joining", rule: "S3 one change", do: waiting("WaitingForMember", func(o *Observed) []Action {
		return []Action{AddMember{Name: o.NewName, As: JoinAsLearner}}
	})},
	{name: "removes the leader", rule: "S2 leader", do: instead(func(o *Observed, a RemoveMember) []Action {
		if leader := findLeader(o.Etcd.Members); leader != nil && a.Reason == RemoveScaleDown {
			return []Action{removal(o, leader)}
		}
		return []Action{a}
	})},
	{name: "restarts a member that clients are led to", rule: "drained", see: func(o *Observed) {
		for i := range o.Pods {
			o.Pods[i].InEndpoints = false
		}
	}},
	{name: "starts the member whose PVC is read", rule: "S5 read volume", do: waiting("OldMemberMayRun", func(o *Observed) []Action {
		if o.Record.Recovery == nil || o.Record.Recovery.Source.PVC == "" {
			return nil
		}
		return []Action{CreatePod{Name: o.Record.Recovery.Source.PVC}}
	})},
	{name: "reads the PVC of a member that may run", rule: "S5 read volume", see: func(o *Observed) {
		o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(p Pod) bool { return p.Terminating })
	}},
	{name: "stops a member that a quorum may need", rule: "S5 read volume", do: func(o *Observed, p Plan) Plan {
		if r := o.Record.Recovery; r.IsInProgress() && r.Source.PVC != "" {
			p.Actions = append(p.Actions, StopSource{Recovery: *r})
		}
		return p
	}},
	{name: "makes a second bootstrap member", rule: "S4 bootstrap member", do: func(o *Observed, p Plan) Plan {
		if p.Rule == "quorum" {
			p.Actions = []Action{CreateBootstrapPod{Name: o.BootstrapName}}
		}
		return p
	}},
	{name: "names a bootstrap member again", rule: "S4 bootstrap member", do: instead(func(o *Observed, _ WriteRecord) []Action {
		return []Action{WriteRecord{Record: resources.Record{BootstrapMember: o.NewName}}}
	})},
	{name: "deletes the pods of members", rule: "S5 delete pod", do: waiting("QuorumAtRisk", onFirst(func(o *Observed, m *Member) Action {
		if p := podByName(o.Pods, m.Name); p != nil {
			return DeletePod{Name: p.Name, UID: p.UID}
		}
		return FindMember{Name: m.Name}
	}))},
	{name: "deletes the PVCs of members", rule: "S5 delete PVC", do: waiting("QuorumAtRisk", onFirst(func(o *Observed, m *Member) Action {
		if c := pvcByName(o.PVCs, m.Name); c != nil {
			return DeletePVC{Name: c.Name, UID: c.UID}
		}
		return FindMember{Name: m.Name}
	}))},
	{name: "starts a member again without its data", rule: "S5 create pod", do: instead(func(o *Observed, a RemoveMember) []Action {
		return []Action{CreatePod{Name: a.Name, Peers: listPeerNames(o.Etcd.Members, o.PVCs)}}
	})},
	{name: "takes its own pod off the list of peers", rule: "S5 create pod", do: instead(func(_ *Observed, a CreatePod) []Action {
		a.Peers = slices.DeleteFunc(slices.Clone(a.Peers), func(name string) bool { return name == a.Name })
		return []Action{a}
	})},
	{name: "shrinks too far", rule: "size", do: func(o *Observed, p Plan) Plan {
		if p.Rule == "steady" {
			p.Actions = onFirst(removal)(o)
		}
		return p
	}},
	{name: "takes a member that is not ready for one that is away", rule: "size", pods: awayPods, see: func(o *Observed) {
		for i := range o.Pods {
			if p := &o.Pods[i]; !p.Ready {
				p.AwaySince = testNow.Add(-o.Cluster.Spec.MemberLossTimeout())
			}
		}
	}},
	{name: "removes a member that is away before another votes", rule: "size", pods: awayPods, do: func(o *Observed, p Plan) Plan {
		for _, m := range listVoters(o.Etcd.Members) {
			if p.Rule == RuleScaleUp && mustBeReplaced(o.Cluster, o.Now, o.Pods, m) {
				p.Actions = []Action{RemoveMember{ID: m.ID, Name: m.Name, Reason: RemoveAway}}
			}
		}
		return p
	}},
	{name: "says nothing", rule: "L1 speaks", do: func(_ *Observed, p Plan) Plan {
		if p.Wait != nil {
			p.Actions, p.Wait = nil, nil
		}
		return p
	}},
	{name: "never looks again", rule: "L1 speaks", do: func(_ *Observed, p Plan) Plan {
		p.RequeueAfter = 0
		return p
	}},
}

// TestInvariantsNotice makes mistakes in plans, and shows that the enumeration notices
// each: an invariant that always holds proves nothing.
func TestInvariantsNotice(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			if states := m.noticed(); states > 0 {
				t.Logf("after %d states", states)
				return
			}
			t.Errorf("no invariant of %q notices it", m.rule)
		})
	}
}

// noticed returns after how many states the invariant of a mistake is broken; 0: never.
func (m *mistake) noticed() (states int) {
	pods := m.pods
	if pods == nil {
		pods = []podState{podReady, podTerminating, podMissing}
	}
	shapes := alphabet([]memberKind{kindVoter, kindLearner, kindUnstartedVoter, kindUnstartedLearner}, pods, true, true)
	found := 0
	for members := 0; members <= 3 && found == 0; members++ {
		for first := range shapes {
			multisets(shapes, members, first, func(list []shape) {
				if found > 0 {
					return
				}
				eachSurrounding(len(list), func(s surroundings) {
					if states++; found == 0 && m.breaks(s, list) {
						found = states
					}
				})
			})
		}
	}
	return found
}

func eachSurrounding(members int, visit func(surroundings)) {
	for around := living; around < situations; around++ {
		for size := 0; size <= 3; size++ {
			for leader := -1; leader < members; leader++ {
				visit(surroundings{size, leader, true, around})
				visit(surroundings{size, leader, false, around})
			}
		}
	}
}

// breaks is true if the plan for a state breaks the invariant of the mistake.
func (m *mistake) breaks(s surroundings, members []shape) bool {
	truth, seen := newObserved(), newObserved()
	s.build(members, truth)
	s.build(members, seen)
	if m.see != nil {
		m.see(seen)
	}
	plan := Decide(*seen)
	if m.do != nil {
		plan = m.do(seen, plan)
	}
	f := countFacts(truth, s.situation != newborn)
	return slices.ContainsFunc(planInvariants, func(i invariant) bool { return i.name == m.rule && i.check(f, plan) != "" })
}
