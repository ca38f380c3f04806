// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Restores is where EtcdRestores are kept. Create must run everything that a request
// for an EtcdRestore runs, admission included.
type Restores interface {
	Create(ctx context.Context, restore *v1beta2.EtcdRestore, options *metav1.CreateOptions) (runtime.Object, error)
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// RestoreREST restores a cluster in place: it creates an EtcdRestore, which the
// controller carries out. The right to create etcdclusters/restore is enough for an empty
// request: the source is the newest good backup of the cluster as it is now, and one that is
// made meanwhile does not take its place. A request that chooses more than the moment needs
// the right to create etcdrestores, too.
type RestoreREST struct {
	clusters getter
	backups  Backups
	restores Restores
	guard    rights.Guard
	// busy lets of two requests at the same time one see the restore of the other.
	busy busy
}

var (
	_ rest.NamedCreater                   = &RestoreREST{}
	_ rest.SubresourceObjectMetaPreserver = &RestoreREST{}
)

// New returns an empty request.
func (r *RestoreREST) New() runtime.Object { return &v1beta2.EtcdRestore{} }

// Destroy leaves what is shared to the main resource.
func (r *RestoreREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID of a request,
// which says what cluster is meant.
func (r *RestoreREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create makes the EtcdRestore and returns it.
func (r *RestoreREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(*v1beta2.EtcdRestore)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an EtcdRestore, got %T", obj))
	}
	if err := r.authorize(ctx, name, asked); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	cluster, err := read(ctx, r.clusters, name)
	if err != nil {
		return nil, err
	}
	if err := meant(cluster, asked, "restore"); err != nil {
		return nil, err
	}
	if err := restorable(cluster); err != nil {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/restore"), cluster.Name, err)
	}
	release, err := r.busy.claim(cluster, "restore")
	if err != nil {
		return nil, err
	}
	defer release()
	earlier, err := r.alone(ctx, cluster)
	if err != nil {
		return nil, err
	}
	restore, err := r.restore(ctx, cluster, asked, restoreName(cluster, earlier))
	if err != nil {
		return nil, err
	}
	created, err := r.restores.Create(resourceContext(ctx, "etcdrestores"), restore, options)
	if apierrors.IsAlreadyExists(err) && asked.Name == "" {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/restore"), cluster.Name, fmt.Errorf("%w: EtcdRestore %s", errRestoreAtOnce, restore.Name))
	}
	return created, err
}

// errRestoreAtOnce means that another server has created the EtcdRestore meanwhile.
var errRestoreAtOnce = errors.New("another request to restore the cluster was carried out at the same time")

// restoreName is the same for all requests that find the cluster and its restores in the same
// state. So of several requests at the same time, to several servers, only one creates an
// EtcdRestore: a second restore would replace what clients have written after the first one.
func restoreName(cluster *v1beta2.EtcdCluster, earlier []v1beta2.EtcdRestore) string {
	state := []string{string(cluster.UID)}
	if recovery := cluster.Status.Recovery; recovery != nil {
		state = append(state, recovery.ID) // also of an EtcdRestore that was deleted since
	}
	var uids []string
	for i := range earlier {
		uids = append(uids, string(earlier[i].UID))
	}
	slices.Sort(uids)
	sum := sha256.Sum256([]byte(strings.Join(append(state, uids...), " ")))
	return cluster.Name + "-restore-" + hex.EncodeToString(sum[:5])
}

// authorize asks for the rights that a request needs because of what it chooses. The Secrets
// that the EtcdBackup names were asked about when it was created.
func (r *RestoreREST) authorize(ctx context.Context, name string, asked *v1beta2.EtcdRestore) error {
	resource := v1beta2.Resource("etcdclusters/restore")
	given := append(rights.Given(field.NewPath("spec"), asked.Spec, "etcdCluster"), rights.GivenMetadata(asked)...)
	if asked.Name != "" || asked.GenerateName != "" {
		given = append(given, "metadata.name") // the name of the server keeps requests apart
	}
	if err := r.guard.RequireCreate(ctx, resource, name, v1beta2.Resource("etcdrestores"), given); err != nil {
		return err
	}
	return r.guard.Check(ctx, resource, asked, nil)
}

var (
	errRestorePaused     = errors.New("spec.paused is true, so nobody would restore it; set it to false first")
	errRestoreHibernated = errors.New("spec.size is 0, so there is no member to restore into; set it first")
)

// restorable is why a cluster cannot be restored now: what an EtcdRestore would wait for.
func restorable(cluster *v1beta2.EtcdCluster) error {
	switch {
	case cluster.Status.Recovery.InProgress():
		return errInProgress
	case cluster.Spec.Paused:
		return errRestorePaused
	case ptr.Deref(cluster.Spec.Replicas, 0) == 0:
		return errRestoreHibernated
	default:
		return nil
	}
}

// alone makes sure that no other restore of the cluster is under way, and returns those that
// have ended.
func (r *RestoreREST) alone(ctx context.Context, cluster *v1beta2.EtcdCluster) (earlier []v1beta2.EtcdRestore, err error) {
	obj, err := r.restores.List(resourceContext(ctx, "etcdrestores"), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*v1beta2.EtcdRestoreList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Spec.EtcdCluster.Name != cluster.Name {
			continue
		}
		if phase := other.Status.Phase; phase != v1beta2.RestorePhaseSucceeded && phase != v1beta2.RestorePhaseFailed {
			return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/restore"), cluster.Name, fmt.Errorf(
				"EtcdRestore %s of this cluster is under way; wait for it: kubectl -n %s get etcdrestore %s -w (deleting it cancels it)", other.Name, other.Namespace, other.Name))
		}
		earlier = append(earlier, *other)
	}
	return earlier, nil
}

