// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRejected: the status reports within seconds that Kubernetes rejects a Job or its pod.
// The backup continues by itself when Kubernetes accepts them.
func TestRejected(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*world, bool){
		"Job": func(w *world, on bool) { w.full = on },
		"pod": func(w *world, on bool) { w.podless = on },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addCluster("c", 3)
			b := key(w.addBackup("b", "c", nil))
			look := func() time.Duration {
				w.sync()
				after, err := w.reconcile(b)
				if err != nil {
					t.Fatal(err)
				}
				w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
				return after
			}
			stop(w, true)
			look()
			look()
			after := look()
			status := w.live.backups[b].Status
			told := meta.FindStatusCondition(status.Conditions, "Progressing")
			if told == nil || told.Reason != v1beta2.ReasonPodRejected || !strings.Contains(told.Message, "exceeded quota: full") || after > 10*time.Second || after == 0 {
				t.Fatalf("looks again after %s, says %+v", after, status)
			}
			stop(w, false)
			for range 6 {
				look()
				for _, job := range w.open() {
					w.run(job, "")
				}
			}
			if status := w.live.backups[b].Status; !status.Succeeded || status.Phase != v1beta2.BackupPhaseSucceeded {
				t.Errorf("it came to %+v", status)
			}
		})
	}
}

// TestRejectedSchedule: a cluster whose periodic EtcdBackup the API does not take has no backups, and its status says so.
func TestRejectedSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.addCluster("c", 3)
	c.Spec.Backup = &v1beta2.ClusterBackupPolicy{
		Schedule: "@hourly", StorageType: v1beta2.BackupStorageTypeS3,
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws"}},
	}
	healthy := func() v1beta2.ClusterCondition {
		w.sync()
		_, err := w.clusters.Reconcile(t.Context(), key(c))
		if (err != nil) != w.fullOfBackups {
			t.Error("the rejection is tried again only after an error:", err)
		}
		for _, condition := range w.live.clusters[key(c)].Status.Conditions {
			if condition.Type == v1beta2.ClusterConditionBackupHealthy {
				return condition
			}
		}
		return v1beta2.ClusterCondition{}
	}
	w.fullOfBackups = true
	if got := healthy(); got.Status != corev1.ConditionFalse || got.Reason != v1beta2.ReasonPodRejected || !strings.Contains(got.Message, "c-scheduled") || !strings.Contains(got.Message, "exceeded quota: full") {
		t.Errorf("while the API rejects it: %+v", got)
	}
	w.fullOfBackups = false
	healthy()
	if got := healthy(); got.Status == corev1.ConditionFalse {
		t.Errorf("after the API has taken it: %+v", got)
	}
}
