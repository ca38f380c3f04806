// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// condition computes one condition. The times are filled in afterwards.
type condition func(*Observed, Plan) v1beta2.ClusterCondition

// conditions computes every condition and keeps the times of those that did not
// change. Conditions of other authors are kept as they are.
func conditions(o *Observed, plan Plan) []v1beta2.ClusterCondition {
	computations := []condition{
		available, progressing, degraded, quorumLost, recovering, scaling, upgrading, paused, certificatesValid, volumesAsDeclared, serviceAsDeclared, clientsAsDeclared, budgetAsDeclared, onCordonedNode,
	}
	list := standingOf(o, plan).conditions()
	for _, compute := range computations {
		list = append(list, compute(o, plan))
	}
	result := make([]v1beta2.ClusterCondition, 0, len(list))
	now := o.Now.UTC().Format(time.RFC3339)
	for i := range list {
		if list[i].Status == "" {
			continue // it is not about this cluster, or not there while it is not True
		}
		stamp(o.Cluster, &list[i], now)
		result = append(result, list[i])
	}
	for i := range o.Cluster.Status.Conditions {
		other := &o.Cluster.Status.Conditions[i]
		if other.Type == v1beta2.ClusterConditionStatusIncomplete {
			continue // the write of this status adds it again if it must
		}
		if !slices.ContainsFunc(list, func(c v1beta2.ClusterCondition) bool { return c.Type == other.Type }) {
			result = append(result, *other)
		}
	}
	return result
}

// stamp gives a condition the times of the same condition in the last status, where it is
// as it was then, and now elsewhere.
func stamp(cluster *v1beta2.EtcdCluster, c *v1beta2.ClusterCondition, now string) {
	c.LastUpdateTime, c.LastTransitionTime, c.ObservedGeneration = now, now, cluster.Generation
	for i := range cluster.Status.Conditions {
		old := &cluster.Status.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && old.Message == c.Message {
				c.LastUpdateTime = old.LastUpdateTime
			}
		}
	}
}

func is(t v1beta2.ClusterConditionType, s corev1.ConditionStatus, reason Reason, message string) v1beta2.ClusterCondition {
	return v1beta2.ClusterCondition{Type: t, Status: s, Reason: string(reason), Message: message}
}

// available is True only while a quorum has just responded, and etcd accepts writes.
func available(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionAvailable
	switch {
	case !isBootstrapped(o) && !o.Etcd.Linearizable:
		return is(t, corev1.ConditionFalse, ReasonCreating, "the cluster has not started yet")
	case desiredSize(o.Cluster) == 0 && len(listDoomed(o)) > 0:
		return is(t, corev1.ConditionFalse, ReasonHibernated, "the cluster was scaled to 0; members whose PVCs are being deleted run on")
	case desiredSize(o.Cluster) == 0:
		return is(t, corev1.ConditionFalse, ReasonHibernated, "the cluster was scaled to 0; its volumes are kept")
	case o.Etcd.Linearizable && writesRejected(o) != nil:
		return is(t, corev1.ConditionFalse, writesRejected(o).reason, writesRejected(o).message)
	case o.Etcd.Linearizable:
		return is(t, corev1.ConditionTrue, ReasonQuorumHealthy, "Cluster available")
	default:
		loss := diagnoseQuorumLoss(o)
		status := corev1.ConditionUnknown
		if loss.Certain {
			status = corev1.ConditionFalse
		}
		return is(t, status, Reason(loss.Reason), loss.Message)
	}
}

// quorumLost is True only if that is proved.
func quorumLost(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionQuorumLost
	if o.Etcd.Linearizable || !isBootstrapped(o) || desiredSize(o.Cluster) == 0 {
		return is(t, corev1.ConditionFalse, ReasonQuorumNotLost, "")
	}
	facts := diagnosisInput(o)
	loss := facts.QuorumLoss()
	for i := range o.Etcd.Members {
		facts.Members[i].RaftIndex = reportedRaftIndex(o, &o.Etcd.Members[i])
	}
	return is(t, loss.Status(), Reason(loss.Reason), loss.Message+" "+facts.DescribeSurvivors()+" "+loss.Remediation)
}

// recovering is True while the data of the cluster goes on in new members.
func recovering(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionRecovering
	r := recoveryStatus(o, plan)
	switch {
	case r.IsInProgress():
		return is(t, corev1.ConditionTrue, Reason(r.Phase), recovery.Describe(r))
	case r != nil:
		return is(t, corev1.ConditionFalse, Reason(r.Phase), r.Message)
	default:
		return is(t, corev1.ConditionFalse, ReasonNotRecovering, "")
	}
}

