// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// checkDisarm: an alarm is disarmed only if no member that responds is full and no data differs. A member whose
// database no response and no status has told is waited for; no status here tells that it was.
func checkDisarm(f *facts, plan Plan) string {
	if !slices.ContainsFunc(plan.Actions, func(a Action) bool { _, is := a.(DisarmNoSpace); return is }) {
		return ""
	}
	switch {
	case !f.Etcd.Linearizable:
		return "disarms an alarm without a quorum"
	case f.reports(alarmCorrupt):
		return "disarms an alarm while data differs"
	case slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Health == Healthy && m.DBSize >= m.Quota }):
		return "disarms the alarm of a database that is full"
	case slices.ContainsFunc(f.Etcd.Members, func(m Member) bool { return m.Started && m.Health != Healthy && m.DBSize == 0 }):
		return "disarms the alarm of a database that may be full"
	}
	return ""
}

// checkDiffering: while data differs no voter is removed that has a pod or a PVC, and no PVC is deleted.
func checkDiffering(f *facts, plan Plan) string {
	if !f.reports(alarmCorrupt) {
		return ""
	}
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case RemoveMember:
			m, pod := f.memberByID(a.ID), f.podIndex(a.Name)
			if m.Started && !m.Learner && (pod >= 0 && !f.Pods[pod].Terminating && !f.Pods[pod].Finished || f.pvcIndex(a.Name) >= 0) {
				return "removes a member that may have the right data"
			}
		case DeletePVC:
			return "deletes a PVC that may have the right data"
		}
	}
	return ""
}

// reports is true if a member that responds reports an alarm.
func (f *facts) reports(alarm string) bool {
	return slices.ContainsFunc(f.Etcd.Members, func(m Member) bool {
		return slices.ContainsFunc(m.Alarms, func(a Alarm) bool { return a.Type == alarm })
	})
}

// rejectsWrites is true if a voter that responds reports an alarm that stops writes.
func (f *facts) rejectsWrites() bool {
	return f.reports(alarmCorrupt) || slices.ContainsFunc(f.Etcd.Members, func(m Member) bool {
		return !m.Learner && slices.ContainsFunc(m.Alarms, func(a Alarm) bool { return a.Type == alarmNoSpace })
	})
}

// checkTruth: Ready means that a quorum serves, takes writes and runs what is declared. Available means
// that it serves and takes writes. The phase says nothing else. A cluster that was Ready may stay so for a
// moment while only responses are missing.
func checkTruth(f *facts, s v1beta2.ClusterStatus) string {
	is := func(t v1beta2.ClusterConditionType, want corev1.ConditionStatus) bool {
		return slices.ContainsFunc(s.Conditions, func(c v1beta2.ClusterCondition) bool { return c.Type == t && c.Status == want })
	}
	ready, available := is(v1beta2.ClusterConditionReady, corev1.ConditionTrue), is(v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	asleep := *f.Cluster.Spec.Replicas == 0
	held := slices.ContainsFunc(f.Cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionReady && c.Status == corev1.ConditionTrue
	})
	otherVersion := slices.ContainsFunc(f.Etcd.Members, func(m Member) bool {
		return !m.Learner && !m.Unmanaged && m.Version != "" && m.Version != f.Cluster.Spec.Version
	})
	switch {
	case ready && f.rejectsWrites() && f.Etcd.Linearizable && !asleep:
		return "Ready while etcd rejects writes"
	case available && f.rejectsWrites():
		return "Available while etcd rejects writes"
	case ready && !available && !asleep && !held:
		return "Ready and not Available"
	case ready && !asleep && otherVersion:
		return "Ready with a member of another version"
	case available && (is(v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) || asleep):
		return "Available and without a quorum"
	case available && s.Phase != v1beta2.ClusterPhaseRunning && s.Phase != v1beta2.ClusterPhaseCreating:
		return "Available in phase " + string(s.Phase)
	case s.Phase == v1beta2.ClusterPhaseFailed && (f.Etcd.Linearizable || !is(v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)):
		return "Failed and the quorum is not lost"
	case s.Reason != "" && available:
		return "Available, and the status has a reason: " + s.Reason
	}
	return ""
}
