// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/backup"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/restore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// withRestores returns the storage of clusters whose backups and restores are kept, too.
func withRestores(t *testing.T) (Storage, backup.Storage, restore.Storage) {
	t.Helper()
	etcd := registrytest.New(t)
	backups, err := backup.NewStorage(etcd.Scheme, etcd.Options, rights.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backups.EtcdBackup.Destroy)
	restores, err := restore.NewStorage(etcd.Scheme, etcd.Options, rights.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(restores.EtcdRestore.Destroy)
	storage, err := NewStorage(etcd.Scheme, etcd.Options, Dependencies{
		Prober: prober.New(nil, nil, clock.RealClock{}),
		Backups: &genericstore.Creator[*v1beta2.EtcdBackup]{
			Store: backups.EtcdBackup.Store, Scheme: etcd.Scheme,
			Kind: v1beta2.SchemeGroupVersion.WithKind("EtcdBackup"), Resource: v1beta2.SchemeGroupVersion.WithResource("etcdbackups"),
		},
		Restores: &genericstore.Creator[*v1beta2.EtcdRestore]{
			Store: restores.EtcdRestore.Store, Scheme: etcd.Scheme,
			Kind: v1beta2.SchemeGroupVersion.WithKind("EtcdRestore"), Resource: v1beta2.SchemeGroupVersion.WithResource("etcdrestores"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.EtcdCluster.Destroy)
	registrytest.Await(t, storage.EtcdCluster.Store)
	registrytest.Await(t, backups.EtcdBackup.Store)
	registrytest.Await(t, restores.EtcdRestore.Store)
	return storage, backups, restores
}

func askRestore(t *testing.T, storage Storage, name string, asked *v1beta2.EtcdRestore, dryRun ...string) (*v1beta2.EtcdRestore, error) {
	t.Helper()
	ctx := registrytest.Context(t.Context(), ns, "etcdclusters", "restore")
	obj, err := storage.Restore.Create(ctx, name, asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*v1beta2.EtcdRestore), nil
}

// write writes the status of an object.
func write(t *testing.T, statuses *genericstore.StatusREST, resource string, obj runtime.Object, name string) {
	t.Helper()
	if _, _, err := statuses.Update(registrytest.Context(t.Context(), ns, resource, "status"), name, rest.DefaultUpdatedObjectInfo(obj),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// backedUp makes an EtcdBackup that has succeeded, so long after the cluster was made.
func backedUp(t *testing.T, backups backup.Storage, of *v1beta2.EtcdCluster, name string, after time.Duration, edits ...func(*v1beta2.EtcdBackup)) {
	t.Helper()
	b := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: of.Name}, StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
		},
	}
	status := v1beta2.BackupStatus{
		Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, Verified: true, URI: "pvc://backups/" + name + "/snapshot.db",
		LastSuccessDate: metav1.NewTime(of.CreationTimestamp.Add(after)), EtcdRevision: int64(after.Abs() / time.Second),
	}
	b.Status = status
	for _, edit := range edits {
		edit(b)
	}
	status = b.Status
	v1beta2.SetObjectDefaults_EtcdBackup(b)
	obj, err := backups.EtcdBackup.Create(registrytest.Context(t.Context(), ns, "etcdbackups", ""), b, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := obj.(*v1beta2.EtcdBackup).DeepCopy()
	made.Status = status
	write(t, backups.Status, "etcdbackups", made, name)
}

func TestRestoreCreatesAnEtcdRestore(t *testing.T) {
	t.Parallel()
	storage, backups, restores := withRestores(t)
	created := create(t, storage, valid("a"))
	backedUp(t, backups, created, "older", time.Minute)
	backedUp(t, backups, created, "newest", 2*time.Minute)
	backedUp(t, backups, created, "copy", 3*time.Minute, func(b *v1beta2.EtcdBackup) {
		b.Annotations = map[string]string{resources.AnnotationPreRestoreBackup: "r"}
	})
	backedUp(t, backups, create(t, storage, valid("b")), "other", 4*time.Minute)
	report(t, storage, backups, "a")

	dry, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, metav1.DryRunAll)
	if err != nil || dry.Name == "" || dry.Spec.Backup == nil || dry.Spec.Backup.Name != "newest" {
		t.Fatalf("a dry run: %+v %v", dry, err)
	}
	own := registrytest.Context(t.Context(), ns, "etcdrestores", "")
	if _, err := restores.EtcdRestore.Get(own, dry.Name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has left %v", err)
	}

	asked := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{UID: created.UID, Labels: map[string]string{"why": "accident"}}}
	asked.Spec.RevisionBump = ptr.To[int64](7)
	made, err := askRestore(t, storage, "a", asked)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := restores.EtcdRestore.Get(own, made.Name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := obj.(*v1beta2.EtcdRestore).DeepCopy()
	if !strings.HasPrefix(found.Name, "a-restore-") || found.UID == created.UID || found.UID == "" || found.Labels["etcd_cluster"] != "a" || found.Labels["why"] != "accident" {
		t.Errorf("unexpected metadata %+v", found.ObjectMeta)
	}
	from := found.Spec.Backup
	if found.Spec.EtcdCluster.Name != "a" || from == nil || from.Name != "newest" || ptr.Deref(from.Revision, 0) != 120 || ptr.Deref(found.Spec.RevisionBump, 0) != 7 {
		t.Errorf("unexpected spec %+v from %+v", found.Spec, from)
	}

	for _, phase := range []v1beta2.RestorePhase{"", v1beta2.RestorePhaseVerifying, v1beta2.RestorePhaseRestoring, v1beta2.RestorePhaseStarting} {
		found.Status.Phase, found.ResourceVersion = phase, ""
		write(t, restores.Status, "etcdrestores", found, found.Name)
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			if _, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, dryRun...); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), made.Name) {
				t.Errorf("a second one while the first is %q: %v", phase, err)
			}
		}
	}
	for _, phase := range []v1beta2.RestorePhase{v1beta2.RestorePhaseSucceeded, v1beta2.RestorePhaseFailed} {
		found.Status.Phase, found.ResourceVersion = phase, ""
		write(t, restores.Status, "etcdrestores", found, found.Name)
		if _, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}, metav1.DryRunAll); err != nil {
			t.Errorf("after the first one has %s: %v", phase, err)
		}
	}
}

