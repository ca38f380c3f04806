// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/checks"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// bugsOfNeglect are mistakes with what is not asked, not done, and not said any more.
func bugsOfNeglect() []bug {
	return []bug{
		{name: "counts an unresponsive member as serving", rules: "S2", wrap: unguarded(trusting(isSlow)), story: hideAndRestart},
		{name: "takes a ready pod for a member that responds", rules: "S2", wrap: unguarded(trusting(isReady)), story: hideAndRestart},
		{name: "trusts an old response of a member", rules: "S2 S8", wrap: unguarded(trusting(whateverHappens)), story: hideAndRestart},
		{name: "recovers without members that are only down", rules: "S1", wrap: deciding(takeDownForDeleted), story: mostMachinesDown},
		{name: "recovers from a copy although another member has more data", rules: "S1", wrap: deciding(keepCopy), story: hideTheBest},
		{name: "restarts a member on a wiped disk", rules: "S4 S5", wrap: doing(forgetJoined), story: wipeDisks},
		{name: "waits for a learner whose data is damaged", rules: "L1", wrap: doing(awaitWedged), story: damageLearner},
		{name: "does nothing while a member is not healthy", rules: "L1", wrap: doing(stopAtUnhealthy), story: only(false, schedules.EventForceDeletePod)},
		{name: "does nothing when no pod is left", rules: "L1", wrap: doing(leaveEmpty), story: only(true, schedules.EventForceDeletePod)},
		{name: "restarts no member for another version", rules: "L1", wrap: doing(leaveImages), story: only(true, schedules.EventVersion)},
		{name: "never repairs its Services", rules: "L1", wrap: doing(leaveServices), story: only(false, schedules.EventEditService)},
		{name: "recreates no PodDisruptionBudget", rules: "L1", wrap: doing(leaveBudget), story: only(false, schedules.EventDeleteBudget)},
		{name: "leaves the only member on a node that is drained", rules: "L1", wrap: func(_ *manager.Manager, c cluster.Config) cluster.Config {
			c.Cache = withoutCordons{c.Cache}
			return c
		}, story: drainForLong},
		{name: "reports a version because it is declared", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return desiredVersion{c.Objects} }), story: only(true, schedules.EventVersion)},
		{name: "calls a member ready because it once was", rules: "L2", wrap: writing(func(_ *manager.Manager, c cluster.Config) cluster.Objects { return onceReady{c.Objects} }), story: hang},
	}
}

// withoutCordons is a cache that knows of no cordoned node.
type withoutCordons struct{ cluster.Cache }

// IsCordoned implements cluster.Cache.
func (withoutCordons) IsCordoned(string) bool { return false }

// drainForLong drains the node of the only member.
func drainForLong(s *schedules.Schedule) {
	s.Size, s.Events = 1, []schedules.Event{
		{At: time.Minute, Kind: schedules.EventDrain, For: schedules.LastingDrain},
		{At: time.Minute + schedules.LastingDrain + time.Second, Kind: schedules.EventResume}, // all faults end with the last event
	}
}

// hideAndRestart restarts the members while the controller cannot reach one of them.
func hideAndRestart(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Events = 3, true, []schedules.Event{
		{At: time.Minute, Kind: schedules.EventHideMember, A: s.Events[0].A, For: time.Minute},
		{At: time.Minute + 5*time.Second, Kind: schedules.EventRestart, A: 1},
	}
}

// hang cuts one member off from the others for longer than may be kept quiet about.
func hang(s *schedules.Schedule) {
	s.Size, s.Events = 3, []schedules.Event{
		{At: time.Minute, Kind: schedules.EventCutMember, A: s.Events[0].A, B: 1, For: 2 * checks.ToldWithin},
		{At: time.Minute + 2*checks.ToldWithin, Kind: schedules.EventResume}, // all faults end with the last event
	}
}

// only is a cluster to which one thing happens, to one member after the other.
func only(volumes bool, kind schedules.EventKind) func(*schedules.Schedule) {
	return func(s *schedules.Schedule) {
		s.Size, s.Volumes, s.Version = 3, volumes, schedules.VersionLines[0][0]
		first := s.Events[0].A
		s.Events = nil
		for i := range s.Size {
			s.Events = append(s.Events, schedules.Event{At: time.Minute, Kind: kind, A: first + i, B: i})
		}
	}
}

