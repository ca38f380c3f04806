// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfMembership are mistakes with members.
func bugsOfMembership() []bug {
	return []bug{
		{name: "adds members as voters before they run", rules: "S1 S2", wrap: func(_ *manager.Manager, c cluster.Config) cluster.Config {
			c.Etcd = votersOnly{c.Etcd}
			return c
		}},
		{name: "adds the next member while one is joining", rules: "S3", wrap: doing(addNext)},
		{name: "removes two members at once", rules: "S2", wrap: doing(removeTwo)},
		{name: "removes the leader first", rules: "S2", wrap: doing(removeLeader)},
		{name: "removes a member without counting the members that serve", rules: "S2", wrap: doing(removeAnyway)},
		{name: "takes a voter that responds for one that serves", rules: "L2", story: longHang, wrap: func(_ *manager.Manager, c cluster.Config) cluster.Config {
			c.Etcd = neverReads{c.Etcd}
			return c
		}},
		{name: "takes an unresponsive member for lost", rules: "S2 S5", wrap: doing(removeUnresponsive)},
		{name: "removes an unresponsive member on request before its successor votes", rules: "S5", wrap: deciding(removeRequested), story: only(true, schedules.EventNodeDown)},
		{name: "replaces a member whose PVC exists", rules: "S5", wrap: doing(removeReturning)},
		{name: "restarts a lost member on an empty disk", rules: "S5 L1", wrap: doing(restartEmpty)},
		{name: "forgets a member that was added before its pod was admitted", rules: "L1", wrap: doing(forgetAdded)},
		{name: "deletes pods without removing their members", rules: "S2 S5 L1", wrap: doing(deleteOnly)},
		{name: "restarts all members at once", rules: "S2 S8", wrap: doing(restartAll)},
		{name: "restarts the leader without handing over", rules: "S8", wrap: doing(restartLeader)},
		{name: "restarts the next member before the last one is back", rules: "S2 S8", wrap: doing(restartNext)},
		{name: "upgrades to 3.7 with a log that 3.7 cannot read", rules: "L1", wrap: deciding(readAnyway), story: fromOldToNew},
		{name: "takes any step between versions", rules: "S8", wrap: doing(skipVersion), admitted: true},
	}
}

type votersOnly struct{ cluster.Etcd }

// AddLearner implements cluster.Etcd.
func (e votersOnly) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return e.AddVoter(ctx, target, peerURL)
}

type neverReads struct{ cluster.Etcd }

// FailedReads implements cluster.Etcd.
func (e neverReads) FailedReads(context.Context, etcd.Target) map[string]error { return nil }

// unguarded is a controller with a mistake that also counts voters without a read of theirs
// before a member goes. That read alone would stop the mistake.
func unguarded(mistake func(*manager.Manager, cluster.Config) cluster.Config) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(m *manager.Manager, c cluster.Config) cluster.Config {
		c = mistake(m, c)
		c.Etcd = neverReads{c.Etcd}
		return c
	}
}

// longHang is a story in which the disk of a member takes no writes for long.
func longHang(s *schedules.Schedule) {
	e := schedules.Event{At: 2 * time.Minute, Kind: schedules.EventHang, A: int(s.Seed), For: 4 * time.Minute}
	s.Events = append(s.Events, e, schedules.Event{At: e.At + e.For, Kind: schedules.EventResume}) // all faults end with the last event
}

func waitsFor(plan planner.Plan, rule planner.RuleName, reasons ...planner.Reason) bool {
	return plan.Rule == rule && plan.Wait != nil && slices.Contains(reasons, plan.Wait.Reason)
}

// instead returns a plan that does this and nothing else.
func instead(plan planner.Plan, actions ...planner.Action) planner.Plan {
	plan.Actions, plan.Wait = actions, nil
	return plan
}

