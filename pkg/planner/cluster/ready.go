// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// readyHold is how long a cluster that was Ready stays so while nothing but responses of
// etcd are missing, as they are during an election.
const readyHold = 10 * time.Second

// standing is what the conditions Ready, Reconciling and Stalled say; exactly one of
// ready, stalled and neither holds.
type standing struct {
	ready, stalled bool
	reason         Reason
	message        string
}

// conditions returns the three. Reconciling and Stalled have no status, and are not there,
// while they are not True, as kstatus wants.
func (s standing) conditions() []v1beta2.ClusterCondition {
	whileTrue := func(t v1beta2.ClusterConditionType, holds bool) v1beta2.ClusterCondition {
		if !holds {
			return v1beta2.ClusterCondition{Type: t}
		}
		return is(t, corev1.ConditionTrue, s.reason, s.message)
	}
	ready := is(v1beta2.ClusterConditionReady, corev1.ConditionFalse, s.reason, s.message)
	if s.ready {
		ready.Status = corev1.ConditionTrue
	}
	return []v1beta2.ClusterCondition{
		ready,
		whileTrue(v1beta2.ClusterConditionReconciling, !s.ready && !s.stalled),
		whileTrue(v1beta2.ClusterConditionStalled, s.stalled),
	}
}

// standingOf says whether the cluster is as declared. If not, it says whether the controller
// works on that or waits for a user.
func standingOf(o *Observed, plan Plan) standing {
	unmet := findUnmet(o, plan)
	switch {
	case unmet == nil && desiredSize(o.Cluster) == 0:
		return standing{ready: true, reason: ReasonHibernated, message: "spec.size is 0 and no pod is left"}
	case unmet == nil && keepsOldMembers(plan):
		return standing{ready: true, reason: ReasonOldMembersKept, message: plan.Wait.Message}
	case unmet == nil:
		return standing{ready: true, reason: ReasonAsDeclared, message: describeAsDeclared(o.Cluster)}
	case holdsReady(o, plan):
		return standing{ready: true, reason: ReasonAsDeclared, message: reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionReady).Message}
	case o.Cluster.Spec.Paused:
		return standing{stalled: true, reason: ReasonPaused, message: "spec.paused is true and the cluster is not as declared: " + unmet.message + ". Set spec.paused=false."}
	case joinsFail(o) != nil && !rowNeedsUser(plan):
		return *joinsFail(o)
	case plan.Wait != nil:
		return standing{stalled: waitsTooLong(o, plan), reason: plan.Wait.Reason, message: plan.Wait.Message}
	default:
		return *unmet
	}
}

func describeAsDeclared(cluster *v1beta2.EtcdCluster) string {
	verb := "are"
	if desiredSize(cluster) == 1 {
		verb = "is"
	}
	return diagnosis.Count(desiredSize(cluster), "voter") + " of etcd " + cluster.Spec.Version + " " + verb + " healthy"
}

// findUnmet returns what the cluster lacks of its declaration; nil if that is nothing.
func findUnmet(o *Observed, plan Plan) *standing {
	if desiredSize(o.Cluster) == 0 {
		return findUnmetAsleep(o.Pods, plan)
	}
	if plan.Wait != nil && plan.Rule != RuleOperation && !keepsOldMembers(plan) {
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	}
	if p := progressing(o, plan); p.Status == corev1.ConditionTrue && plan.Rule != RuleOperation {
		return &standing{reason: Reason(p.Reason), message: cmp.Or(p.Message, "the controller brings the cluster to its declaration")}
	}
	if a := available(o, plan); a.Status != corev1.ConditionTrue {
		rejected := o.Etcd.Linearizable && isBootstrapped(o) && writesRejected(o) != nil
		return &standing{stalled: rejected && !writesRejected(o).byItself && plan.Rule != RuleOperation, reason: Reason(a.Reason), message: a.Message}
	}
	if s := scaling(o, plan); s.Status == corev1.ConditionTrue || len(listOwn(o.Etcd.Members)) != desiredSize(o.Cluster) {
		return &standing{reason: ReasonMembersDiffer, message: sizes(len(listOwnVoters(o.Etcd.Members)), desiredSize(o.Cluster))}
	}
	if lacking := listLacking(o); len(lacking) > 0 {
		return unhealthy(o, lacking)
	}
	for _, c := range []v1beta2.ClusterCondition{volumesAsDeclared(o, plan), serviceAsDeclared(o, plan), clientsAsDeclared(o, plan)} {
		if c.Status == corev1.ConditionFalse {
			reason := Reason(c.Reason)
			rejected := reason != ReasonGrowing && reason != ReasonMissing && reason != certificates.ReasonIssuing && reason != ReasonRemovingClient
			return &standing{stalled: rejected && lastedFor(o.Cluster.Status.Conditions, o.Now, c) >= waits.Soon, reason: Reason(c.Type), message: c.Message}
		}
	}
	return nil
}