// TestRestoreFromNamedSource checks that a source in the request is used unchanged.
func TestRestoreFromNamedSource(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	created := create(t, storage, valid("a"))
	backedUp(t, backups, created, "older", time.Second)
	backedUp(t, backups, created, "newest", time.Minute, func(b *v1beta2.EtcdBackup) {
		b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, Revision: 3, URI: "pvc://backups/newest/3/snapshot.db", StartTime: created.CreationTimestamp}}
	})
	for name, spec := range map[string]v1beta2.RestoreSpec{
		"EtcdBackup is the source":                     {Backup: &v1beta2.BackupReference{Name: "older"}},
		"revision of an EtcdBackup is the source":      {Backup: &v1beta2.BackupReference{Name: "newest", Revision: ptr.To[int64](3)}, EtcdCluster: v1beta2.EtcdClusterRef{Name: "a"}},
		"backup location in a store is the source":     {BackupStorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "b/k", AWSSecret: "aws"}}},
		"source with identities and a service account": {Backup: &v1beta2.BackupReference{Name: "older"}, Decryption: &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"}, ServiceAccountName: "sa"},
	} {
		t.Run(name, func(t *testing.T) { // not in parallel: requests for one cluster exclude each other
			made, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: spec}, metav1.DryRunAll)
			if err != nil {
				t.Fatal(err)
			}
			want := spec.DeepCopy()
			want.EtcdCluster.Name = "a"
			if made.Name != "mine" || !apiequality.Semantic.DeepEqual(made.Spec, *want) {
				t.Errorf("made %+v, want %+v", made.Spec, *want)
			}
		})
	}
}

