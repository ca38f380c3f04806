// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/backup"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

// withBackups returns the storage of EtcdClusters and of EtcdBackups.
func withBackups(t *testing.T) (Storage, backup.Storage) {
	t.Helper()
	storage, backups, _ := withRestores(t)
	return storage, backups
}

func askBackup(t *testing.T, storage Storage, name string, asked *v1beta2.EtcdBackup, dryRun ...string) (*v1beta2.EtcdBackup, error) {
	t.Helper()
	ctx := registrytest.Context(t.Context(), ns, "etcdclusters", "backup")
	obj, err := storage.Backup.Create(ctx, name, asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*v1beta2.EtcdBackup), nil
}

func destined(name string) *v1beta2.EtcdCluster {
	cluster := valid(name)
	cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{
		StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim, Compression: v1beta2.CompressionZstd, Verify: v1beta2.VerificationRestore,
		BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups", Path: "a"}},
	}
	return cluster
}

func TestBackupCreatesAnEtcdBackup(t *testing.T) {
	t.Parallel()
	storage, backups := withBackups(t)
	created := create(t, storage, destined("a"))

	dry, err := askBackup(t, storage, "a", &v1beta2.EtcdBackup{}, metav1.DryRunAll)
	if err != nil || dry.Name == "" {
		t.Fatalf("a dry run: %+v %v", dry, err)
	}
	if _, err := backups.EtcdBackup.Get(registrytest.Context(t.Context(), ns, "etcdbackups", ""), dry.Name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has left %v", err)
	}

	asked := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{UID: created.UID, Labels: map[string]string{"why": "upgrade"}}}
	made, err := askBackup(t, storage, "a", asked)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := backups.EtcdBackup.Get(registrytest.Context(t.Context(), ns, "etcdbackups", ""), made.Name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := obj.(*v1beta2.EtcdBackup)
	if !strings.HasPrefix(stored.Name, "a-backup-") || stored.UID == created.UID || stored.UID == "" || stored.Labels["etcd_cluster"] != "a" || stored.Labels["why"] != "upgrade" {
		t.Errorf("unexpected metadata %+v", stored.ObjectMeta)
	}
	spec := stored.Spec
	if spec.EtcdCluster == nil || spec.EtcdCluster.Name != "a" || spec.PersistentVolumeClaim == nil || spec.PersistentVolumeClaim.ClaimName != "backups" ||
		spec.Compression != v1beta2.CompressionZstd || spec.Verify != v1beta2.VerificationRestore || spec.BackupPolicy != nil {
		t.Errorf("unexpected spec %+v", spec)
	}

	if _, err := askBackup(t, storage, "a", &v1beta2.EtcdBackup{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), made.Name) {
		t.Errorf("second request while the first backup is in progress: %v", err)
	}
	stored.Status.Phase = v1beta2.BackupPhaseSucceeded
	if _, _, err := backups.Status.Update(registrytest.Context(t.Context(), ns, "etcdbackups", "status"), stored.Name, rest.DefaultUpdatedObjectInfo(stored),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := askBackup(t, storage, "a", &v1beta2.EtcdBackup{}); err != nil {
		t.Errorf("request after the first backup has succeeded: %v", err)
	}
}

// TestBackupHasTheTTLOfTheCluster: a CronJob that may only choose the moment leaves no EtcdBackup for ever.
func TestBackupHasTheTTLOfTheCluster(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	cluster := destined("short")
	cluster.Spec.Backup.TTL = &v1beta2.Duration{Duration: time.Hour}
	create(t, storage, cluster)
	for want, spec := range map[time.Duration]v1beta2.BackupSpec{time.Hour: {}, time.Minute: {TTL: &v1beta2.Duration{Duration: time.Minute}}} {
		made, err := askBackup(t, storage, "short", &v1beta2.EtcdBackup{Spec: spec}, metav1.DryRunAll)
		if err != nil || made.Spec.TTL == nil || made.Spec.TTL.Duration != want {
			t.Errorf("want %s: %+v, %v", want, made, err)
		}
	}
}

// TestBackupUsesTheJobPolicyOfTheCluster checks that spec.backup.job of the cluster is used unless
// the request sets spec.job.
func TestBackupUsesTheJobPolicyOfTheCluster(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	cluster := destined("placed")
	cluster.Spec.Backup.Job = &v1beta2.JobPolicy{NodeSelector: map[string]string{"disk": "fast"}}
	create(t, storage, cluster)
	elsewhere := v1beta2.BackupSpec{
		StorageType:  v1beta2.BackupStorageTypePersistentVolumeClaim,
		BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "other"}},
	}
	for want, spec := range map[string]v1beta2.BackupSpec{
		"fast": {}, "fast ": elsewhere, "slow": {Job: &v1beta2.JobPolicy{NodeSelector: map[string]string{"disk": "slow"}}},
	} {
		made, err := askBackup(t, storage, "placed", &v1beta2.EtcdBackup{Spec: spec}, metav1.DryRunAll)
		if err != nil || made.Spec.Job == nil || made.Spec.Job.NodeSelector["disk"] != strings.TrimSpace(want) {
			t.Errorf("want a %s disk: %+v, %v", want, made, err)
		}
	}
	_, err := askBackup(t, storage, "placed", &v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{Job: &v1beta2.JobPolicy{Labels: map[string]string{"app": "etcd"}}}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.job.labels[app]") {
		t.Errorf("a label of the controller: %v", err)
	}
}

