// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestPreRestoreBackupIsNoLastBackup: a lost cluster continues from its last backup, never
// from the data that a user has replaced.
func TestPreRestoreBackupIsNoLastBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := key(w.addCluster("c", 3))
	for name, at := range map[string]time.Duration{"nightly": time.Minute, "back-pre-restore-0a": time.Hour} {
		b := w.addBackup(name, "c", nil)
		b.Status = v1beta2.BackupStatus{Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, Verified: true, LastSuccessDate: metav1.NewTime(epoch.Add(at))}
		if name != "nightly" {
			b.Annotations = map[string]string{resources.AnnotationPreRestoreBackup: "back"}
		}
	}
	w.sync()
	if _, err := w.clusters.Reconcile(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if last := w.live.clusters[c].Status.LastBackup; last == nil || last.Name != "nightly" {
		t.Errorf("the last backup is %+v", last)
	}
}
