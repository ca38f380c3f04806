// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/backup"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// report writes status.lastBackup of clusters, as the controller does.
func report(t *testing.T, storage Storage, backups backup.Storage, names ...string) {
	t.Helper()
	list, err := backups.EtcdBackup.List(registrytest.Context(t.Context(), ns, "etcdbackups", ""), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*v1beta2.EtcdBackup
	for i := range list.(*v1beta2.EtcdBackupList).Items {
		all = append(all, &list.(*v1beta2.EtcdBackupList).Items[i])
	}
	for _, name := range names {
		obj, err := storage.EtcdCluster.Get(registrytest.Context(t.Context(), ns, "etcdclusters", ""), name, &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := obj.(*v1beta2.EtcdCluster).DeepCopy()
		c.Status.LastBackup = resources.LastBackup(c, all, time.Now())
		write(t, storage.Status, "etcdclusters", c, name)
	}
}

// TestRestoreWithoutASourceTakesTheLastBackup: the controller chooses the backup, not the clock of the machine of the API
// server. EtcdBackup newest is of the future for that clock.
func TestRestoreWithoutASourceTakesTheLastBackup(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a")).DeepCopy()
	backedUp(t, backups, a, "older", time.Minute)
	backedUp(t, backups, a, "newest", 24*time.Hour)
	a.Status.LastBackup = &v1beta2.LastBackup{Name: "newest", Revision: 24 * 3600, Time: metav1.NewTime(a.CreationTimestamp.Add(24 * time.Hour)), Verified: true}
	write(t, storage.Status, "etcdclusters", a, "a")
	made, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if from := made.Spec.Backup; from == nil || from.Name != "newest" || ptr.Deref(from.Revision, 0) != 24*3600 {
		t.Errorf("restores %+v", from)
	}
}

// TestRestoreOfTheRestoredBackup: after a restore, a request without a source restores the same backup again, and not a
// newer one of the data that the restore has replaced. Until the status reports that, the request is rejected.
func TestRestoreOfTheRestoredBackup(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a")).DeepCopy()
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(a.CreationTimestamp.Add(time.Duration(minutes) * time.Minute))
	}
	backedUp(t, backups, a, "nightly", 3*time.Minute, func(b *v1beta2.EtcdBackup) {
		b.Status.History = []v1beta2.BackupRecord{
			{Succeeded: true, Verified: true, Revision: 180, StartTime: at(3), CompletionTime: ptr.To(at(3)), URI: b.Status.URI},
			{Succeeded: true, Verified: true, Revision: 60, StartTime: at(1), CompletionTime: ptr.To(at(1)), URI: "pvc://backups/nightly/old"},
		}
	})
	a.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Revision: 180, Time: at(3), Verified: true}
	a.Status.Restores = []v1beta2.ClusterRestore{{Name: "r", UID: "r", Backup: "nightly", Revision: 60, Time: ptr.To(at(4))}}
	write(t, storage.Status, "etcdclusters", a, "a")
	if _, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, metav1.DryRunAll); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "EtcdRestore r has replaced") {
		t.Errorf("with a status from before the restore: %v", err)
	}
	report(t, storage, backups, "a")
	made, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if from := made.Spec.Backup; from == nil || from.Name != "nightly" || ptr.Deref(from.Revision, 0) != 60 {
		t.Errorf("restores %+v", from)
	}
}
