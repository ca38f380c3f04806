// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestMemberOfAnotherProgram: a member that only the controller reaches is as the controller reports it.
func TestMemberOfAnotherProgram(t *testing.T) {
	t.Parallel()
	health := &v1beta2.MemberHealth{Name: "old-0", ID: "1", Role: v1beta2.MemberRoleFollower, Error: "another program runs it"}
	for healthy, want := range map[corev1.ConditionStatus]Member{
		corev1.ConditionTrue:    {Name: "old-0", ID: "1", Role: "leader", Version: "3.5.21", PodState: "another program", State: "healthy", Healthy: true},
		corev1.ConditionUnknown: {Name: "old-0", ID: "1", Role: "leader", Version: "3.5.21", PodState: "another program", State: "no response", Fault: "another program runs it; the controller reports: no route"},
	} {
		c := &v1beta2.EtcdCluster{}
		c.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "old-0", ID: "1", Role: v1beta2.MemberRoleLeader, Version: "3.5.21", Unmanaged: true, Healthy: healthy, Message: "no route"}}
		if got := fromHealth(health, c); got != want {
			t.Errorf("%s: %+v, want %+v", healthy, got, want)
		}
	}
}
