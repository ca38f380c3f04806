// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Backups stores EtcdBackups. Create must do everything that a request for an EtcdBackup does,
// including admission.
type Backups interface {
	Create(ctx context.Context, backup *v1beta2.EtcdBackup, options *metav1.CreateOptions) (runtime.Object, error)
	List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error)
}

// BackupREST makes one backup of a cluster: it creates an EtcdBackup. An empty request chooses
// only the time of the backup, and needs only the right to create etcdclusters/backup. A
// request that sets fields also needs the right to create etcdbackups.
type BackupREST struct {
	actionREST[*v1beta2.EtcdBackup]

	clusters rest.Getter
	backups  Backups
	prober   *prober.Prober
	guard    rights.Guard
	inFlight inFlight
}

var (
	_ rest.NamedCreater                   = &BackupREST{}
	_ rest.SubresourceObjectMetaPreserver = &BackupREST{}
)

func newBackupREST(clusters rest.Getter, dependencies Dependencies) *BackupREST {
	return &BackupREST{
		actionREST: actionREST[*v1beta2.EtcdBackup]{subresource: "backup", empty: &v1beta2.EtcdBackup{}},
		clusters:   clusters, backups: dependencies.Backups, prober: dependencies.Prober, guard: dependencies.Guard,
	}
}

// Create creates the EtcdBackup and returns it.
func (r *BackupREST) Create(
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
	backup, err := r.newBackup(cluster, withoutDefaults(ctx, request))
	if err != nil {
		return nil, err
	}
	if err := r.authorizeCompleted(ctx, cluster, backup); err != nil {
		return nil, err
	}
	done, err := r.inFlight.begin(cluster, r.subresource)
	if err != nil {
		return nil, err
	}
	defer done()
	others, err := r.otherBackups(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if err := r.checkMemberResponds(ctx, cluster); err != nil {
		return nil, err
	}
	named := backup.Name != "" || backup.GenerateName != ""
	if !named {
		backup.Name = stateName(cluster, "backup", others)
	}
	created, err := r.backups.Create(contextOf(ctx, "etcdbackups"), backup, options)
	if apierrors.IsAlreadyExists(err) && !named {
		return nil, r.conflict(cluster.Name, "another request at the same time has created EtcdBackup %s; wait for it: kubectl -n %s get etcdbackup %s -w",
			backup.Name, backup.Namespace, backup.Name)
	}
	return created, err
}

// authorize checks the rights that the request needs because of the fields that it sets. The
// right to use the Secrets in spec.backup of the cluster was checked when they were set there.
func (r *BackupREST) authorize(ctx context.Context, name string, request *v1beta2.EtcdBackup) error {
	request = withoutDefaults(ctx, request)
	resource := v1beta2.Resource("etcdclusters/backup")
	given := append(rights.Given(field.NewPath("spec"), request.Spec, "etcdCluster"), rights.GivenMetadata(request)...)
	if err := r.guard.RequireCreate(ctx, resource, name, v1beta2.Resource("etcdbackups"), given); err != nil {
		return err
	}
	return r.guard.Check(ctx, resource, request, nil)
}

// authorizeCompleted checks the rights that a request needs because it changes how the Secrets and the ServiceAccount in
// spec.backup of the cluster are used. It may set a proxy, have the image of etcd run in the same pod, or set another key. A
// request that sets none of these does only what the author of spec.backup has allowed.
func (r *BackupREST) authorizeCompleted(ctx context.Context, cluster *v1beta2.EtcdCluster, backup *v1beta2.EtcdBackup) error {
	resource, policy := v1beta2.Resource("etcdclusters/backup"), cluster.Spec.Backup.DeepCopy()
	if policy == nil {
		return nil // it was checked with the request
	}
	if !equality.Semantic.DeepEqual(backup.Spec.BackupSource, policy.BackupSource) {
		// The request names the location, and may have the job of the cluster. Its pull Secrets were checked with the cluster. So
		// were its labels and annotations, which JobOfCluster leaves out beside other Secrets. Those of a request were checked with
		// the request. The proxy of the cluster leads to the location of the request.
		completed := backup.DeepCopy()
		if job := completed.Spec.Job; job != nil {
			job.ImagePullSecrets, job.Labels, job.Annotations = nil, nil, nil
		}
		return r.guard.Check(ctx, resource, completed, nil)
	}
	allowed := backup.DeepCopy()
	for _, f := range policyFields {
		f.copy(&allowed.Spec, &v1beta2.BackupSpec{
			Verify: policy.Verify, ServiceAccountName: policy.ServiceAccountName, Encryption: policy.Encryption,
			Job: resources.JobOfCluster(cluster, &backup.Spec),
		})
	}
	var given []string
	for _, f := range policyFields {
		one := allowed.DeepCopy()
		if f.copy(&one.Spec, &backup.Spec); len(rights.NeedsOf(one, allowed)) > 0 {
			given = append(given, field.NewPath("spec", f.name).String())
		}
	}
	return r.guard.CheckCompleted(ctx, resource, backup, allowed, given)
}

// policyFields are the fields of a request that replace those of spec.backup, and may change how its Secrets and its
// ServiceAccount are used.
var policyFields = []struct {
	name string
	copy func(to, from *v1beta2.BackupSpec)
}{
	{"verify", func(to, from *v1beta2.BackupSpec) { to.Verify = from.Verify }},
	{"serviceAccountName", func(to, from *v1beta2.BackupSpec) { to.ServiceAccountName = from.ServiceAccountName }},
	{"encryption", func(to, from *v1beta2.BackupSpec) { to.Encryption = from.Encryption }},
	{"job", func(to, from *v1beta2.BackupSpec) { to.Job = from.Job }},
}

// newBackup returns the EtcdBackup to create: the request, completed from spec.backup of the
// cluster.
func (r *BackupREST) newBackup(cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	errs := validateBackupRequest(cluster, &request.Spec)
	backup := &v1beta2.EtcdBackup{ObjectMeta: createdMeta(cluster, request.ObjectMeta), Spec: *request.Spec.DeepCopy()}
	backup.Spec.EtcdCluster = &v1beta2.EtcdClusterRef{Name: cluster.Name}
	if backup.Spec.StorageType == "" && backup.Spec.BackupSource == (v1beta2.BackupSource{}) {
		if cluster.Spec.Backup == nil {
			errs = append(errs, field.Required(field.NewPath("spec", "storageType"),
				"neither the request nor spec.backup of the EtcdCluster names a backup location; set one of them"))
		} else {
			useClusterLocation(&backup.Spec, cluster.Spec.Backup)
		}
	}
	v1beta2.SetDefaults_BackupSpec(&backup.Spec)
	if backup.Spec.Job == nil {
		backup.Spec.Job = resources.JobOfCluster(cluster, &backup.Spec)
	}
	if backup.Spec.TTL == nil && cluster.Spec.Backup != nil {
		backup.Spec.TTL = cluster.Spec.Backup.DeepCopy().TTL
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdBackup").GroupKind(), cluster.Name, errs)
	}
	return backup, nil
}

// validateBackupRequest rejects fields that contradict the path of the request.
func validateBackupRequest(cluster *v1beta2.EtcdCluster, spec *v1beta2.BackupSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if ref := spec.EtcdCluster; ref != nil && ref.Name != cluster.Name {
		errs = append(errs, field.Invalid(path.Child("etcdCluster", "name"), ref.Name, "the path of the request names EtcdCluster "+cluster.Name))
	}
	if len(spec.EtcdEndpoints) > 0 {
		errs = append(errs, field.Forbidden(path.Child("etcdEndpoints"), "the path of the request names the EtcdCluster to back up; create an EtcdBackup for other endpoints"))
	}
	if p := spec.BackupPolicy; p != nil && (p.Schedule != "" || p.BackupIntervalInSecond > 0) {
		errs = append(errs, field.Forbidden(path.Child("backupPolicy"), "a request makes one backup; for scheduled backups set spec.backup of the EtcdCluster, or create an EtcdBackup"))
	}
	return errs
}

// useClusterLocation copies the backup location from the policy of the cluster, and of the other
// fields those that the request leaves empty.
func useClusterLocation(spec *v1beta2.BackupSpec, policy *v1beta2.ClusterBackupPolicy) {
	policy = policy.DeepCopy()
	spec.StorageType, spec.BackupSource = policy.StorageType, policy.BackupSource
	spec.Compression = cmp.Or(spec.Compression, policy.Compression)
	spec.Verify = cmp.Or(spec.Verify, policy.Verify)
	spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, policy.ServiceAccountName)
	if spec.Encryption == nil {
		spec.Encryption = policy.Encryption
	}
}

