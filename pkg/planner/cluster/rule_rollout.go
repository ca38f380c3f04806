// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// change is what must happen to a member so that its pod is what is declared.
type change int

const (
	// asDeclared: nothing.
	asDeclared change = iota
	// reimage: its container restarts in place with another image, on its data.
	reimage
	// recreate: its pod is made again, on its volume.
	recreate
	// replace: another member takes its place, because its data goes with its pod. That
	// one joins first, so it is for the rules about the membership.
	replace
)

// due returns what must happen to a member.
func (o *Observed) due(m *Member) change {
	pod := o.pod(m.Name)
	switch {
	case pod.gone():
		return asDeclared // it comes back as declared, or another one comes
	case o.stale(pod) && o.claim(m.Name) != nil:
		return recreate
	case o.stale(pod):
		return replace
	case o.otherImage(pod):
		return reimage
	default:
		return asDeclared
	}
}

// stale is true for a pod that was made from another declaration than the one of now,
// before the last request to restart, or while other authorities were to be trusted.
func (o *Observed) stale(p *Pod) bool {
	request := resources.RestartRequest(o.Cluster)
	return (p.Template != "" && o.Template != "" && p.Template != o.Template) || (request != "" && p.Restart != request) || o.distrusts(p)
}

// otherImage is true for a pod that was made for another version, or from another
// repository.
func (o *Observed) otherImage(p *Pod) bool {
	target := parse(o.Cluster.Spec.Version)
	return target != nil && (p.Outdated || !sameVersion(p.Version, target))
}

// surge is how many voters more than declared there may be: one while a member must be
// replaced by another one.
func (o *Observed) surge() int {
	for _, m := range o.voters() {
		if o.due(m) == replace {
			return 1
		}
	}
	return 0
}

// ruleRollout makes the members what is declared, one by one: a broken one first, the
// leader last, each only while the others are a quorum without it.
func ruleRollout(o *Observed) (Plan, bool) {
	target, low := parse(o.Cluster.Spec.Version), o.lowest()
	if target == nil || low == nil {
		return Plan{}, false
	}
	refusal, refused := o.refuseStep(low, target)
	next := o.nextDue(!refused)
	if plan, waits := o.awaitRestarts(next != nil); waits {
		return plan, true
	}
	if next != nil {
		return restart(o, next, target, !refused), true
	}
	return refusal, refused && o.nextDue(true) != nil
}

// nextDue returns the member that goes next, or nil; without images only members whose
// pods must be made again.
func (o *Observed) nextDue(images bool) *Member {
	var next *Member
	leader := o.leader()
	for _, m := range o.voters() {
		if c := o.due(m); c != recreate && (c != reimage || !images) {
			continue
		}
		if next == nil || o.rank(m, leader) > o.rank(next, leader) {
			next = m
		}
	}
	return next
}

// awaitRestarts waits for members that restart, or are about to. A member that does
// not answer is waited for only if there are others to go after it.
func (o *Observed) awaitRestarts(more bool) (Plan, bool) {
	for _, m := range o.voters() {
		pod := o.pod(m.Name)
		if o.restarts(m) || (more && m.Version == "" && !pod.gone() && o.due(m) == asDeclared) {
			return wait(recheckWaiting, "WaitingForMember",
				"member "+m.Name+" restarts with version "+pod.Version+waitingFor(pod), "nothing, unless it lasts"), true
		}
	}
	return Plan{}, false
}

// restart makes one member what is declared, in place, after it was drained. In a cluster of fewer than three
// voters the others are no quorum meanwhile, so there it costs a short outage, and
// every other voter must serve before.
func restart(o *Observed, m *Member, target *version.Version, upgrade bool) Plan {
	voters, others := len(o.voters()), o.without(m)
	outage := others < quorum(voters)
	if (outage && (voters > 2 || others < voters-1)) || (m.Health == Healthy && others < voters-1) {
		return wait(recheckQuorum, "QuorumAtRisk",
			fmt.Sprintf("member %s cannot be restarted: %d of the %d other voters serve", m.Name, others, voters-1),
			"the members that do not serve must come back")
	}
	if other := o.notReady(m); other != nil && m.Health == Healthy {
		// etcd serves a moment before Kubernetes sends clients to it again. Who goes on at
		// once takes the last member away from the service.
		return waitReady(other)
	}
	if plan, waits := o.awaitService(m); waits {
		return plan
	}
	leader := o.leader()
	if leader == nil && m.Health == Healthy && voters > 1 {
		// It may be the leader, who hands over first.
		plan := wait(recheckWaiting, "NoLeader", "most members do not agree yet about who leads", "nothing, unless it lasts")
		plan.Leaving = m.Name
		return plan
	}
	if plan, waits := o.drain(m); waits {
		return plan
	}
	return Plan{Actions: []Action{o.renew(m, target, upgrade, outage)}, RequeueAfter: recheckWaiting, Leaving: m.Name}
}

