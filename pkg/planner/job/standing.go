// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Standing is what the conditions Ready, Reconciling and Stalled of an object say. At most
// one of Ready and Stalled is true; if neither is, the object is Reconciling.
type Standing struct {
	Ready, Stalled  bool
	Reason, Message string
}

// Write writes the standing into the conditions of an object of a generation. Reconciling
// and Stalled are there only while they are True, as kstatus wants.
func (s Standing) Write(conditions *[]metav1.Condition, generation int64, now time.Time) {
	set := func(t string, is bool) {
		status := metav1.ConditionFalse
		switch {
		case is:
			status = metav1.ConditionTrue
		case t != v1beta2.ConditionReady:
			meta.RemoveStatusCondition(conditions, t)
			return
		}
		SetCondition(conditions, generation, now, t, status, s.Reason, s.Message)
	}
	set(v1beta2.ConditionReady, s.Ready)
	set(v1beta2.ConditionReconciling, !s.Ready && !s.Stalled)
	set(v1beta2.ConditionStalled, s.Stalled)
}

// SetCondition sets a condition of an object of a generation. Its transition is at now.
func SetCondition(conditions *[]metav1.Condition, generation int64, now time.Time, t string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: t, Status: status, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// StatusTime returns a time as a status holds it, in whole seconds; nil for no time.
func StatusTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t.Truncate(time.Second))
	return &m
}