// TestBackupKeepsLabelsOfTheClusterFromOtherSecrets: the labels and annotations of spec.backup.job, which may add containers, were
// checked with the Secrets that spec.backup names. A request that names others gets the rest of the job.
func TestBackupKeepsLabelsOfTheClusterFromOtherSecrets(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	cluster := destined("labeled")
	cluster.Spec.Backup.Job = &v1beta2.JobPolicy{
		Labels: map[string]string{"team": "data"}, Annotations: map[string]string{"a": "b"}, NodeSelector: map[string]string{"disk": "fast"},
	}
	create(t, storage, cluster)
	own := intoS3
	own.Job = &v1beta2.JobPolicy{Labels: map[string]string{"team": "data"}, Annotations: map[string]string{"a": "b"}, NodeSelector: map[string]string{"disk": "fast"}}
	for name, test := range map[string]struct {
		asked v1beta2.BackupSpec
		keeps bool
	}{
		"nothing":                       {v1beta2.BackupSpec{}, true},
		"a location with a Secret":      {intoS3, false},
		"recipients":                    {v1beta2.BackupSpec{Encryption: &v1beta2.BackupEncryption{AgeRecipientsSecret: "mine"}}, false},
		"a ServiceAccount":              {v1beta2.BackupSpec{ServiceAccountName: "mine"}, false},
		"a location and its own labels": {own, true},
	} {
		made, err := askBackup(t, storage, "labeled", &v1beta2.EtcdBackup{Spec: *test.asked.DeepCopy()}, metav1.DryRunAll)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		job := made.Spec.Job
		if job == nil || (len(job.Labels) > 0) != test.keeps || (len(job.Annotations) > 0) != test.keeps || job.NodeSelector["disk"] != "fast" {
			t.Errorf("%s: the job is %+v; labels and annotations to be kept: %t", name, job, test.keeps)
		}
	}
}

func TestBackupRejects(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	create(t, storage, destined("a"))
	create(t, storage, valid("bare"))
	for _, test := range []struct {
		name, cluster string
		asked         v1beta2.EtcdBackup
		is            func(error) bool
		says          string
	}{
		{"request without a backup location is rejected", "bare", v1beta2.EtcdBackup{}, apierrors.IsInvalid, "spec.storageType"},
		{"request for a cluster that does not exist is rejected", "nosuch", v1beta2.EtcdBackup{}, apierrors.IsNotFound, "not found"},
		{"request that names another cluster is rejected", "a", v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "b"}}}, apierrors.IsInvalid, "spec.etcdCluster.name"},
		{"request with endpoints is rejected", "a", v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{EtcdEndpoints: []string{"http://x:2379"}}}, apierrors.IsInvalid, "spec.etcdEndpoints"},
		{"request with a schedule is rejected", "a", v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{BackupPolicy: &v1beta2.BackupPolicy{Schedule: "@daily"}}}, apierrors.IsInvalid, "spec.backupPolicy"},
		{"request with another UID is rejected", "a", v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, apierrors.IsConflict, "UID"},
		{"request that the validation of EtcdBackup rejects is rejected", "a", v1beta2.EtcdBackup{Spec: v1beta2.BackupSpec{StorageType: "Tape"}}, apierrors.IsInvalid, "spec.storageType"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := askBackup(t, storage, test.cluster, &test.asked)
			if !test.is(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error that names %s", err, test.says)
			}
		})
	}
}

// staleBackups lists no EtcdBackups, as for a server that lists before another server creates one.
type staleBackups struct{ Backups }

func (staleBackups) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &v1beta2.EtcdBackupList{}, nil
}

// TestTwoServersCreateOneBackup checks that two servers that both find no backup in progress
// create one EtcdBackup, not two.
func TestTwoServersCreateOneBackup(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	create(t, storage, destined("a"))
	other := &BackupREST{
		actionREST: storage.Backup.actionREST, clusters: storage.Backup.clusters, prober: storage.Backup.prober, guard: storage.Backup.guard,
		backups: staleBackups{storage.Backup.backups},
	}
	made, err := askBackup(t, storage, "a", &v1beta2.EtcdBackup{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := registrytest.Context(t.Context(), ns, "etcdclusters", "backup")
	if _, err := other.Create(ctx, "a", &v1beta2.EtcdBackup{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), made.Name) {
		t.Errorf("the second server: %v", err)
	}
}
