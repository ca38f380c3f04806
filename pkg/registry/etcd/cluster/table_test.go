// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestColumns(t *testing.T) {
	t.Parallel()
	var plain, wide []string
	for _, column := range newTable(nil).Columns {
		if column.Priority == 0 {
			plain = append(plain, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	if diff := cmp.Diff([]string{"Name", "Size", "Ready", "Tolerance", "Leader", "Version", "DB", "Last-Backup", "Phase", "Age"}, plain); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Service", "Message"}, wide); diff != "" {
		t.Errorf("wide columns (-want +got):\n%s", diff)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	running := func(change func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
		cluster := &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(3 * time.Hour)},
			Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3)},
			Status: v1beta2.ClusterStatus{
				Phase: v1beta2.ClusterPhaseRunning, Replicas: 3, CurrentVersion: "3.6.16", Leader: "a-1", Tolerance: ptr.To[int32](1),
				Members: v1beta2.MembersStatus{Ready: []string{"a-1", "a-2", "a-3"}}, DBSize: 25 << 20,
				ServiceName: "a-client", ClientPort: 2379,
				LastBackup: &v1beta2.LastBackup{Time: ago(5 * time.Minute)},
			},
		}
		change(cluster)
		return cluster
	}
	unknown, none := "<unknown>", "<none>"
	for _, test := range []struct {
		name    string
		cluster *v1beta2.EtcdCluster
		want    []any
	}{
		{
			"healthy", running(func(*v1beta2.EtcdCluster) {}),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", "5m", "Running", "3h", "a-client:2379", none},
		},
		{
			"not seen by the controller yet",
			&v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(time.Second)}, Spec: v1beta2.ClusterSpec{Replicas: ptr.To[int32](1)}},
			[]any{"a", "1", unknown, unknown, unknown, unknown, unknown, unknown, unknown, "1s", unknown, none},
		},
		{
			"one member down while upgrading",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Members = v1beta2.MembersStatus{Ready: []string{"a-1", "a-2"}, Unready: []string{"a-3"}}
				c.Status.Tolerance = ptr.To[int32](0)
				c.Status.CurrentVersion, c.Status.TargetVersion = "3.6.11", "3.6.16"
				c.Status.BlockedBy = &v1beta2.BlockedBy{Reason: "MemberUnhealthy", Message: "member a-3 does not respond"}
			}),
			[]any{"a", "3", "2/3", "0", "a-1", "3.6.11→3.6.16", "25Mi", "5m", "Running", "3h", "a-client:2379", "member a-3 does not respond"},
		},
		{
			"one voter too many, which has stopped and is about to be removed",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Replicas, c.Status.Members.Unready, c.Status.Tolerance = 4, []string{"a-4"}, ptr.To[int32](0)
			}),
			[]any{"a", "3", "3/4", "0", "a-1", "3.6.16", "25Mi", "5m", "Running", "3h", "a-client:2379", none},
		},
		{
			"quorum lost",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Members = v1beta2.MembersStatus{Ready: []string{"a-1"}, Unready: []string{"a-2", "a-3"}}
				c.Status.Tolerance, c.Status.Leader = ptr.To[int32](-1), ""
				c.Status.Conditions = []v1beta2.ClusterCondition{
					{Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, Message: "degraded"},
					{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue, Message: "1 of 3 voters responds"},
				}
			}),
			[]any{"a", "3", "1/3", "-1", unknown, "3.6.16", "25Mi", "5m", "Running", "3h", "a-client:2379", "1 of 3 voters responds"},
		},
		{
			"a database is full",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Reason = "etcd rejects writes"
				c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionAvailable, Status: corev1.ConditionFalse, Reason: "DatabaseFull"}}
			}),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", "5m", "DatabaseFull", "3h", "a-client:2379", "etcd rejects writes"},
		},
		{
			"no member is reached",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Members = v1beta2.MembersStatus{Unready: []string{"a-1", "a-2", "a-3"}}
				c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionAvailable, Status: corev1.ConditionUnknown, Reason: "EtcdUnreachable"}}
			}),
			[]any{"a", "3", "0/3", "1", "a-1", "3.6.16", "25Mi", "5m", "EtcdUnreachable", "3h", "a-client:2379", none},
		},
		{
			"available",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionAvailable, Status: corev1.ConditionTrue, Reason: "QuorumHealthy"}}
			}),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", "5m", "Running", "3h", "a-client:2379", none},
		},
		{
			"failed, without a backup",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Phase, c.Status.Reason, c.Status.LastBackup = v1beta2.ClusterPhaseFailed, "out of luck", nil
				c.Status.TargetVersion = c.Status.CurrentVersion
			}),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", none, "Failed", "3h", "a-client:2379", "out of luck"},
		},
		{
			"hibernated",
			running(func(c *v1beta2.EtcdCluster) {
				c.Spec.Replicas = ptr.To[int32](0)
				c.Status.Phase, c.Status.Members, c.Status.Leader, c.Status.Tolerance = v1beta2.ClusterPhaseHibernated, v1beta2.MembersStatus{}, "", nil
			}),
			[]any{"a", "0", "0/0", unknown, unknown, "3.6.16", "25Mi", "5m", "Hibernated", "3h", "a-client:2379", none},
		},
		{
			"being deleted",
			running(func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = ptr.To(ago(time.Second)) }),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", "5m", "Terminating", "3h", "a-client:2379", none},
		},
		{
			"a reason without a message",
			running(func(c *v1beta2.EtcdCluster) {
				c.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionPaused, Status: corev1.ConditionTrue, Reason: "PausedByUser"}}
				c.Status.ClientPort = 0
			}),
			[]any{"a", "3", "3/3", "1", "a-1", "3.6.16", "25Mi", "5m", "Running", "3h", "a-client", "PausedByUser"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			table, err := newTable(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.cluster, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}
