// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func said(t *testing.T, command agent.Command, failed *agent.Error) string {
	t.Helper()
	at := agent.Result{Command: command, ID: "i", Revision: 7, Error: failed}
	at.Finished = at.Finished.AddDate(2026, 0, 0)
	raw, err := at.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRecoveryMemberOf reads what the init containers of recovery members have left, whatever happened to each.
func TestRecoveryMemberOf(t *testing.T) {
	t.Parallel()
	ended := func(name string, code int32, text string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: text}}}
	}
	repeated := func(c corev1.ContainerStatus) corev1.ContainerStatus {
		c.LastTerminationState, c.State = c.State, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		return c
	}
	fetched := ended(resources.InitFetch, 0, said(t, agent.CommandFetch, nil))
	corrupt := said(t, agent.CommandFetch, &agent.Error{Class: agent.ClassCorrupt, Message: "flipped"})
	slow := said(t, agent.CommandFetch, &agent.Error{Class: agent.ClassStore, Message: "slow"})
	for name, test := range map[string]struct {
		statuses          []corev1.ContainerStatus
		rejected, failing string
		revision          int64
	}{
		"nothing yet":    {nil, "", "", 0},
		"fetched":        {[]corev1.ContainerStatus{fetched}, "", "", 0},
		"restored":       {[]corev1.ContainerStatus{fetched, ended(resources.InitRestore, 0, said(t, agent.CommandRestore, nil))}, "", "", 7},
		"corrupt":        {[]corev1.ContainerStatus{ended(resources.InitFetch, 1, corrupt)}, "Corrupt", "", 0},
		"corrupt, again": {[]corev1.ContainerStatus{repeated(ended(resources.InitFetch, 1, corrupt))}, "Corrupt", "RecoveryMemberNotStarted", 0},
		"store":          {[]corev1.ContainerStatus{repeated(ended(resources.InitFetch, 1, slow))}, "", "StoreUnavailable", 0},
		"no message":     {[]corev1.ContainerStatus{ended(resources.InitFetch, 137, "")}, "", "AgentFailed", 0},
		"of a sidecar":   {[]corev1.ContainerStatus{ended("sidecar", 1, corrupt)}, "", "", 0},
		"no error":       {[]corev1.ContainerStatus{ended(resources.InitFetch, 0, "")}, "", "", 0},
		"evicted":        {nil, "", "Evicted", 0},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: test.statuses}}
		if name == "evicted" {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on ephemeral-storage"
		}
		for _, s := range test.statuses {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: s.Name})
		}
		member := recoveryMemberOf(pod)
		rejected, failing := "", ""
		if member.Rejected != nil {
			rejected = member.Rejected.Reason
		}
		if member.Failing != nil {
			failing = member.Failing.Reason
		}
		if rejected != test.rejected || failing != test.failing || member.Revision != test.revision {
			t.Errorf("%s: refused %q, failing %q, revision %d", name, rejected, failing, member.Revision)
		}
	}
}
