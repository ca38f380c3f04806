// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// FailsToFill is true for the pod of a recovery member whose agent has found the data directory empty, and has ended because
// the backup cannot be read or used. So the directory holds nothing. It is false while the agent runs again.
func FailsToFill(pod *corev1.Pod) bool {
	if !Fills(pod) {
		return false
	}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		end := c.State.Terminated
		if end == nil && c.State.Waiting != nil {
			end = c.LastTerminationState.Terminated
		}
		if end == nil || end.ExitCode == 0 || c.Name != InitFetch && c.Name != InitRestore {
			continue
		}
		if result, err := agent.DecodeResult(end.Message); err == nil && result.Error != nil && isOfBackup(result.Error.Class) {
			return true
		}
	}
	return false
}

// isOfBackup is true for an error that the agent returns only after it has looked into the data directory: first it looks
// whether an earlier pod has filled it. Other errors leave that open.
func isOfBackup(class agent.ErrorClass) bool {
	switch class {
	case agent.ClassCredentials, agent.ClassStoreDenied, agent.ClassNoBucket, agent.ClassNotFound, agent.ClassStore, agent.ClassStalled,
		agent.ClassCorrupt, agent.ClassUnsupported:
		return true
	default:
		return false
	}
}
