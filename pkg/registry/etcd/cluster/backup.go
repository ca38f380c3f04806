// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/live"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Backups is where EtcdBackups are kept. Create must run everything that a request
// for an EtcdBackup runs, admission included.
type Backups interface {
	Create(ctx context.Context, backup *v1beta2.EtcdBackup, options *metav1.CreateOptions) (runtime.Object, error)
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// BackupREST makes one backup of a cluster: it creates an EtcdBackup. The right to
// create etcdclusters/backup is enough for an empty request, which chooses nothing but the
// moment. A request that chooses more needs the right to create etcdbackups, too.
type BackupREST struct {
	clusters getter
	backups  Backups
	asker    *live.Asker
	guard    rights.Guard
	clock    clock.PassiveClock

	// busy lets of two requests at the same time one see the backup of the other.
	busy busy
}

var (
	_ rest.NamedCreater                   = &BackupREST{}
	_ rest.SubresourceObjectMetaPreserver = &BackupREST{}
)

func newBackup(clusters getter, backups Backups, asker *live.Asker, guard rights.Guard) *BackupREST {
	return &BackupREST{clusters: clusters, backups: backups, asker: asker, guard: guard, clock: clock.RealClock{}}
}

// New returns an empty request.
func (r *BackupREST) New() runtime.Object { return &v1beta2.EtcdBackup{} }

// Destroy leaves what is shared to the main resource.
func (r *BackupREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID of a request,
// which says what cluster is meant.
func (r *BackupREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create makes the EtcdBackup and returns it.
func (r *BackupREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(*v1beta2.EtcdBackup)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an EtcdBackup, got %T", obj))
	}
	asked = withoutDefaults(ctx, asked)
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
	if err := meant(cluster, asked, "backup"); err != nil {
		return nil, err
	}
	backup, err := r.backup(cluster, asked)
	if err != nil {
		return nil, err
	}
	release, err := r.busy.claim(cluster, "backup")
	if err != nil {
		return nil, err
	}
	defer release()
	if err := r.alone(ctx, cluster); err != nil {
		return nil, err
	}
	if err := r.served(ctx, cluster); err != nil {
		return nil, err
	}
	return r.backups.Create(resourceContext(ctx, "etcdbackups"), backup, options)
}

// authorize asks for the rights that a request needs because of what it chooses. The Secrets
// that spec.backup of the cluster names were asked about when they were written there.
func (r *BackupREST) authorize(ctx context.Context, name string, asked *v1beta2.EtcdBackup) error {
	resource := v1beta2.Resource("etcdclusters/backup")
	given := append(rights.Given(field.NewPath("spec"), asked.Spec, "etcdCluster"), rights.GivenMetadata(asked)...)
	if err := r.guard.RequireCreate(ctx, resource, name, v1beta2.Resource("etcdbackups"), given); err != nil {
		return err
	}
	return r.guard.Check(ctx, resource, asked, nil)
}

// backup returns what is to be created: what was asked for, completed by what the
// cluster says.
func (r *BackupREST) backup(cluster *v1beta2.EtcdCluster, asked *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if ref := asked.Spec.EtcdCluster; ref != nil && ref.Name != cluster.Name {
		errs = append(errs, field.Invalid(path.Child("etcdCluster", "name"), ref.Name, "the request is for cluster "+cluster.Name))
	}
	if len(asked.Spec.EtcdEndpoints) > 0 {
		errs = append(errs, field.Forbidden(path.Child("etcdEndpoints"), "the cluster of the request is backed up"))
	}
	if p := asked.Spec.BackupPolicy; p != nil && (p.Schedule != "" || p.BackupIntervalInSecond > 0) {
		errs = append(errs, field.Forbidden(path.Child("backupPolicy"), "this makes one backup; for a series set spec.backup of the cluster, or create an EtcdBackup"))
	}
	backup := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: asked.Name, GenerateName: asked.GenerateName, Namespace: cluster.Namespace,
			Labels: asked.Labels, Annotations: asked.Annotations, ManagedFields: managedFields(asked),
		},
		Spec: *asked.Spec.DeepCopy(),
	}
	if backup.Name == "" && backup.GenerateName == "" {
		backup.GenerateName = generateName(cluster, r.clock)
	}
	if backup.Labels == nil {
		backup.Labels = map[string]string{}
	}
	backup.Labels[resources.LabelCluster] = cluster.Name
	backup.Spec.EtcdCluster = &v1beta2.EtcdClusterRef{Name: cluster.Name}
	if backup.Spec.StorageType == "" && backup.Spec.BackupSource == (v1beta2.BackupSource{}) {
		if cluster.Spec.Backup == nil {
			errs = append(errs, field.Required(path.Child("storageType"),
				"neither the request nor spec.backup of the cluster says where the backup goes"))
		} else {
			useDestination(&backup.Spec, cluster.Spec.Backup)
		}
	}
	v1beta2.SetDefaults_BackupSpec(&backup.Spec)
	if backup.Spec.Job == nil && cluster.Spec.Backup != nil {
		backup.Spec.Job = cluster.Spec.Backup.Job.DeepCopy()
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdBackup").GroupKind(), cluster.Name, errs)
	}
	return backup, nil
}