func TestRestoreRejects(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a := create(t, storage, valid("a"))
	backedUp(t, backups, a, "good", time.Minute)
	backedUp(t, backups, a, "failed", time.Minute, func(b *v1beta2.EtcdBackup) {
		b.Status = v1beta2.BackupStatus{Phase: v1beta2.BackupPhaseFailed, History: []v1beta2.BackupRecord{{Revision: 5, StartTime: a.CreationTimestamp}}}
	})
	backedUp(t, backups, a, "agefile", time.Second, func(b *v1beta2.EtcdBackup) { b.Status.URI += ".age" })
	backedUp(t, backups, a, "newer", time.Second, func(b *v1beta2.EtcdBackup) { b.Status.EtcdVersion = "3.99.0" })
	backedUp(t, backups, create(t, storage, valid("ahead")), "ofahead", time.Minute, func(b *v1beta2.EtcdBackup) { b.Status.EtcdVersion = "3.99.0" })
	create(t, storage, valid("bare"))
	backedUp(t, backups, create(t, storage, valid("doubtful")), "unread", time.Minute, func(b *v1beta2.EtcdBackup) { b.Status.Verified = false })
	backedUp(t, backups, create(t, storage, valid("corrupt")), "underalarm", time.Minute, func(b *v1beta2.EtcdBackup) { b.Status.DataDiffers = true })
	backedUp(t, backups, create(t, storage, valid("sealed")), "age", time.Minute, func(b *v1beta2.EtcdBackup) { b.Status.URI += ".age" })
	backedUp(t, backups, create(t, storage, valid("reborn")), "earlier", -time.Minute)
	backedUp(t, backups, create(t, storage, valid("leaving")), "ending", time.Minute, func(b *v1beta2.EtcdBackup) { b.Finalizers = []string{"example.com/wait"} })
	report(t, storage, backups, "a", "ahead", "bare", "doubtful", "corrupt", "sealed", "reborn", "leaving")
	if _, _, err := backups.EtcdBackup.Delete(registrytest.Context(t.Context(), ns, "etcdbackups", ""), "ending", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	paused := valid("paused")
	paused.Spec.Paused = true
	create(t, storage, paused)
	asleep := valid("asleep")
	asleep.Spec.Replicas = ptr.To[int32](0)
	asleep.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	create(t, storage, asleep)
	orphan := create(t, storage, valid("orphan")).DeepCopy()
	orphan.Status.LastBackup = &v1beta2.LastBackup{Name: "deleted", Time: metav1.NewTime(orphan.CreationTimestamp.Add(time.Minute)), Revision: 9, Verified: true}
	write(t, storage.Status, "etcdclusters", orphan, "orphan")
	recovering := create(t, storage, valid("recovering")).DeepCopy()
	recovering.Status.Recovery = &v1beta2.RecoveryStatus{ID: "x", Phase: v1beta2.RecoveryPhaseFilling}
	write(t, storage.Status, "etcdclusters", recovering, "recovering")

	spec := func(s v1beta2.RestoreSpec) v1beta2.EtcdRestore { return v1beta2.EtcdRestore{Spec: s} }
	named := &v1beta2.BackupReference{Name: "good"}
	for _, test := range []struct {
		name, cluster string
		asked         v1beta2.EtcdRestore
		is            func(error) bool
		says          []string
	}{
		{"request for a cluster that does not exist is rejected", "nosuch", v1beta2.EtcdRestore{}, apierrors.IsNotFound, []string{"not found"}},
		{"request without a backup of the cluster is rejected", "bare", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "no backup of this cluster is known", "get etcdbackups"}},
		{"newest backup that was not verified is rejected", "doubtful", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "EtcdBackup unread, was not verified"}},
		{"newest backup of members whose data differed is rejected", "corrupt", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "EtcdBackup underalarm, may have the wrong data", "get etcdbackups"}},
		{"backup of an earlier cluster of the same name is rejected", "reborn", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "no backup of this cluster is known"}},
		{"backup whose EtcdBackup does not exist is rejected", "orphan", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "EtcdBackup deleted, which made the newest backup, does not exist any more", "backupStorageType"}},
		{"backup whose EtcdBackup is being deleted is rejected", "leaving", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup:", "EtcdBackup ending, which made the newest backup, is being deleted"}},
		{"encrypted backup without identities is rejected", "sealed", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.decryption:", "EtcdBackup age", "ageIdentitiesSecret"}},
		{"EtcdBackup that does not exist is rejected", "a", spec(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "nope"}}), apierrors.IsInvalid, []string{"spec.backup.name:", "nope", "does not exist", "get etcdbackups"}},
		{"EtcdBackup without a backup that succeeded is rejected", "a", spec(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "failed"}}), apierrors.IsInvalid, []string{"spec.backup.name:", "no backup that succeeded"}},
		{"revision that was not stored is rejected", "a", spec(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "failed", Revision: ptr.To[int64](5)}}), apierrors.IsInvalid, []string{"spec.backup.revision:", "status.history"}},
		{"named backup that is encrypted is rejected without identities", "a", spec(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "agefile"}}), apierrors.IsInvalid, []string{"spec.decryption:", "EtcdBackup agefile"}},
		{"named backup that the version cannot read is rejected", "a", spec(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "newer"}}), apierrors.IsInvalid, []string{"spec.backup.name:", "3.99", "cannot read"}},
		{"newest backup that the version cannot read is rejected", "ahead", v1beta2.EtcdRestore{}, apierrors.IsInvalid, []string{"spec.backup.name:", "3.99", "cannot read"}},
		{"request that names another cluster is rejected", "a", spec(v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "b"}}), apierrors.IsInvalid, []string{"spec.etcdCluster.name"}},
		{
			"request with a cluster template is rejected", "a", spec(v1beta2.RestoreSpec{Backup: named, ClusterTemplate: &v1beta2.EtcdClusterTemplate{Spec: v1beta2.ClusterSpec{Replicas: ptr.To[int32](1)}}}),
			apierrors.IsInvalid, []string{"spec.clusterTemplate", "create an EtcdRestore"},
		},
		{"request with another UID is rejected", "a", v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, apierrors.IsConflict, []string{"UID"}},
		{"request with another resource version is rejected", "a", v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, apierrors.IsConflict, []string{"resource version"}},
		{"request for a paused cluster is rejected", "paused", spec(v1beta2.RestoreSpec{Backup: named}), apierrors.IsConflict, []string{"spec.paused"}},
		{"request for a hibernated cluster is rejected", "asleep", spec(v1beta2.RestoreSpec{Backup: named}), apierrors.IsConflict, []string{"spec.size"}},
		{"request during a recovery is rejected", "recovering", spec(v1beta2.RestoreSpec{Backup: named}), apierrors.IsConflict, []string{"status.recovery"}},
		{"request that the validation of EtcdRestore rejects is rejected", "a", spec(v1beta2.RestoreSpec{Backup: named, BackupStorageType: v1beta2.BackupStorageTypeS3}), apierrors.IsInvalid, []string{"spec.backupStorageType"}},
		{"request with an unknown kind of store is rejected", "a", spec(v1beta2.RestoreSpec{BackupStorageType: "Tape"}), apierrors.IsInvalid, []string{"spec.backupStorageType"}},
	} {
		t.Run(test.name, func(t *testing.T) { // not in parallel: requests for one cluster exclude each other
			_, err := askRestore(t, storage, test.cluster, &test.asked, metav1.DryRunAll)
			if !test.is(err) {
				t.Fatalf("got %v", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

// TestRestoreRequestsAreSerialized checks that requests for one cluster are rejected while
// another restore is in progress.
func TestRestoreRequestsAreSerialized(t *testing.T) {
	t.Parallel()
	storage, backups, _ := withRestores(t)
	a, b := create(t, storage, valid("a")), create(t, storage, valid("b"))
	backedUp(t, backups, a, "of-a", time.Minute)
	backedUp(t, backups, b, "of-b", time.Minute)
	report(t, storage, backups, "a", "b")
	release, err := storage.Restore.inFlight.begin(a, "restore")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}); !apierrors.IsConflict(err) {
		t.Errorf("second request at the same time: %v", err)
	}
	if _, err := askRestore(t, storage, "b", &v1beta2.EtcdRestore{}); err != nil {
		t.Errorf("request for another cluster: %v", err)
	}
	release()
	if _, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}); err != nil {
		t.Errorf("request after the first one: %v", err)
	}
}

// staleRestores lists no EtcdRestores, as for a server that has not seen one of another server.
type staleRestores struct{ Restores }

func (staleRestores) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &v1beta2.EtcdRestoreList{}, nil
}

