// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Unscheduled returns why no node takes a pod, in the words of Kubernetes; false if one does. The scheduler
// adds the error of a step that it could not take: a missing PVC reads "not found. not found" then.
func Unscheduled(pod *corev1.Pod) (reason, message string, is bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			text, cut := strings.CutSuffix(c.Message, ". not found")
			if cut {
				text += "."
			}
			return c.Reason, text, true
		}
	}
	return "", "", false
}