func podNamed(o planner.Observed, name string) *planner.Pod {
	i := slices.IndexFunc(o.Pods, func(p planner.Pod) bool { return p.Owned && p.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Pods[i]
}

func votersOf(o planner.Observed) []planner.Member {
	return slices.DeleteFunc(slices.Clone(o.Etcd.Members), func(m planner.Member) bool { return m.Learner })
}

func namesOf(o planner.Observed) []string {
	var names []string
	for _, m := range o.Etcd.Members {
		names = append(names, m.Name)
	}
	return names
}

func sizeOf(o planner.Observed) int { return int(*o.Cluster.Spec.Replicas) }

// remove removes a member without another look.
func remove(m planner.Member) planner.RemoveMember {
	return planner.RemoveMember{ID: m.ID, Name: m.Name, Reason: planner.RemovePeersDiffer}
}

func addNext(o planner.Observed, plan planner.Plan) planner.Plan {
	if !waitsFor(plan, planner.RuleJoining, planner.ReasonWaitingForMember, planner.ReasonLearnerCatchingUp) || len(o.Etcd.Members) >= sizeOf(o) {
		return plan
	}
	for _, p := range o.Prepared {
		if p.Running && !p.Terminating && !slices.Contains(namesOf(o), p.Name) {
			return instead(plan, planner.AddMember{Name: p.Name, UID: p.UID, As: planner.JoinAsVoter},
				planner.AdmitPod{Name: p.Name, UID: p.UID, Peers: append(namesOf(o), p.Name)})
		}
	}
	return plan
}

func removeTwo(o planner.Observed, plan planner.Plan) planner.Plan {
	for _, a := range plan.Actions {
		first, removes := a.(planner.RemoveMember)
		if !removes || first.Reason != planner.RemoveScaleDown || len(votersOf(o)) < sizeOf(o)+2 {
			continue
		}
		for _, m := range votersOf(o) {
			if m.ID != first.ID && m.ID != m.Leader {
				plan.Actions = append(plan.Actions, remove(m))
				return plan
			}
		}
	}
	return plan
}

func removeLeader(o planner.Observed, plan planner.Plan) planner.Plan {
	for i, a := range plan.Actions {
		if first, removes := a.(planner.RemoveMember); removes && first.Reason == planner.RemoveScaleDown {
			for _, m := range votersOf(o) {
				if m.ID == m.Leader {
					return instead(plan, append(plan.Actions[:i:i], remove(m))...)
				}
			}
		}
	}
	return plan
}

func removeAnyway(o planner.Observed, plan planner.Plan) planner.Plan {
	if !waitsFor(plan, planner.RuleReplace, planner.ReasonQuorumAtRisk) && !waitsFor(plan, planner.RuleScaleDown, planner.ReasonQuorumAtRisk) {
		return plan
	}
	for _, m := range votersOf(o) {
		p := podNamed(o, m.Name)
		if gone := p == nil || p.Terminating || p.Finished; gone == (plan.Rule == planner.RuleReplace) && len(votersOf(o)) > 1 {
			return instead(plan, remove(m))
		}
	}
	return plan
}

func removeUnresponsive(o planner.Observed, plan planner.Plan) planner.Plan {
	if !o.Etcd.Linearizable {
		return plan
	}
	for _, m := range votersOf(o) {
		if m.Health != planner.Healthy && m.Started && len(votersOf(o)) == sizeOf(o) {
			return instead(plan, remove(m))
		}
	}
	return plan
}

// removeRequested has a user request another member in the place of one that does not respond, and removes
// that one at once. Only an etcd without learners may lose such a member before its successor joins.
func removeRequested(m *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	plan := decide(o)
	for _, v := range votersOf(o) {
		if !o.Etcd.Linearizable || v.Health == planner.Healthy || len(votersOf(o)) > sizeOf(o) || podNamed(o, v.Name) == nil {
			continue
		}
		kubernetes.Edit(m.W.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
			c.Status.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationReplace, ID: "requested", Phase: v1beta2.OperationPending, Members: []string{v.Name}}
		})
		return instead(plan, remove(v))
	}
	return plan
}

func removeReturning(o planner.Observed, plan planner.Plan) planner.Plan {
	for _, a := range plan.Actions {
		pod, creates := a.(planner.CreatePod)
		if !creates || !o.Etcd.Linearizable {
			continue
		}
		for _, m := range votersOf(o) {
			if m.Name == pod.Name {
				return instead(plan, remove(m))
			}
		}
	}
	return plan
}