// unhealthy is about members for which no rule does anything more, such as a voter whose container ends again
// and again because its disk is empty or damaged. They may come back, so it takes a while until the cluster is Stalled.
func unhealthy(o *Observed, lacking []string) *standing {
	s := &standing{reason: ReasonMembersUnhealthy, message: "members that are not healthy and as declared: " + strings.Join(lacking, ", ")}
	degraded := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionDegraded)
	if s.stalled = degraded.Status == corev1.ConditionTrue && sinceTransition(o.Now, degraded) >= waits.Late; s.stalled {
		s.message += ". Look at the logs of a member that does not come back, and have another member replace it: kubectl etcd replace " + o.Cluster.Name + " MEMBER"
	}
	return s
}

// findUnmetAsleep is about a cluster that is to have no members.
func findUnmetAsleep(pods []Pod, plan Plan) *standing {
	switch {
	case plan.Wait != nil && plan.Wait.Reason != ReasonDesiredSizeZero:
		return &standing{reason: plan.Wait.Reason, message: plan.Wait.Message}
	case len(pods) > 0:
		return &standing{reason: ReasonHibernating, message: diagnosis.Count(len(pods), "pod") + " still exist"}
	default:
		return nil
	}
}

// listLacking says of each voter that is not healthy, or not as declared, what it lacks.
func listLacking(o *Observed) []string {
	var lacking []string
	target := parse(o.Cluster.Spec.Version)
	for _, m := range listOwnVoters(o.Etcd.Members) {
		pod := podByName(o.Pods, m.Name)
		switch {
		case isGone(pod):
			lacking = append(lacking, m.Name+" (no pod)")
		case m.Health != Healthy:
			lacking = append(lacking, m.Name+" (not healthy)")
		case !pod.Ready:
			lacking = append(lacking, m.Name+" (pod not ready)")
		case changeDue(o, m) != asDeclared:
			lacking = append(lacking, m.Name+" (pod not as declared)")
		case target != nil && m.Version != "" && !isSameRelease(parse(m.Version), target):
			lacking = append(lacking, fmt.Sprintf("%s (runs etcd %s)", m.Name, m.Version))
		}
	}
	return lacking
}

// holdsReady is true while a cluster that was Ready at this generation lacks nothing but
// responses of etcd, and only for a moment. Users and programs that wait for the cluster
// need not see a change of leader.
func holdsReady(o *Observed, plan Plan) bool {
	was := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionReady)
	if was.Status != corev1.ConditionTrue || was.ObservedGeneration != o.Cluster.Generation || (was.Reason != string(ReasonAsDeclared) && was.Reason != string(ReasonOldMembersKept)) {
		return false
	}
	switch plan.Rule {
	case RuleQuorum, RuleOperation, RuleSteady, RulePaused:
	default:
		return false
	}
	voters := listOwnVoters(o.Etcd.Members)
	if len(voters) != desiredSize(o.Cluster) || len(voters) != len(listOwn(o.Etcd.Members)) || writesRejected(o) != nil {
		return false
	}
	for _, m := range voters {
		if pod := podByName(o.Pods, m.Name); isGone(pod) || !pod.Running || !pod.Ready || changeDue(o, m) != asDeclared {
			return false
		}
	}
	before := reportedCondition(o.Cluster.Status.Conditions, v1beta2.ClusterConditionDegraded)
	return before.Status == corev1.ConditionFalse || sinceTransition(o.Now, before) < readyHold
}