func waitReady(m *Member) Plan {
	return wait(recheckWaiting, "WaitingForReady",
		"member "+m.Name+" serves and its pod is not ready for clients yet", "nothing, unless it lasts")
}

// renew returns the action that makes the pod of a member what is declared. If it may
// not be upgraded now, a pod that is made again keeps its version.
func (o *Observed) renew(m *Member, target *version.Version, upgrade, outage bool) Action {
	pod, v := o.pod(m.Name), target.String()
	if o.due(m) == reimage {
		return UpgradePod{Name: pod.Name, UID: pod.UID, Version: v, Outage: outage}
	}
	if !upgrade {
		v = pod.Version
	}
	return RecreatePod{Name: pod.Name, UID: pod.UID, Version: v, Outage: outage}
}

// ruleMend gives pods whose container does not run what is declared now. It takes away
// nothing that serves, so it needs no quorum and waits for nobody: it is how members
// come back that a bad declaration has cost.
func ruleMend(o *Observed) (Plan, bool) {
	target, low := parse(o.Cluster.Spec.Version), o.lowest()
	if target == nil {
		return Plan{}, false
	}
	if !o.Etcd.Linearizable && len(o.Etcd.Members) == 0 {
		actions := o.mendFirst(target)
		return Plan{Actions: actions, RequeueAfter: recheckQuorum}, len(actions) > 0
	}
	if low == nil {
		return Plan{}, false
	}
	_, refused := o.refuseStep(low, target)
	var actions []Action
	for i := range o.Etcd.Members {
		// Without a quorum a learner may be a voter by now whose promotion was the last
		// thing that happened, and it may be the one that the others need.
		m := &o.Etcd.Members[i]
		pod := o.pod(m.Name)
		if pod.gone() || pod.Running || (m.Learner && o.Etcd.Linearizable) {
			continue
		}
		switch c := o.due(m); {
		case c == recreate, c == reimage && !refused:
			actions = append(actions, onlyIdle(o.renew(m, target, !refused, false)))
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckQuorum}, len(actions) > 0
}

// mendFirst does the same for a cluster that has served and of which no status has named a
// member yet. Its volumes say who they are; nobody says what they run, so that they keep
// the version that they were made for.
func (o *Observed) mendFirst(target *version.Version) []Action {
	var actions []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case !p.Owned || p.gone() || p.Running || o.claim(p.Name) == nil:
		case o.stale(p):
			actions = append(actions, RecreatePod{Name: p.Name, UID: p.UID, Version: p.Version, Waiting: true})
		case p.Outdated && sameVersion(p.Version, target): // from another repository
			actions = append(actions, UpgradePod{Name: p.Name, UID: p.UID, Version: target.String(), Waiting: true})
		}
	}
	return actions
}

// onlyIdle restricts an action to a container that does not run.
func onlyIdle(a Action) Action {
	switch a := a.(type) {
	case UpgradePod:
		a.Waiting = true
		return a
	case RecreatePod:
		a.Waiting = true
		return a
	default:
		return a
	}
}

// notReady returns a voter other than m whose pod is not ready, or nil.
func (o *Observed) notReady(m *Member) *Member {
	for _, other := range o.voters() {
		if pod := o.pod(other.Name); other != m && (pod.gone() || !pod.Ready) {
			return other
		}
	}
	return nil
}

// restarting returns the voters that serve and are about to restart.
func (o *Observed) restarting() []*Member {
	var list []*Member
	for _, m := range o.voters() {
		if m.Health == Healthy && o.restarts(m) {
			list = append(list, m)
		}
	}
	return list
}

// restarts is true for a member whose container is about to restart, or has and
// Kubernetes has not said so yet: the container is not the one that its pod asks for,
// or etcd says that it runs another version than its pod was made for.
func (o *Observed) restarts(m *Member) bool {
	pod := o.pod(m.Name)
	if pod.gone() {
		return false
	}
	if pod.Restarting {
		return true
	}
	has, says := parse(pod.Version), parse(m.Version)
	return has != nil && says != nil && (has.Major() != says.Major() || has.Minor() != says.Minor() || has.Patch() != says.Patch())
}
