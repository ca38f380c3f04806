// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Restores stores EtcdRestores. Create must do everything that a request for an EtcdRestore
// does, including admission.
type Restores interface {
	Create(ctx context.Context, restore *v1beta2.EtcdRestore, options *metav1.CreateOptions) (runtime.Object, error)
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// RestoreREST restores a cluster in place: it creates an EtcdRestore, which the controller
// carries out. An empty request restores status.lastBackup at the time of the request,
// and needs only the right to create etcdclusters/restore. A request that sets fields also
// needs the right to create etcdrestores.
type RestoreREST struct {
	actionREST[*v1beta2.EtcdRestore]

	clusters rest.Getter
	backups  Backups
	restores Restores
	guard    rights.Guard
	inFlight inFlight
}

var (
	_ rest.NamedCreater                   = &RestoreREST{}
	_ rest.SubresourceObjectMetaPreserver = &RestoreREST{}
)

func newRestoreREST(clusters rest.Getter, dependencies Dependencies) *RestoreREST {
	return &RestoreREST{
		actionREST: actionREST[*v1beta2.EtcdRestore]{subresource: "restore", empty: &v1beta2.EtcdRestore{}},
		clusters:   clusters, backups: dependencies.Backups, restores: dependencies.Restores, guard: dependencies.Guard,
	}
}

// Create creates the EtcdRestore and returns it.
func (r *RestoreREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, r.authorize)
	if err != nil {
		return nil, err
	}
	cluster, err := r.readCluster(ctx, r.clusters, name, request)
	if err != nil {
		return nil, err
	}
	if err := r.checkRestorable(cluster); err != nil {
		return nil, err
	}
	done, err := r.inFlight.begin(cluster, r.subresource)
	if err != nil {
		return nil, err
	}
	defer done()
	ended, err := r.endedRestores(ctx, cluster)
	if err != nil {
		return nil, err
	}
	restore, err := r.newRestore(ctx, cluster, request, restoreName(cluster, ended))
	if err != nil {
		return nil, err
	}
	if diagnosis.FromStatus(cluster, resources.RevisionGoesBack).DataDiffers {
		warning.AddWarning(ctx, "", "The data of the members differs (alarm CORRUPT), and the pre-restore backup has that of one of them. First save the data of each member, as docs/how-to/corrupt-member.md says: "+
			"only PVCs of old members are kept.")
	}
	created, err := r.restores.Create(contextOf(ctx, "etcdrestores"), restore, options)
	if apierrors.IsAlreadyExists(err) && request.Name == "" {
		return nil, r.conflict(cluster.Name, "another request at the same time has created EtcdRestore %s; wait for it: kubectl -n %s get etcdrestore %s -w",
			restore.Name, restore.Namespace, restore.Name)
	}
	return created, err
}

// restoreName returns the same name for all requests that find the cluster and its EtcdRestores
// in the same state. A second restore would replace what clients have written after the first one.
func restoreName(cluster *v1beta2.EtcdCluster, ended []v1beta2.EtcdRestore) string {
	var uids []types.UID
	for i := range ended {
		uids = append(uids, ended[i].UID)
	}
	if recovery := cluster.Status.Recovery; recovery != nil {
		return stateName(cluster, "restore", uids, recovery.ID) // remains after its EtcdRestore was deleted
	}
	return stateName(cluster, "restore", uids)
}

// authorize checks the rights that the request needs because of the fields that it sets. The
// right to use the Secrets of an EtcdBackup was checked when it was created.
func (r *RestoreREST) authorize(ctx context.Context, name string, request *v1beta2.EtcdRestore) error {
	resource := v1beta2.Resource("etcdclusters/restore")
	given := append(rights.Given(field.NewPath("spec"), request.Spec, "etcdCluster"), rights.GivenMetadata(request)...)
	if request.Name != "" || request.GenerateName != "" {
		given = append(given, "metadata.name") // restoreName prevents a second restore; another name would not
	}
	if err := r.guard.RequireCreate(ctx, resource, name, v1beta2.Resource("etcdrestores"), given); err != nil {
		return err
	}
	return r.guard.Check(ctx, resource, request, nil)
}

// checkRestorable rejects a request for a cluster on which an EtcdRestore could only wait.
func (r *RestoreREST) checkRestorable(cluster *v1beta2.EtcdCluster) error {
	switch {
	case cluster.Status.Recovery.IsInProgress():
		return r.conflict(cluster.Name, "recovery %s is in progress; wait until status.recovery shows that it has ended", cluster.Status.Recovery.ID)
	case cluster.Spec.Paused:
		return r.conflict(cluster.Name, "spec.paused is true, so the controller does not start the restore; set spec.paused=false first")
	case ptr.Deref(cluster.Spec.Replicas, 0) == 0:
		return r.conflict(cluster.Name, "the cluster is hibernated (spec.size is 0) and has no member to restore into; set spec.size first")
	default:
		return nil
	}
}

