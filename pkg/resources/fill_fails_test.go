// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

// TestFailsToFill: the data directory of a recovery member is certain to be empty only after its agent has looked into it,
// and could not read or use the backup.
func TestFailsToFill(t *testing.T) {
	t.Parallel()
	ended := func(class agent.ErrorClass, code int32) *corev1.ContainerStateTerminated {
		result := agent.Result{Command: agent.CommandFetch, ID: "i", Finished: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
		if class != "" {
			result.Error = &agent.Error{Class: class, Message: "m"}
		}
		raw, err := result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ContainerStateTerminated{ExitCode: code, Message: string(raw)}
	}
	terminated := func(name string, end *corev1.ContainerStateTerminated) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: end}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	again := func(state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: InitFetch, State: state, LastTerminationState: corev1.ContainerState{Terminated: ended(agent.ClassStore, 1)}}
	}
	for name, test := range map[string]struct {
		status   corev1.ContainerStatus
		ordinary bool
		want     bool
	}{
		"its store does not respond":           {terminated(InitFetch, ended(agent.ClassStore, 1)), false, true},
		"its backup is no longer there":        {terminated(InitFetch, ended(agent.ClassNotFound, 1)), false, true},
		"its backup is damaged":                {terminated(InitRestore, ended(agent.ClassCorrupt, 1)), false, true},
		"it waits for its next attempt":        {again(waiting), false, true},
		"it tries again":                       {again(running), false, false},
		"it has fetched the backup":            {terminated(InitFetch, ended("", 0)), false, false},
		"it left no result":                    {terminated(InitFetch, &corev1.ContainerStateTerminated{ExitCode: 137}), false, false},
		"it was stopped":                       {terminated(InitFetch, ended(agent.ClassCanceled, 1)), false, false},
		"its directory holds other data":       {terminated(InitFetch, ended(agent.ClassExists, 1)), false, false},
		"its directory cannot be read":         {terminated(InitFetch, ended(agent.ClassInternal, 1)), false, false},
		"a container of others fails":          {terminated("sidecar", ended(agent.ClassStore, 1)), false, false},
		"its pod starts on what is on its PVC": {terminated(InitFetch, ended(agent.ClassStore, 1)), true, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{test.status}}}
		if !test.ordinary {
			pod.Spec.InitContainers = []corev1.Container{{Name: InitFetch, Command: []string{"agent", agent.FilledDirKey}}}
		}
		if got := FailsToFill(pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