// otherBackups returns the UIDs of the EtcdBackups of the cluster. It rejects the request while
// one of them is in progress.
func (r *BackupREST) otherBackups(ctx context.Context, cluster *v1beta2.EtcdCluster) ([]types.UID, error) {
	list, err := listBackups(ctx, r.backups)
	if err != nil {
		return nil, err
	}
	var uids []types.UID
	for i := range list.Items {
		b := &list.Items[i]
		if ptr.Deref(b.Spec.EtcdCluster, v1beta2.EtcdClusterRef{}).Name != cluster.Name {
			continue
		}
		if b.DeletionTimestamp == nil && isInProgress(b) {
			return nil, r.conflict(cluster.Name, "EtcdBackup %s of this EtcdCluster is in progress; wait for it: kubectl -n %s get etcdbackup %s -w",
				b.Name, b.Namespace, b.Name)
		}
		uids = append(uids, b.UID)
	}
	return uids, nil
}

func listBackups(ctx context.Context, backups Backups) (*v1beta2.EtcdBackupList, error) {
	obj, err := backups.List(contextOf(ctx, "etcdbackups"), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*v1beta2.EtcdBackupList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the store of EtcdBackups returned a %T", obj))
	}
	return list, nil
}

// isInProgress is true for a backup that runs, and for a single backup that is about to run.
// A scheduled backup is pending most of the time.
func isInProgress(b *v1beta2.EtcdBackup) bool {
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

// checkMemberResponds rejects a request if no member responds, so that the client learns at
// once that the backup would fail. A server that cannot reach members skips the check: the
// controller can reach them.
func (r *BackupREST) checkMemberResponds(ctx context.Context, cluster *v1beta2.EtcdCluster) error {
	if !r.prober.HasKubernetes() {
		return nil
	}
	p, err := r.prober.Probe(ctx, cluster)
	if err != nil {
		return err
	}
	// Without a client certificate no member can be reached, so nothing is known of them.
	if !p.CanProbe() {
		return nil
	}
	for i := range p.Responses {
		if p.Responses[i].Err == nil {
			return nil
		}
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no member of EtcdCluster %s responds; diagnose it with: kubectl get --raw '/apis/%s/namespaces/%s/etcdclusters/%s/health'",
		cluster.Name, v1beta2.SchemeGroupVersion, cluster.Namespace, cluster.Name))
}