// TestTwoServersCreateOneRestore checks that two servers that both find no restore in progress
// create one EtcdRestore, not two.
func TestTwoServersCreateOneRestore(t *testing.T) {
	t.Parallel()
	storage, backups, restores := withRestores(t)
	backedUp(t, backups, create(t, storage, valid("a")), "good", time.Minute)
	report(t, storage, backups, "a")
	other := &RestoreREST{actionREST: storage.Restore.actionREST, clusters: storage.Restore.clusters, backups: storage.Restore.backups, restores: staleRestores{storage.Restore.restores}}
	made, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := registrytest.Context(t.Context(), ns, "etcdclusters", "restore")
	if _, err := other.Create(ctx, "a", &v1beta2.EtcdRestore{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), made.Name) {
		t.Errorf("the second server: %v", err)
	}
	// When it has ended, the next request is another restore.
	made.Status.Phase, made.ResourceVersion = v1beta2.RestorePhaseSucceeded, ""
	write(t, restores.Status, "etcdrestores", made, made.Name)
	if next, err := askRestore(t, storage, "a", &v1beta2.EtcdRestore{}); err != nil || next.Name == made.Name {
		t.Errorf("the next one is %+v (%v)", next, err)
	}
}

// TestRestoreNameChangesWithEachRestore checks that the name of the next EtcdRestore differs from
// that of an earlier one, even if the earlier one was deleted.
func TestRestoreNameChangesWithEachRestore(t *testing.T) {
	t.Parallel()
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
	first := restoreName(cluster, nil)
	if again := restoreName(cluster.DeepCopy(), nil); again != first {
		t.Errorf("one state has the names %s and %s", first, again)
	}
	after := cluster.DeepCopy()
	after.Status.Recovery = &v1beta2.RecoveryStatus{ID: "r"}
	another := cluster.DeepCopy()
	another.UID = "v"
	ended := []v1beta2.EtcdRestore{{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, {ObjectMeta: metav1.ObjectMeta{UID: "2"}}}
	for name, got := range map[string]string{
		"after it was carried out and deleted": restoreName(after, nil), "with restores that have ended": restoreName(cluster, ended), "of another cluster": restoreName(another, nil),
	} {
		if got == first {
			t.Errorf("%s: the same name %s", name, got)
		}
	}
	if one, two := restoreName(cluster, ended), restoreName(cluster, []v1beta2.EtcdRestore{ended[1], ended[0]}); one != two {
		t.Errorf("the order of a list changes the name: %s, %s", one, two)
	}
}

// TestCreatedObjectHasManagersOfTheMainResource checks the managed fields that server-side apply
// compares.
func TestCreatedObjectHasManagersOfTheMainResource(t *testing.T) {
	t.Parallel()
	entries := []metav1.ManagedFieldsEntry{{Manager: "kubectl", Subresource: "backup"}}
	if got := mainResourceManagers(entries); len(got) != 1 || got[0].Manager != "kubectl" || got[0].Subresource != "" || entries[0].Subresource == "" {
		t.Errorf("managers %+v of %+v", got, entries)
	}
}