// degraded is True while a voter that should serve does not, or is missing. A voter that
// was removed because it did not serve is missing until the next one votes. One that is only
// declared, by a larger size, is not.
func degraded(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionDegraded
	if !isBootstrapped(o) {
		return is(t, corev1.ConditionFalse, ReasonCreating, "the cluster has not started yet")
	}
	if desiredSize(o.Cluster) == 0 {
		return is(t, corev1.ConditionFalse, ReasonHibernated, "")
	}
	if !o.Etcd.Linearizable {
		loss := diagnoseQuorumLoss(o)
		return is(t, loss.Status(), Reason(loss.Reason), loss.Message)
	}
	var sick []*Member
	var alarms []string
	for _, m := range listVoters(o.Etcd.Members) {
		onPurpose := m.Name == plan.Draining && len(listOwnVoters(o.Etcd.Members)) > desiredSize(o.Cluster)
		if !onPurpose && !quorumOf(o).stateOf(m).IsServing() {
			sick = append(sick, m)
		}
		for _, a := range AlarmTexts(m) {
			alarms = append(alarms, m.Name+" has alarm "+a)
		}
	}
	switch {
	case len(sick) > 0:
		return is(t, corev1.ConditionTrue, ReasonMembersUnhealthy, doNotServe+names(sick)+describeAway(o.Cluster, o.Now, o.Pods, sick))
	case writesRejected(o) != nil:
		return is(t, corev1.ConditionTrue, writesRejected(o).reason, writesRejected(o).message)
	case len(alarms) > 0:
		return is(t, corev1.ConditionTrue, ReasonAlarmRaised, "member "+strings.Join(alarms, ", "))
	case len(listOwnVoters(o.Etcd.Members)) < desiredSize(o.Cluster) && reportedCondition(o.Cluster.Status.Conditions, t).Status == corev1.ConditionTrue:
		return is(t, corev1.ConditionTrue, ReasonMembersMissing, sizes(len(listOwnVoters(o.Etcd.Members)), desiredSize(o.Cluster)))
	default:
		return is(t, corev1.ConditionFalse, ReasonAllMembersHealthy, "")
	}
}

// progressing is True while the controller moves the cluster towards its spec, or
// waits to.
func progressing(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionProgressing
	switch {
	case plan.Rule == RuleSteady || plan.Rule == RulePaused || plan.Rule == RuleDeleting:
		return is(t, corev1.ConditionFalse, ReasonAsDeclared, "")
	case plan.Rule == RuleHibernate && len(o.Pods) == 0:
		return is(t, corev1.ConditionFalse, ReasonHibernated, "")
	case keepsOldMembers(plan):
		return is(t, corev1.ConditionFalse, plan.Wait.Reason, plan.Wait.Message)
	case plan.Wait != nil:
		return is(t, corev1.ConditionTrue, plan.Wait.Reason, plan.Wait.Message)
	default:
		return is(t, corev1.ConditionTrue, progressReason(o, plan.Rule), "")
	}
}

func progressReason(o *Observed, rule RuleName) Reason {
	switch rule {
	case RuleRecord, RulePeerService, RuleBootstrap:
		return ReasonCreating
	case RuleTakeOver:
		return ReasonTakingOver
	case RuleScaleUp, RuleJoining:
		return ReasonMemberJoining
	case RuleScaleDown:
		return ReasonRemovingMember
	case RuleReplace:
		return ReasonReplacingMember
	case RuleRollout, RuleRepair:
		if upgrading(o, Plan{}).Status == corev1.ConditionTrue {
			return ReasonVersionChange
		}
		return ReasonRollingOut
	case RuleRecreatePods:
		return ReasonRecreatingPod
	case RuleRecovery:
		return ReasonRecovering
	case RuleOperation:
		return ReasonOperation
	default:
		return ReasonReconciling
	}
}

// scaling is True while the number of voters is not the declared one.
func scaling(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionScaling
	have, want := len(listOwnVoters(o.Etcd.Members)), desiredSize(o.Cluster)
	switch {
	case have == want || want == 0:
		return is(t, corev1.ConditionFalse, ReasonSizeReached, "")
	case have < want:
		return is(t, corev1.ConditionTrue, ReasonScalingUp, sizes(have, want))
	default:
		return is(t, corev1.ConditionTrue, ReasonScalingDown, sizes(have, want))
	}
}

// upgrading is True while a member runs another version than the declared one.
func upgrading(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionUpgrading
	target := parse(o.Cluster.Spec.Version)
	members := versionsOf(o)
	low := members.lowest()
	if target == nil || low == nil {
		return is(t, corev1.ConditionFalse, ReasonVersionUnknown, "")
	}
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if runs := members.runs(m); runs != nil && m.Version != "" && !runs.EqualTo(target) {
			from := low.String()
			if low.EqualTo(target) {
				from = runs.String() // the others run the declared version
			}
			return is(t, corev1.ConditionTrue, ReasonVersionChange, fmt.Sprintf("from %s to %s", from, target))
		}
	}
	return is(t, corev1.ConditionFalse, ReasonVersionReached, "")
}

// paused mirrors spec.paused.
func paused(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionPaused
	if o.Cluster.Spec.Paused {
		return is(t, corev1.ConditionTrue, ReasonRequested, "spec.paused is true: the controller only watches")
	}
	return is(t, corev1.ConditionFalse, ReasonNotPaused, "")
}
