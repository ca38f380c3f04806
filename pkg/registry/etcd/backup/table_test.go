// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestCells(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	meta := metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(3 * time.Hour)}
	unknown, none := "<unknown>", "<none>"
	for _, test := range []struct {
		name   string
		backup *v1beta2.EtcdBackup
		want   []any
	}{
		{
			"new, by endpoints",
			&v1beta2.EtcdBackup{ObjectMeta: meta, Spec: v1beta2.BackupSpec{
				EtcdEndpoints: []string{"http://a:2379", "http://b:2379"}, StorageType: v1beta2.BackupStorageTypeS3,
			}},
			[]any{"a", "http://a:2379,http://b:2379", "S3", none, none, none, none, none, unknown, "3h", none, none},
		},
		{
			"succeeded",
			&v1beta2.EtcdBackup{
				ObjectMeta: meta,
				Spec: v1beta2.BackupSpec{
					EtcdCluster: &v1beta2.EtcdClusterRef{Name: "example"}, StorageType: v1beta2.BackupStorageTypeGCS,
					BackupPolicy: &v1beta2.BackupPolicy{BackupIntervalInSecond: 300},
				},
				Status: v1beta2.BackupStatus{
					Phase: v1beta2.BackupPhaseSucceeded, EtcdRevision: 1234, SnapshotSize: 25 << 20, Verified: true,
					LastSuccessDate: ago(time.Minute), URI: "gs://bucket/key",
				},
			},
			[]any{"a", "example", "GCS", "every 5m0s", "1234", "25Mi", "true", "60s", "Succeeded", "3h", "gs://bucket/key", none},
		},
		{
			"failed, suspended, being deleted",
			&v1beta2.EtcdBackup{
				ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(3 * time.Hour), DeletionTimestamp: ptr.To(ago(0))},
				Spec: v1beta2.BackupSpec{
					EtcdCluster: &v1beta2.EtcdClusterRef{Name: "example"}, StorageType: v1beta2.BackupStorageTypeABS,
					BackupPolicy: &v1beta2.BackupPolicy{Schedule: "0 3 * * *", Suspend: true},
				},
				Status: v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseFailed, Reason: "no such container"},
			},
			[]any{"a", "example", "ABS", "0 3 * * * (suspended)", none, none, none, none, "Terminating", "3h", none, "no such container"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			table, err := newTable(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.backup, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}
