// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"time"

	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// Short names of the kinds that are looked up most.
type (
	// EtcdCluster is our object.
	EtcdCluster = *v1beta2.EtcdCluster
	// PVC holds the data of a member.
	PVC = *corev1.PersistentVolumeClaim
	// Budget guards the quorum against evictions.
	Budget = *policyv1.PodDisruptionBudget
)

// LabelsOf returns the labels of a pod for a selector.
func LabelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }

// SetReady writes the ready condition of a pod, with a time of the machine that writes it.
func (w *World) SetReady(name, uid string, ready bool, at time.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	Edit(w.Store, KindPod, name, func(pod *corev1.Pod) {
		if string(pod.UID) == uid {
			setCondition(pod, corev1.PodReady, status, at)
		}
	})
}

// SetCondition sets a condition of a pod, and its time if that is new.
func (w *World) SetCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) {
	setCondition(pod, t, status, w.Now())
}

func setCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			if pod.Status.Conditions[i].Status != status {
				pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = status, metav1.NewTime(at)
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(at)})
}

// IsReady is true for a pod whose condition says so.
func IsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Evict is the eviction API: it asks the disruption budget. It returns true if the eviction
// was allowed.
func (w *World) Evict(pod *corev1.Pod) bool {
	budget, found := Lookup[Budget](w.Store, KindBudget, schedules.ClusterName)
	if found && !w.budgetAllows(budget, pod) {
		return false
	}
	if recovery, guarded := Lookup[Budget](w.Store, KindBudget, resources.RecoveryBudgetName(schedules.ClusterName)); guarded && !w.budgetAllows(recovery, pod) {
		return false
	}
	w.Observer.BeforeEviction(pod, found)
	return w.Store.DeleteObject(KindPod, pod.Name, metav1.Preconditions{UID: &pod.UID}) == nil
}

func (w *World) budgetAllows(budget Budget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil || !selector.Matches(LabelsOf(pod)) {
		return true
	}
	healthy := 0
	for _, object := range w.Store.List(KindPod) {
		if p := object.(*corev1.Pod); selector.Matches(LabelsOf(p)) && IsReady(p) && p.DeletionTimestamp == nil {
			healthy++
		}
	}
	need := budget.Spec.MinAvailable.IntValue()
	if !IsReady(pod) {
		return healthy >= need
	}
	return healthy-1 >= need
}

// HasFinished is true for a pod whose containers have ended permanently.
func HasFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// ConditionIs is true if the status of an EtcdCluster has a condition with a value.
func ConditionIs(cluster *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType, status corev1.ConditionStatus) bool {
	for _, c := range cluster.Status.Conditions {
		if c.Type == t {
			return c.Status == status
		}
	}
	return false
}

// isUnschedulable is true for a pod that no node could take so far.
func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}
