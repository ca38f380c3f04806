// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// TestPreRestoreBackupThatDoesNotEnd: the restore tells how another attempt follows, before it tells how to do without.
func TestPreRestoreBackupThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	o := observed(uncopied, copiedTo(func(b *v1beta2.EtcdBackup) {
		due := epoch.Add(-waits.Transfer)
		b.CreationTimestamp = metav1.NewTime(due)
		runs := backup.Observed{Now: epoch, Backup: b, Jobs: []backup.Job{{
			Attempt: backup.Attempt{ScheduledTime: due, Number: 1},
			Job:     job.Job{Name: "j", Created: due, Started: true, Running: &job.RunningPod{Name: "p", Node: "n1", Since: due}},
		}}}
		b.Status = backup.Status(runs, backup.Decide(runs))
	}))
	wait := Decide(o).Wait
	if wait == nil || wait.Reason != ReasonPreRestoreBackup || !strings.Contains(wait.Message, "kubectl delete pod p -n ") ||
		!strings.HasSuffix(wait.Message, "Another attempt follows"+withoutBackup) {
		t.Errorf("the restore waits for %+v", wait)
	}
}
