// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestUnmanagedMember adds a member with etcdctl that never starts. The status says within seconds that the
// cluster tolerates no more loss, and which command ends that. The command is carried out as it is.
func TestUnmanagedMember(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("guest", 3, etcdVersion)
	data, pod := c.fill(), c.leader().Pod.Name
	c.etcdctl(pod, "member", "add", "foo", "--peer-urls=http://192.0.2.1:2380")
	from := time.Now()
	object := c.await(s.within(noticeWithin), "the unmanaged member in every field", func(object *clusterObject) bool {
		b := object.Status.BlockedBy
		return is(object, v1beta2.ClusterConditionReady, corev1.ConditionFalse) && is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue) &&
			is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && ptr.Deref(object.Status.Tolerance, 99) == 0 &&
			b != nil && b.Reason == "UnmanagedMember" && len(object.Status.MemberStatuses) == 4
	})
	t.Logf("reported in every field after %v", time.Since(from).Round(10*time.Millisecond))
	id := ""
	for _, m := range object.Status.MemberStatuses {
		if m.Unmanaged {
			id = m.ID
			if m.Name != id || m.Role != v1beta2.MemberRolePending {
				t.Errorf("the unmanaged member is %+v", m)
			}
		}
	}
	s.contains(object.Status.BlockedBy.Unblock, "member remove "+id)
	c.etcdctl(pod, strings.Fields("member remove "+id)...)
	c.await(s.within(repairWithin), "the cluster to be Ready", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionReady, corev1.ConditionTrue) && ptr.Deref(object.Status.Tolerance, 0) == 1 && object.Status.BlockedBy == nil
	})
	c.holds(data)
}