// unhurried is a plan after which nothing is tried again at once.
func unhurried(plan planner.Plan) planner.Plan {
	plan.RequeueAfter = max(plan.RequeueAfter, time.Second)
	return plan
}

// credulous keeps using the last response of a member that does not respond, in some cases.
type credulous struct {
	cluster.Etcd
	said  map[string]etcd.MemberHealth
	trust func(name string, err error) bool
}

// trusting is a controller that is credulous for as long as its process runs.
func trusting(trust func(c cluster.Config, name string, err error) bool) func(*manager.Manager, cluster.Config) cluster.Config {
	return func(_ *manager.Manager, c cluster.Config) cluster.Config {
		asks := c
		c.Etcd = credulous{c.Etcd, map[string]etcd.MemberHealth{}, func(name string, err error) bool { return trust(asks, name, err) }}
		return c
	}
}

// Statuses implements cluster.Etcd.
func (e credulous) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	responses := e.Etcd.Statuses(ctx, target)
	for name, a := range responses {
		if a.Err == nil {
			e.said[name] = a.Health
		} else if said, known := e.said[name]; known && e.trust(name, a.Err) {
			responses[name] = etcd.StatusResult{Health: said}
		}
	}
	return responses
}

// whateverHappens, isSlow and isReady are the cases.
func whateverHappens(cluster.Config, string, error) bool { return true }

func isSlow(_ cluster.Config, _ string, err error) bool {
	return !errors.Is(err, etcd.ErrUnavailable)
}

func isReady(c cluster.Config, name string, _ error) bool {
	pods, err := c.Cache.Pods(schedules.Namespace, schedules.ClusterName)
	return err == nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == name && kubernetes.IsReady(p) })
}

// takeDownForDeleted treats members that do not respond as deleted with their data, without
// proof.
func takeDownForDeleted(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	if o.Etcd.Linearizable {
		return decide(o)
	}
	unresponsive := func(name string) bool {
		return slices.ContainsFunc(o.Etcd.Members, func(m planner.Member) bool { return m.Name == name && m.RaftIndex == 0 })
	}
	o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(p planner.Pod) bool { return unresponsive(p.Name) })
	o.PVCs = slices.DeleteFunc(slices.Clone(o.PVCs), func(c planner.PVC) bool { return unresponsive(c.Name) })
	plan := decide(provenForLong(o))
	for i, a := range plan.Actions {
		if record, records := a.(planner.RecordRecovery); records {
			record.Lost = nil
			plan.Actions = slices.Clone(plan.Actions)
			plan.Actions[i] = record
		}
	}
	return plan
}

// mostMachinesDown is a cluster that may recover by itself. Most of its machines are down for
// long enough.
func mostMachinesDown(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Automatic, s.Recovers, s.Events = 3, true, true, false, nil
	for i := range 6 {
		s.Events = append(s.Events, schedules.Event{At: time.Minute, Kind: schedules.EventNodeDown, A: int(s.Seed) + i, For: 2 * time.Minute})
	}
	s.Events = append(s.Events, schedules.Event{At: 3 * time.Minute, Kind: schedules.EventResume})
}

// keepCopy ignores which members respond once the recovery member is being filled.
func keepCopy(_ *manager.Manager, _ cluster.Config, o planner.Observed, decide decider) planner.Plan {
	r := o.Record.Recovery
	if r == nil || r.Phase != v1beta2.RecoveryPhaseFilling {
		return decide(o)
	}
	o.Etcd.Members = slices.Clone(o.Etcd.Members)
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		m.RaftIndex = min(m.RaftIndex, uint64(r.Source.RaftIndex))
	}
	return decide(o)
}

// hideTheBest has two of five members left. One of them has lagged behind, and the controller
// cannot reach the other for a moment.
func hideTheBest(s *schedules.Schedule) {
	s.Size, s.Volumes, s.Recovers, s.Automatic, s.Version = 5, false, true, false, schedules.VersionLines[0][0]
	d := timeline.NewDice(s.Seed, 9)
	const lost = 90 * time.Second
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventCutMember, A: d.IntN(5), B: 1, For: 3 * time.Minute},
		{At: lost, Kind: schedules.EventSlowStart, For: time.Minute},
		{At: lost, Kind: schedules.EventDisaster, A: d.IntN(5), B: 1},
		{At: lost, Kind: schedules.EventHideMember, A: d.IntN(5), For: 6 * time.Second},
		{At: lost + 3*time.Second, Kind: schedules.EventRecover},
		{At: lost + 5*time.Second, Kind: schedules.EventRecover},
	}
	s.Events = append(s.Events, schedules.Event{At: 4 * time.Minute, Kind: schedules.EventResume})
}

