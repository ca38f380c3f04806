// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// How long to wait before looking again when nothing is expected to announce
// itself. Pod events and etcd's own answers come earlier in every normal case.
const (
	// recheckNow is for the step after one that etcd has just confirmed.
	recheckNow = time.Millisecond
	// recheckIssued is for the step after certificates were issued, which no event tells.
	recheckIssued = 50 * time.Millisecond
	// recheckCatchUp is for a learner that still has much to read.
	recheckCatchUp = 500 * time.Millisecond
	// recheckWaiting is for something that an event should announce.
	recheckWaiting = 5 * time.Second
	// recheckQuorum is for a cluster that may be without a quorum.
	recheckQuorum = 2 * time.Second
	// recheckSteady is for a cluster at rest: etcd does not announce a change of
	// leader or an alarm.
	recheckSteady = 15 * time.Second
)

// rule looks at an observation and either speaks (true) or leaves it to the rules
// after it.
type rule struct {
	name   string
	decide func(*Observed) (Plan, bool)
}

// rules in the order in which they are asked. The order is what keeps the cluster
// safe: while data goes on in new members nothing else is done, nothing below
// bootstrap runs before there is a cluster, nothing below
// quorum runs without a member list read through one, and a membership change
// under way is finished before the next one is thought of.
var rules = []rule{
	{"deleting", ruleDeleting},
	{"paused", rulePaused},
	{"certificates", ruleCertificates},
	{"foreign", ruleForeign},
	{"peer-service", rulePeerService},
	{"recovery", ruleRecovery},
	{"bootstrap", ruleBootstrap},
	{"hibernate", ruleHibernate},
	{"return", ruleReturn},
	{"mend", ruleMend},
	{"quorum", ruleQuorum},
	{"cluster-id", ruleClusterID},
	{"strangers", ruleStrangers},
	{"orphans", ruleOrphans},
	{"in-flight", ruleInFlight},
	{"replace", ruleReplace},
	{"scale-down", ruleScaleDown},
	{"scale-up", ruleScaleUp},
	{"operation", ruleOperation},
	{"rollout", ruleRollout},
	{"steady", ruleSteady},
}

