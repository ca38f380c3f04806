// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
)

func TestReasonsOfAttempts(t *testing.T) {
	for _, reason := range []string{
		"PodNotStarted", "JobLost", "NodeLost", "AgentFailed", "PodFailed", "DeadlineExceeded", "OOMKilled", "Evicted", "PreemptionByScheduler",
		string(agent.ClassTooSlow), string(agent.ClassNotFound), string(agent.ClassInternal),
	} {
		if got := reasonLabel(reason); got != reason {
			t.Errorf("%s is counted as %s", reason, got)
		}
	}
	for _, reason := range []string{"", "Preempted-by-a-plugin", "UnexpectedAdmissionError"} {
		if got := reasonLabel(reason); got != "Other" {
			t.Errorf("%q is counted as %s: a reason that is not listed makes a series of its own", reason, got)
		}
	}
}