func forgetJoined(_ planner.Observed, plan planner.Plan) planner.Plan {
	plan.Actions = slices.Clone(plan.Actions)
	for i, a := range plan.Actions {
		switch a := a.(type) {
		case planner.LabelPod:
			a.Joined = false
			plan.Actions[i] = a
		case planner.CreatePod:
			a.Joined = false
			plan.Actions[i] = a
		}
	}
	return plan
}

func wipeDisks(s *schedules.Schedule) {
	d := timeline.NewDice(s.Seed, 7)
	for range 3 {
		e := schedules.WipeAt(d)
		e.B = 1
		s.Events = append(s.Events, e)
	}
	slices.SortStableFunc(s.Events, func(a, b schedules.Event) int { return int(a.At - b.At) })
}

// damageLearner has a cluster grow whose next member loses what it has read.
func damageLearner(s *schedules.Schedule) {
	s.Size, s.Version = 3, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventSlowCatchUp, A: 19, For: 20 * time.Second},
		{At: time.Minute, Kind: schedules.EventScale, A: 3},
		{At: time.Minute, Kind: schedules.EventDamage, For: 30 * time.Second},
		{At: 2 * time.Minute, Kind: schedules.EventResume},
	}
}

func awaitWedged(_ planner.Observed, plan planner.Plan) planner.Plan {
	for _, a := range plan.Actions {
		if a, ok := a.(planner.RemoveMember); ok && (a.Reason == planner.RemoveCrashLooping || a.Reason == planner.RemoveStuck) {
			plan.Actions, plan.RequeueAfter = nil, 5*time.Second
			plan.Wait = &planner.Wait{Reason: planner.ReasonWaitingForMember, Message: "it joins", Remedy: "nothing"}
		}
	}
	return plan
}

func stopAtUnhealthy(o planner.Observed, plan planner.Plan) planner.Plan {
	ill := func(m planner.Member) bool { return m.Health != planner.Healthy }
	if !o.Etcd.Linearizable || !slices.ContainsFunc(votersOf(o), ill) {
		return plan
	}
	return unhurried(instead(plan))
}

func leaveEmpty(o planner.Observed, plan planner.Plan) planner.Plan {
	if len(o.PVCs) == 0 || o.Record.ClusterID == "" || slices.ContainsFunc(o.Pods, func(p planner.Pod) bool { return p.Owned && !p.Terminating }) {
		return plan
	}
	return unhurried(instead(plan))
}

// omitting is a plan without some of its actions.
func omitting(plan planner.Plan, omit func(planner.Action) bool) planner.Plan {
	plan.Actions = slices.DeleteFunc(slices.Clone(plan.Actions), omit)
	return unhurried(plan)
}

func leaveImages(o planner.Observed, plan planner.Plan) planner.Plan {
	return omitting(plan, func(a planner.Action) bool {
		switch a.(type) {
		case planner.UpgradePod, planner.MoveLeader:
			return plan.Rule == planner.RuleRollout
		}
		return false
	})
}

func leaveServices(o planner.Observed, plan planner.Plan) planner.Plan {
	return omitting(plan, func(a planner.Action) bool {
		switch a.(type) {
		case planner.RepairPeerService:
			return true
		case planner.EnsureClientService:
			return o.ClientService == planner.Drifted
		}
		return false
	})
}

func leaveBudget(_ planner.Observed, plan planner.Plan) planner.Plan {
	return omitting(plan, func(a planner.Action) bool {
		_, ensures := a.(planner.EnsurePodDisruptionBudget)
		return ensures
	})
}

type desiredVersion struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o desiredVersion) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	c = c.DeepCopy()
	c.Status.CurrentVersion = c.Spec.Version
	return o.Objects.UpdateClusterStatus(ctx, c)
}

type onceReady struct{ cluster.Objects }

// UpdateClusterStatus implements cluster.Objects.
func (o onceReady) UpdateClusterStatus(ctx context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	c = c.DeepCopy()
	s := &c.Status.Members
	s.Ready = append(s.Ready, s.Unready...)
	slices.Sort(s.Ready)
	s.Unready = nil
	return o.Objects.UpdateClusterStatus(ctx, c)
}