// Rules returns the names of the rules in the order in which they are asked.
func Rules() []string {
	names := make([]string, 0, len(rules))
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// Decide says what to do next. It never asks for more than one membership change.
func Decide(o Observed) Plan {
	for _, r := range rules {
		if plan, spoke := r.decide(&o); spoke {
			plan.Rule = r.name
			issue := slices.Concat(o.issue(plan), o.request(plan), o.refresh(plan))
			if len(issue) > 0 && (plan.RequeueAfter == 0 || plan.RequeueAfter > recheckIssued) {
				plan.RequeueAfter = recheckIssued
			}
			plan.Actions = slices.Concat(o.marks(plan), o.addFinalizer(plan), issue, upkeep(&o, plan), plan.Actions)
			return plan
		}
	}
	return Plan{}
}

// ruleDeleting deletes what belongs to a cluster that is being deleted. Without the
// finalizer, which is removed last, nothing is left to do.
func ruleDeleting(o *Observed) (Plan, bool) {
	if o.Cluster.DeletionTimestamp == nil {
		return Plan{}, false
	}
	if !o.held() {
		return Plan{}, true
	}
	return Plan{Actions: []Action{Dissolve{}}, RequeueAfter: recheckWaiting}, true
}

// rulePaused does nothing but keep the status.
func rulePaused(o *Observed) (Plan, bool) {
	return Plan{RequeueAfter: recheckSteady}, o.Cluster.Spec.Paused
}

// ruleForeign waits while objects of the cluster's names belong to somebody else,
// as they do right after a cluster was deleted and made again under the same name.
func ruleForeign(o *Observed) (Plan, bool) {
	if o.PeerService.State == Foreign {
		return wait(recheckWaiting, "NameTaken",
			"service "+o.Cluster.Name+" exists and does not belong to this cluster",
			"delete that service, or give the cluster another name"), true
	}
	if o.bootstrapped() {
		return Plan{}, false
	}
	if o.ClientService == Foreign {
		return o.waitForName(recheckWaiting), true
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Owned {
			return wait(recheckWaiting, "OldPods",
				"pod "+p.Name+" of another cluster of this name still exists",
				"it goes by itself if that cluster was deleted; otherwise delete it"), true
		}
	}
	return Plan{}, false
}

// rulePeerService makes the headless service first: it claims the name of the seed,
// so that two controllers cannot make two seeds, and it gives members their names.
func rulePeerService(o *Observed) (Plan, bool) {
	if o.PeerService.State != Missing {
		return Plan{}, false
	}
	action := CreatePeerService{Seed: o.NewName}
	switch remains := o.remains(); {
	case o.bootstrapped() || len(remains) > 1:
		// Somebody deleted the service of a living cluster: it comes back without a
		// claim for a seed.
		action = CreatePeerService{ClusterID: o.knownClusterID()}
	case len(remains) == 1:
		// Somebody deleted it while the cluster was starting: the seed that was claimed
		// before stays the only one.
		action.Seed = remains[0]
	}
	return Plan{Actions: []Action{action}, RequeueAfter: recheckWaiting}, true
}

// remains returns the names of the pods and volumes of this very cluster.
func (o *Observed) remains() []string {
	var names []string
	for i := range o.Pods {
		if o.Pods[i].Owned {
			names = append(names, o.Pods[i].Name)
		}
	}
	for i := range o.Claims {
		if o.Claims[i].Owned {
			names = append(names, o.Claims[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ruleSteady has nothing to do. It says what the cluster lacks all the same.
func ruleSteady(o *Observed) (Plan, bool) {
	switch {
	case o.ClientService == Foreign:
		return o.waitForName(recheckSteady), true
	case o.PodDisruptionBudget.State == Foreign && o.Cluster.Spec.PodDisruptionBudget != v1beta2.PodDisruptionBudgetDisabled:
		return wait(recheckSteady, "NameTaken",
			"PodDisruptionBudget "+o.Cluster.Name+" exists and does not belong to this cluster, so evictions may cost the quorum",
			"delete that PodDisruptionBudget, or set spec.podDisruptionBudget=Disabled"), true
	}
	return Plan{RequeueAfter: recheckSteady}, true
}

// waitForName waits while somebody else has the name of the service for clients.
func (o *Observed) waitForName(again time.Duration) Plan {
	name := o.Cluster.Name + "-client"
	return wait(again, "NameTaken",
		"service "+name+" exists and does not belong to this cluster, so it has none for clients",
		"delete that service or what it belongs to, such as a cluster called "+name+", or give this cluster another name")
}

// upkeep returns the actions that keep the services and the budget right. They
// touch no member, so they go along with whatever else is done.
func upkeep(o *Observed, plan Plan) []Action {
	if !o.keepsUp(plan) {
		return nil
	}
	var actions []Action
	if o.PeerService.State == Drifted {
		actions = append(actions, RepairPeerService{})
	}
	if id := o.PeerService.ClusterID; (id == "" || id == unknownClusterID) && o.PeerService.State != Missing && o.Etcd.Linearizable {
		// The record was wiped from the service of a living cluster, or was made again
		// while nobody could be asked.
		actions = append(actions, RecordBootstrap{ClusterID: o.Etcd.ClusterID})
	}
	if o.ClientService == Drifted || (o.ClientService == Missing && o.statusSaysServed()) {
		actions = append(actions, EnsureClientService{})
	}
	actions = append(actions, upkeepBudget(o, plan)...)
	actions = append(actions, upkeepClaims(o)...)
	actions = append(actions, upkeepRoles(o, plan)...)
	actions = append(actions, upkeepPrepared(o, plan)...)
	if plan.Wait != nil && o.Etcd.Linearizable {
		// Before it waits for ever: perhaps not as many members are gone as it seems.
		actions = append(actions, o.findLost()...)
	}
	return actions
}

// keepsUp is true while services, PVCs and the budget are kept as they should be.
func (o *Observed) keepsUp(plan Plan) bool {
	return plan.Rule != "deleting" && plan.Rule != "paused" && plan.Rule != "foreign" && o.bootstrapped()
}

// upkeepRoles labels the pods with what their members are, and those that do not say
// what they were made from. Voters that have joined have their data. Pods that need not
// stay out of the client Service any longer rejoin it.
func upkeepRoles(o *Observed, plan Plan) []Action {
	if !o.Etcd.Linearizable {
		return nil
	}
	var actions []Action
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		p := o.pod(m.Name)
		if p.gone() {
			continue
		}
		role := PodVoter
		switch {
		case m.Learner:
			role = PodLearner
		case o.staysOut(m, plan):
			role = PodLeaving
		}
		joined := m.Started && !m.Learner
		if p.Role != role || (p.Template == "" && o.Template != "") || joined && p.MayFill {
			actions = append(actions, LabelPod{Name: p.Name, UID: p.UID, Role: role, Joined: joined})
		}
	}
	return actions
}

// upkeepBudget guards the quorum of the larger of the live and the wanted voters,
// so that a cluster that grows or shrinks is never guarded too little. Who replaces
// another one is counted before it votes.
func upkeepBudget(o *Observed, plan Plan) []Action {
	budget := o.PodDisruptionBudget
	if o.Cluster.Spec.PodDisruptionBudget == v1beta2.PodDisruptionBudgetDisabled || o.size() == 0 {
		if budget.State == Current || budget.State == Drifted {
			return []Action{DeletePodDisruptionBudget{}}
		}
		return nil
	}
	if !o.Etcd.Linearizable || budget.State == Foreign {
		return nil
	}
	live := len(o.voters())
	if slices.ContainsFunc(plan.Actions, addsVoter) {
		live++
	}
	voters := max(live, o.size())
	if budget.State == Current && budget.MinAvailable == quorum(voters) {
		return nil
	}
	return []Action{EnsurePodDisruptionBudget{Voters: voters}}
}

func addsVoter(a Action) bool {
	switch a := a.(type) {
	case PromoteMember:
		return true
	case AddMember:
		return a.Voter
	default:
		return false
	}
}

func wait(after time.Duration, reason, message, unblock string) Plan {
	return Plan{RequeueAfter: after, Wait: &Wait{Reason: reason, Message: message, Unblock: unblock}}
}