// endedRestores returns the EtcdRestores of the cluster, which must all have ended.
func (r *RestoreREST) endedRestores(ctx context.Context, cluster *v1beta2.EtcdCluster) ([]v1beta2.EtcdRestore, error) {
	obj, err := r.restores.List(contextOf(ctx, "etcdrestores"), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*v1beta2.EtcdRestoreList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the store of EtcdRestores returned a %T", obj))
	}
	var ended []v1beta2.EtcdRestore
	for i := range list.Items {
		other := &list.Items[i]
		if other.Spec.EtcdCluster.Name != cluster.Name {
			continue
		}
		if phase := other.Status.Phase; phase != v1beta2.RestorePhaseSucceeded && phase != v1beta2.RestorePhaseFailed {
			return nil, r.conflict(cluster.Name, "EtcdRestore %s of this EtcdCluster is in progress; wait for it: kubectl -n %s get etcdrestore %s -w; or delete it to cancel it",
				other.Name, other.Namespace, other.Name)
		}
		ended = append(ended, *other)
	}
	return ended, nil
}

// newRestore returns the EtcdRestore to create: the request, completed with the last backup
// if it names no source.
func (r *RestoreREST) newRestore(ctx context.Context, cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdRestore, name string) (*v1beta2.EtcdRestore, error) {
	errs := validateRestoreRequest(cluster, &request.Spec)
	restore := &v1beta2.EtcdRestore{ObjectMeta: createdMeta(cluster, request.ObjectMeta), Spec: *request.Spec.DeepCopy()}
	if restore.Name == "" && restore.GenerateName == "" {
		restore.Name = name
	}
	restore.Spec.EtcdCluster = v1beta2.EtcdClusterRef{Name: cluster.Name}
	if named := restore.Spec.Backup; named != nil {
		unfit, err := r.checkNamedBackup(ctx, cluster, &restore.Spec)
		if err != nil {
			return nil, err
		}
		errs = append(errs, unfit...)
	} else if restore.Spec.BackupStorageType == "" && restore.Spec.RestoreSource == (v1beta2.RestoreSource{}) {
		missing, err := r.useLastBackup(ctx, cluster, &restore.Spec)
		if err != nil {
			return nil, err
		}
		errs = append(errs, missing...)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdRestore").GroupKind(), cluster.Name, errs)
	}
	return restore, nil
}

// validateRestoreRequest rejects fields that contradict the path of the request.
func validateRestoreRequest(cluster *v1beta2.EtcdCluster, spec *v1beta2.RestoreSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if name := spec.EtcdCluster.Name; name != "" && name != cluster.Name {
		errs = append(errs, field.Invalid(path.Child("etcdCluster", "name"), name, "the path of the request names EtcdCluster "+cluster.Name))
	}
	if spec.ClusterTemplate != nil {
		errs = append(errs, field.Forbidden(path.Child("clusterTemplate"), "a request restores the EtcdCluster in place; to restore into a new cluster create an EtcdRestore"))
	}
	return errs
}

// useLastBackup sets the source to status.lastBackup of the cluster, by name and revision. With the name alone the source
// could become the next scheduled backup, which may hold the very change that the restore is to undo. The controller
// chooses the last backup, by the clock of Kubernetes; the clock of this machine may be wrong.
func (r *RestoreREST) useLastBackup(ctx context.Context, cluster *v1beta2.EtcdCluster, spec *v1beta2.RestoreSpec) (field.ErrorList, error) {
	list, err := listBackups(ctx, r.backups)
	if err != nil {
		return nil, err
	}
	missing := func(why string) field.ErrorList {
		return field.ErrorList{field.Required(field.NewPath("spec", "backup"), fmt.Sprintf(
			"%s; name an EtcdBackup (kubectl -n %s get etcdbackups lists them), or set spec.backupStorageType and the backup location", why, cluster.Namespace))}
	}
	last := cluster.Status.LastBackup
	switch err := resources.Restorable(last, spec.Decryption != nil); {
	case errors.Is(err, resources.ErrBackupEncrypted):
		return field.ErrorList{encryptedBackup("the newest backup of", last.Name)}, nil
	case err != nil:
		return missing(err.Error()), nil
	}
	i := slices.IndexFunc(list.Items, func(b v1beta2.EtcdBackup) bool {
		uri, _ := resources.StoredAt(&b, last)
		return uri != "" && resources.IsBackupFor(cluster, &b)
	})
	if i < 0 {
		return missing(fmt.Sprintf("EtcdBackup %s, which made the newest backup, does not exist any more", last.Name)), nil
	}
	b := &list.Items[i]
	if b.DeletionTimestamp != nil {
		return missing(fmt.Sprintf("EtcdBackup %s, which made the newest backup, is being deleted", last.Name)), nil
	}
	if restore := resources.ReplacedBy(cluster, b); restore != nil {
		return nil, r.conflict(cluster.Name, "status.lastBackup still names a backup of data that EtcdRestore %s has replaced; send the request again in a few seconds, or name a backup in spec.backup", restore.Name)
	}
	_, version := resources.StoredAt(b, last)
	if unfit := unfitVersion(cluster, b.Name, version); unfit != nil {
		return unfit, nil
	}
	spec.Backup = &v1beta2.BackupReference{Name: last.Name, Revision: ptr.To(last.Revision)}
	warning.AddWarning(ctx, "", fmt.Sprintf("The cluster is restored from EtcdBackup %s of %s, revision %d. Later writes are only in the pre-restore backup, which needs a member that responds.",
		last.Name, last.Time.UTC().Format(time.RFC3339), last.Revision))
	if last.Unconfirmed {
		warning.AddWarning(ctx, "", "No quorum confirmed that backup, so it may lack the newest writes, and no confirmed backup that the EtcdBackups know has as many.")
	}
	return nil, nil
}