// useDestination takes from the cluster where its backups go, and how they are kept as far
// as the request does not say it.
func useDestination(spec *v1beta2.BackupSpec, policy *v1beta2.ClusterBackupPolicy) {
	policy = policy.DeepCopy()
	spec.StorageType, spec.BackupSource = policy.StorageType, policy.BackupSource
	spec.Compression = cmp.Or(spec.Compression, policy.Compression)
	spec.Verify = cmp.Or(spec.Verify, policy.Verify)
	spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, policy.ServiceAccountName)
	if spec.Encryption == nil {
		spec.Encryption = policy.Encryption
	}
}

// alone makes sure that no backup of the cluster is under way.
func (r *BackupREST) alone(ctx context.Context, cluster *v1beta2.EtcdCluster) error {
	list, err := listBackups(ctx, r.backups)
	if err != nil {
		return err
	}
	for i := range list.Items {
		b := &list.Items[i]
		if b.DeletionTimestamp == nil && ptr.Deref(b.Spec.EtcdCluster, v1beta2.EtcdClusterRef{}).Name == cluster.Name && underWay(b) {
			return apierrors.NewConflict(v1beta2.Resource("etcdclusters/backup"), cluster.Name,
				fmt.Errorf("EtcdBackup %s of this cluster is under way; wait for it: kubectl -n %s get etcdbackup %s -w", b.Name, b.Namespace, b.Name))
		}
	}
	return nil
}

func listBackups(ctx context.Context, backups Backups) (*v1beta2.EtcdBackupList, error) {
	obj, err := backups.List(resourceContext(ctx, "etcdbackups"), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*v1beta2.EtcdBackupList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
	}
	return list, nil
}

// underWay is true for a backup that is being made. A series waits most of the time,
// and one that was just created for once is about to begin.
func underWay(b *v1beta2.EtcdBackup) bool {
	switch b.Status.Phase {
	case v1beta2.BackupPhaseRunning:
		return true
	case v1beta2.BackupPhasePending, "":
		p := b.Spec.BackupPolicy
		return p == nil || (p.Schedule == "" && p.BackupIntervalInSecond == 0)
	case v1beta2.BackupPhaseSucceeded, v1beta2.BackupPhaseFailed:
		return false
	default:
		return false
	}
}

// served makes sure that a member answers: whoever asks for a backup now shall know at
// once that no member can serve it. A server that cannot ask leaves it to the controller, which
// has the rights that it needs for that.
func (r *BackupREST) served(ctx context.Context, cluster *v1beta2.EtcdCluster) error {
	if !r.asker.Able() {
		return nil
	}
	p, err := r.asker.Ask(ctx, cluster)
	if err != nil {
		return err
	}
	// Without the certificate nothing is known of the members.
	if !p.Asked() {
		return nil
	}
	for i := range p.Answers {
		if p.Answers[i].Err == nil {
			return nil
		}
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no member of cluster %s answers; see what is wrong: kubectl get --raw '/apis/%s/namespaces/%s/etcdclusters/%s/health'",
		cluster.Name, v1beta2.SchemeGroupVersion, cluster.Namespace, cluster.Name))
}
