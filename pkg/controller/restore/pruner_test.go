// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// addPruner begins a Job of a backup that deletes all but one of the backups below the place of the restore.
func (w *world) addPruner() *batchv1.Job {
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: namespace, UID: "uid-nightly"},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "c"}, StorageType: v1beta2.BackupStorageTypeS3,
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: "aws"}},
			BackupPolicy: &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1},
		},
	}
	j, err := resources.BackupJob(b, resources.BackupRun{ScheduledTime: epoch, Attempt: 1, Image: "agent:v1", Cluster: w.live.clusters["c"], Members: []resources.MemberAddress{{Name: "c-a", IP: "10.0.0.1"}}})
	if err != nil {
		w.Fatal(err)
	}
	w.version(j)
	w.live.pruners[j.Name] = j
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: j.Name + "-x", Namespace: namespace, Labels: j.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: j.Spec.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	w.version(pod)
	w.live.pods[pod.Name] = pod
	return j
}

// TestRestoreAwaitsPruners: a Job of a backup that began a moment before the EtcdRestore may delete what is read. The
// restore begins to read after that Job and its pod have ended, also if the cache does not show them yet.
func TestRestoreAwaitsPruners(t *testing.T) {
	t.Parallel()
	for name, isShown := range map[string]bool{"shown by the cache": true, "only in the live API": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addCluster()
			w.addRestore(nil)
			if !isShown {
				w.sync()
			}
			j := w.addPruner()
			look := func(what string, want int) {
				t.Helper()
				if isShown {
					w.sync()
				}
				if _, err := w.reconcile(); err != nil {
					t.Fatal(err)
				}
				if len(w.live.jobs) != want {
					t.Fatalf("%s: there are %d Jobs of the restore, want %d", what, len(w.live.jobs), want)
				}
				w.sync() // what it has written
			}
			look("the Job runs", 0)
			delete(w.live.pruners, j.Name)
			w.live.rv++
			look("the Job was deleted, and its pod runs", 0)
			delete(w.live.pods, j.Name+"-x")
			w.live.rv++
			isShown = true
			look("the pod has ended", 1)
		})
	}
}

// TestVerifiedBesideAPruner: what was verified while such a Job ran is verified again, and nothing is requested before.
func TestVerifiedBesideAPruner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster()
	w.addRestore(nil)
	step := func() {
		t.Helper()
		w.sync()
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	w.agents()
	j := w.addPruner()
	for range 10 {
		step()
		w.copies()
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	if w.asked > 0 || len(w.live.jobs) > 0 {
		t.Fatalf("requested %d recoveries, kept %d verifications", w.asked, len(w.live.jobs))
	}
	delete(w.live.pruners, j.Name)
	delete(w.live.pods, j.Name+"-x")
	w.live.rv++
	for range 10 {
		step()
		w.agents()
		w.copies()
	}
	if w.asked != 1 {
		t.Errorf("requested %d recoveries after the Job has ended", w.asked)
	}
}