func restartEmpty(o planner.Observed, plan planner.Plan) planner.Plan {
	for _, p := range o.Prepared {
		if slices.Contains(namesOf(o), p.Name) && p.Running {
			return instead(plan, planner.AdmitPod{Name: p.Name, UID: p.UID, Peers: namesOf(o)})
		}
	}
	for _, a := range plan.Actions {
		if lost, removes := a.(planner.RemoveMember); removes && plan.Rule == planner.RuleReplace && podNamed(o, lost.Name) == nil {
			return instead(plan, planner.PreparePod{Name: lost.Name, CreatePVC: true})
		}
	}
	return plan
}

func forgetAdded(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleJoining {
		return plan
	}
	for _, a := range plan.Actions {
		if _, admits := a.(planner.AdmitPod); admits {
			plan.RequeueAfter = time.Second
			return instead(plan)
		}
	}
	return plan
}

func deleteOnly(_ planner.Observed, plan planner.Plan) planner.Plan {
	plan.RequeueAfter = max(plan.RequeueAfter, time.Second) // or it would try all the time
	plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), func(a planner.Action) bool {
		remove, removes := a.(planner.RemoveMember)
		return removes && remove.Reason == planner.RemoveScaleDown
	})
	return plan
}

// upgrade restarts the pod of a member with the declared version.
func upgrade(o planner.Observed, name string) (planner.Action, bool) {
	p := podNamed(o, name)
	if p == nil || p.Version == o.Cluster.Spec.Version {
		return nil, false
	}
	return planner.UpgradePod{Name: p.Name, UID: p.UID, Version: o.Cluster.Spec.Version}, true
}

func upgrades(plan planner.Plan) bool {
	return slices.ContainsFunc(plan.Actions, func(a planner.Action) bool {
		_, upgrades := a.(planner.UpgradePod)
		return upgrades
	})
}

func restartAll(o planner.Observed, plan planner.Plan) planner.Plan {
	if !upgrades(plan) {
		return plan
	}
	var all []planner.Action
	for _, m := range votersOf(o) {
		if a, outdated := upgrade(o, m.Name); outdated {
			all = append(all, a)
		}
	}
	return instead(plan, all...)
}

func restartLeader(o planner.Observed, plan planner.Plan) planner.Plan {
	for _, a := range plan.Actions {
		if move, moves := a.(planner.MoveLeader); moves && plan.Rule == planner.RuleRollout {
			if a, outdated := upgrade(o, move.FromName); outdated {
				return instead(plan, a)
			}
		}
	}
	return plan
}

func restartNext(o planner.Observed, plan planner.Plan) planner.Plan {
	if !waitsFor(plan, planner.RuleRollout, planner.ReasonWaitingForMember, planner.ReasonQuorumAtRisk, planner.ReasonWaitingForReady) {
		return plan
	}
	for _, m := range votersOf(o) {
		if a, outdated := upgrade(o, m.Name); outdated && m.ID != m.Leader {
			return instead(plan, a)
		}
	}
	return plan
}

func skipVersion(o planner.Observed, plan planner.Plan) planner.Plan {
	if !waitsFor(plan, planner.RuleRollout, planner.ReasonVersionStep) || len(votersOf(o)) < 3 {
		return plan
	}
	for _, m := range votersOf(o) {
		if a, outdated := upgrade(o, m.Name); outdated && m.ID != m.Leader {
			return instead(plan, a)
		}
	}
	return plan
}

// readAnyway takes every log for one that every version can read.
func readAnyway(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	o.Record.Log = resources.LogRecord{ClusterID: strconv.FormatUint(o.Etcd.ClusterID, 16), Minor: 9, Readable: true}
	return decide(o)
}

// fromOldToNew brings a cluster that was born on 3.5 to 3.6 and to 3.7.
func fromOldToNew(s *schedules.Schedule) {
	s.Version = schedules.VersionLines[0][0]
	s.Events = []schedules.Event{{At: time.Minute, Kind: schedules.EventVersion, A: 3}, {At: 5 * time.Minute, Kind: schedules.EventVersion, A: 4}}
}