// restore returns what is to be created: what was asked for, completed by what is known
// of the cluster.
func (r *RestoreREST) restore(ctx context.Context, cluster *v1beta2.EtcdCluster, asked *v1beta2.EtcdRestore, name string) (*v1beta2.EtcdRestore, error) {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if name := asked.Spec.EtcdCluster.Name; name != "" && name != cluster.Name {
		errs = append(errs, field.Invalid(path.Child("etcdCluster", "name"), name, "the request is for cluster "+cluster.Name))
	}
	if asked.Spec.ClusterTemplate != nil {
		errs = append(errs, field.Forbidden(path.Child("clusterTemplate"), "the cluster of the request is restored in place; for a new cluster create an EtcdRestore"))
	}
	restore := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{
			Name: asked.Name, GenerateName: asked.GenerateName, Namespace: cluster.Namespace,
			Labels: asked.Labels, Annotations: asked.Annotations, ManagedFields: managedFields(asked),
		},
		Spec: *asked.Spec.DeepCopy(),
	}
	if restore.Name == "" && restore.GenerateName == "" {
		restore.Name = name
	}
	if restore.Labels == nil {
		restore.Labels = map[string]string{}
	}
	restore.Labels[resources.LabelCluster] = cluster.Name
	restore.Spec.EtcdCluster = v1beta2.EtcdClusterRef{Name: cluster.Name}
	if restore.Spec.Backup == nil && restore.Spec.BackupStorageType == "" && restore.Spec.RestoreSource == (v1beta2.RestoreSource{}) {
		missing, err := r.useNewest(ctx, cluster, &restore.Spec)
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

// useNewest names the newest good backup of the cluster as the source, by its revision:
// the next scheduled one may hold just what is to be undone.
func (r *RestoreREST) useNewest(ctx context.Context, cluster *v1beta2.EtcdCluster, spec *v1beta2.RestoreSpec) (field.ErrorList, error) {
	list, err := listBackups(ctx, r.backups)
	if err != nil {
		return nil, err
	}
	var backups []*v1beta2.EtcdBackup
	for i := range list.Items {
		if b := &list.Items[i]; resources.BackupOf(b, cluster.Name) {
			backups = append(backups, b)
		}
	}
	path := field.NewPath("spec")
	missing := func(why string) field.ErrorList {
		return field.ErrorList{field.Required(path.Child("backup"), fmt.Sprintf(
			"%s: name an EtcdBackup (kubectl -n %s get etcdbackups lists them), or give backupStorageType and the place of a backup", why, cluster.Namespace))}
	}
	last := resources.LastBackup(cluster, backups)
	if err := resources.Restorable(last); err != nil {
		return missing(err.Error()), nil
	}
	for _, b := range backups {
		if b.Name != last.Name || !b.Status.LastSuccessDate.Equal(&last.Time) {
			continue
		}
		if spec.Decryption == nil && manifest.NamedEncrypted(b.Status.URI) {
			return field.ErrorList{field.Required(path.Child("decryption"), fmt.Sprintf(
				"the last backup, EtcdBackup %s, is encrypted: name the Secret with the identities in ageIdentitiesSecret", b.Name))}, nil
		}
		spec.Backup = &v1beta2.BackupReference{Name: last.Name, Revision: ptr.To(last.Revision)}
		warning.AddWarning(ctx, "", fmt.Sprintf("the cluster goes back to EtcdBackup %s of %s, revision %d; what was written since is in the safety copy only, if a member is there to be copied",
			last.Name, last.Time.UTC().Format(time.RFC3339), last.Revision))
		return nil, nil
	}
	return missing(fmt.Sprintf("the last backup was made by EtcdBackup %s, which is gone", last.Name)), nil
}
