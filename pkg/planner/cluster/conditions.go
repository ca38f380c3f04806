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
)

// condition computes one condition. The times are filled in afterwards.
type condition func(*Observed, Plan) v1beta2.ClusterCondition

// conditions computes every condition and keeps the times of those that did not
// change. Conditions of other authors are kept as they are.
func conditions(o *Observed, plan Plan) []v1beta2.ClusterCondition {
	list := o.standing(plan).conditions()
	for _, compute := range []condition{
		available, progressing, degraded, quorumLost, recovering, scaling, upgrading, paused, certificatesValid, volumesAsDeclared, serviceAsDeclared,
	} {
		list = append(list, compute(o, plan))
	}
	result := make([]v1beta2.ClusterCondition, 0, len(list))
	computed := map[v1beta2.ClusterConditionType]bool{}
	for _, c := range list {
		computed[c.Type] = true
		if c.Status == "" {
			continue // it is not about this cluster, or not there while it is not True
		}
		result = append(result, stamp(o, c))
	}
	for _, c := range o.Cluster.Status.Conditions {
		if !computed[c.Type] {
			result = append(result, c)
		}
	}
	return result
}

func stamp(o *Observed, c v1beta2.ClusterCondition) v1beta2.ClusterCondition {
	now := o.Now.UTC().Format(time.RFC3339)
	c.LastUpdateTime, c.LastTransitionTime, c.ObservedGeneration = now, now, o.Cluster.Generation
	for _, old := range o.Cluster.Status.Conditions {
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
	return c
}

func is(t v1beta2.ClusterConditionType, s corev1.ConditionStatus, reason, message string) v1beta2.ClusterCondition {
	return v1beta2.ClusterCondition{Type: t, Status: s, Reason: reason, Message: message}
}

// available is True only while a quorum has just answered.
func available(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionAvailable
	switch {
	case !o.bootstrapped() && !o.Etcd.Linearizable:
		return is(t, corev1.ConditionFalse, "Creating", "the cluster has not started yet")
	case o.size() == 0:
		return is(t, corev1.ConditionFalse, "Hibernated", "the cluster was scaled to 0; its volumes are kept")
	case o.Etcd.Linearizable && o.corrupt() != nil:
		return is(t, corev1.ConditionFalse, "DataCorrupt",
			"etcd has found that the data of its members differs, and takes no more writes: "+strings.Join(o.corrupt().Alarms, ", ")+
				"; save what each member has, replace the one that differs, and take the alarm back with etcdctl alarm disarm")
	case o.Etcd.Linearizable:
		return is(t, corev1.ConditionTrue, "QuorumServes", "Cluster available")
	default:
		loss := o.quorumLoss()
		status := corev1.ConditionFalse
		if loss.lost == corev1.ConditionUnknown {
			status = corev1.ConditionUnknown
		}
		return is(t, status, loss.reason, loss.message)
	}
}

// alarmCorrupt is how an alarm begins that says that members have different data.
const alarmCorrupt = "CORRUPT"

// corrupt returns a member that says that data was found to be corrupt, or nil.
func (o *Observed) corrupt() *Member {
	for i := range o.Etcd.Members {
		if m := &o.Etcd.Members[i]; slices.ContainsFunc(m.Alarms, func(a string) bool { return strings.HasPrefix(a, alarmCorrupt) }) {
			return m
		}
	}
	return nil
}

// quorumLost is True only if that is proved.
func quorumLost(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionQuorumLost
	if o.Etcd.Linearizable || !o.bootstrapped() || o.size() == 0 {
		return is(t, corev1.ConditionFalse, "QuorumNotLost", "")
	}
	loss := o.quorumLoss()
	return is(t, loss.lost, loss.reason, loss.message+o.whoSurvives()+"; "+loss.unblock)
}

// recovering is True while the data of the cluster goes on in new members.
func recovering(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionRecovering
	r := recoveryStatus(o, plan)
	switch {
	case r.InProgress():
		return is(t, corev1.ConditionTrue, string(r.Phase), describeRecovery(r))
	case r != nil:
		return is(t, corev1.ConditionFalse, string(r.Phase), r.Message)
	default:
		return is(t, corev1.ConditionFalse, "NotRecovering", "")
	}
}

// degraded is True while a voter that should serve does not, or is missing.
func degraded(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionDegraded
	if !o.bootstrapped() {
		return is(t, corev1.ConditionFalse, "Creating", "the cluster has not started yet")
	}
	if o.size() == 0 {
		return is(t, corev1.ConditionFalse, "Hibernated", "")
	}
	if !o.Etcd.Linearizable {
		loss := o.quorumLoss()
		return is(t, loss.lost, loss.reason, loss.message)
	}
	var sick []*Member
	alarms := ""
	for _, m := range o.voters() {
		onPurpose := m.Name == plan.Leaving && len(o.voters()) > o.size()
		if !onPurpose && (m.Health != Healthy || o.pod(m.Name).gone()) {
			sick = append(sick, m)
		}
		for _, a := range m.Alarms {
			alarms += " " + m.Name + " has alarm " + a
		}
	}
	switch {
	case len(sick) > 0:
		return is(t, corev1.ConditionTrue, "MembersUnhealthy", count(len(sick), "member")+" do not serve: "+names(sick))
	case alarms != "":
		return is(t, corev1.ConditionTrue, "AlarmRaised", "member"+alarms)
	default:
		return is(t, corev1.ConditionFalse, "AllMembersHealthy", "")
	}
}

// progressing is True while the controller moves the cluster towards its spec, or
// waits to.
func progressing(o *Observed, plan Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionProgressing
	switch {
	case plan.Rule == "steady" || plan.Rule == "paused" || plan.Rule == "deleting":
		return is(t, corev1.ConditionFalse, "AsDeclared", "")
	case plan.Rule == "hibernate" && len(o.Pods) == 0:
		return is(t, corev1.ConditionFalse, "Hibernated", "")
	case plan.Wait != nil:
		return is(t, corev1.ConditionTrue, plan.Wait.Reason, plan.Wait.Message)
	default:
		return is(t, corev1.ConditionTrue, progressReason(o, plan.Rule), "")
	}
}

func progressReason(o *Observed, rule string) string {
	switch rule {
	case "peer-service", "bootstrap":
		return "Creating"
	case "scale-up", "in-flight":
		return "MemberJoining"
	case "scale-down":
		return "MemberLeaving"
	case "replace":
		return "MemberReplaced"
	case "rollout", "mend":
		if upgrading(o, Plan{}).Status == corev1.ConditionTrue {
			return "VersionChange"
		}
		return "RollingOut"
	case "return":
		return "MemberReturning"
	case "recovery":
		return "Recovering"
	case "operation":
		return "Operation"
	default:
		return "Reconciling"
	}
}

// scaling is True while the number of voters is not the declared one.
func scaling(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionScaling
	have, want := len(o.voters()), o.size()
	switch {
	case have == want || want == 0:
		return is(t, corev1.ConditionFalse, "SizeReached", "")
	case have < want:
		return is(t, corev1.ConditionTrue, "ScalingUp", sizes(have, want))
	default:
		return is(t, corev1.ConditionTrue, "ScalingDown", sizes(have, want))
	}
}

// upgrading is True while a member runs another version than the declared one.
func upgrading(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionUpgrading
	target := parse(o.Cluster.Spec.Version)
	low := o.lowest()
	if target == nil || low == nil {
		return is(t, corev1.ConditionFalse, "VersionUnknown", "")
	}
	for _, m := range o.voters() {
		if m.Version != "" && !sameVersion(m.Version, target) {
			return is(t, corev1.ConditionTrue, "VersionChange", fmt.Sprintf("from %s to %s", low, target))
		}
	}
	return is(t, corev1.ConditionFalse, "VersionReached", "")
}

// paused mirrors spec.paused.
func paused(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionPaused
	if o.Cluster.Spec.Paused {
		return is(t, corev1.ConditionTrue, "Requested", "spec.paused is true: the controller only watches")
	}
	return is(t, corev1.ConditionFalse, "NotPaused", "")
}
