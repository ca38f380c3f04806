// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

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
	meta := metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Hour))}
	target := v1beta2.EtcdClusterRef{Name: "example"}
	unknown, none := "<unknown>", "<none>"
	for _, test := range []struct {
		name    string
		restore *v1beta2.EtcdRestore
		want    []any
	}{
		{
			"new, from a store",
			&v1beta2.EtcdRestore{ObjectMeta: meta, Spec: v1beta2.RestoreSpec{EtcdCluster: target, BackupStorageType: v1beta2.BackupStorageTypeS3}},
			[]any{"a", "example", "S3", none, none, unknown, "3h", none},
		},
		{
			"running, from a backup",
			&v1beta2.EtcdRestore{
				ObjectMeta: meta,
				Spec:       v1beta2.RestoreSpec{EtcdCluster: target, Backup: &v1beta2.BackupReference{Name: "nightly"}},
				Status: v1beta2.RestoreStatus{
					Phase: v1beta2.RestorePhaseRestoring, Progress: &v1beta2.TransferProgress{Bytes: 45, TotalBytes: 100},
				},
			},
			[]any{"a", "example", "etcdbackup/nightly", none, "45%", "Restoring", "3h", none},
		},
		{
			"from one revision, of unknown length",
			&v1beta2.EtcdRestore{
				ObjectMeta: meta,
				Spec:       v1beta2.RestoreSpec{EtcdCluster: target, Backup: &v1beta2.BackupReference{Name: "nightly", Revision: ptr.To[int64](7)}},
				Status: v1beta2.RestoreStatus{
					Phase: v1beta2.RestorePhaseVerifying, Revision: 7, Progress: &v1beta2.TransferProgress{Bytes: 2048},
				},
			},
			[]any{"a", "example", "etcdbackup/nightly@7", "7", "2.0Ki", "Verifying", "3h", none},
		},
		{
			"waiting",
			&v1beta2.EtcdRestore{
				ObjectMeta: meta,
				Spec:       v1beta2.RestoreSpec{EtcdCluster: target, Backup: &v1beta2.BackupReference{Name: "nightly"}},
				Status: v1beta2.RestoreStatus{
					Phase: v1beta2.RestorePhaseVerifying, Conditions: []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Message: "it is paused"}},
				},
			},
			[]any{"a", "example", "etcdbackup/nightly", none, none, "Verifying", "3h", "it is paused"},
		},
		{
			"failed",
			&v1beta2.EtcdRestore{
				ObjectMeta: meta,
				Spec:       v1beta2.RestoreSpec{EtcdCluster: target, BackupStorageType: v1beta2.BackupStorageTypeS3},
				Status:     v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed, Reason: "no such key"},
			},
			[]any{"a", "example", "S3", none, none, "Failed", "3h", "no such key"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			table, err := newTable(clocktesting.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.restore, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}
