// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestUnscheduled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status        corev1.ConditionStatus
		message, want string
	}{
		"a PVC that does not exist":                {corev1.ConditionFalse, `0/3 nodes are available: persistentvolumeclaim "nope" not found.`, `Unschedulable: 0/3 nodes are available: persistentvolumeclaim "nope" not found.`},
		"the same, with the error of a later step": {corev1.ConditionFalse, `0/3 nodes are available: persistentvolumeclaim "nope" not found. not found`, `Unschedulable: 0/3 nodes are available: persistentvolumeclaim "nope" not found.`},
		"no sentence before it":                    {corev1.ConditionFalse, `persistentvolumeclaim "nope" not found`, `Unschedulable: persistentvolumeclaim "nope" not found`},
		"a pod that has a node":                    {corev1.ConditionTrue, "", ""},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodScheduled, Status: test.status, Reason: "Unschedulable", Message: test.message}}}}
		got := ""
		if reason, message, is := Unscheduled(pod); is {
			got = reason + ": " + message
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if _, _, is := Unscheduled(&corev1.Pod{}); is {
		t.Error("a pod that the scheduler has not looked at yet is unscheduled")
	}
}
