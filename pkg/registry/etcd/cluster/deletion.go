// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ErrDeletionProtected is the reason for which a deletion of a protected cluster is forbidden.
var ErrDeletionProtected = errors.New("spec.deletionProtection is true; to delete the cluster and its data, set spec.deletionProtection=false first")

// ErrBesideOldMembers is the reason for which a cluster may not be deleted whose members are part of
// the quorum of an etcd with other members.
var ErrBesideOldMembers = errors.New("its members are part of the quorum of the etcd in spec.bootstrap.existing. " +
	"To finish the migration, set spec.bootstrap.existing.oldMembers=Remove. To give it up, set spec.paused=true. Then remove its members with etcdctl member remove, and delete the EtcdCluster")

// Delete rejects the deletion of a protected cluster. This also holds for the deletion of a
// namespace, which waits until the protection is removed.
func (r *REST) Delete(
	ctx context.Context, name string, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, rejectProtected(admit), options)
}

// DeleteCollection deletes clusters until it finds a protected one.
func (r *REST) DeleteCollection(
	ctx context.Context, admit rest.ValidateObjectFunc, options *metav1.DeleteOptions, selection *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, rejectProtected(admit), options, selection)
}

// isBesideOldMembers is true while the status lists members of the cluster that have a pod or a PVC beside
// old members of the etcd that it takes over. Without both, as after the deletion of the namespace, nothing
// is left to keep. A paused cluster whose members were removed from that etcd still lists the
// last one: no member of its own is left that could tell. There an old member that serves a linearizable
// read, which makes it healthy, proves that the old ones are a quorum without those that do not.
func isBesideOldMembers(cluster *v1beta2.EtcdCluster) bool {
	unmanaged := func(m v1beta2.MemberStatus) bool { return m.Unmanaged }
	own := func(m v1beta2.MemberStatus) bool { return !m.Unmanaged && (m.Pod != "" || m.Claim != "") }
	serves := func(is func(v1beta2.MemberStatus) bool) bool {
		return slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return is(m) && m.Healthy == corev1.ConditionTrue })
	}
	switch {
	case cluster.Existing() == nil || !slices.ContainsFunc(cluster.Status.MemberStatuses, unmanaged) || !slices.ContainsFunc(cluster.Status.MemberStatuses, own):
		return false
	case cluster.Spec.Paused && serves(unmanaged) && !serves(own):
		return false
	default:
		return true
	}
}

// rejectProtected checks the object that is deleted: the store calls the function inside the
// transaction that deletes the object.
func rejectProtected(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		cluster, err := asCluster(obj)
		if err != nil {
			return err
		}
		if cluster.IsDeletionProtected() {
			return apierrors.NewForbidden(v1beta2.Resource("etcdclusters"), cluster.Name, ErrDeletionProtected)
		}
		if isBesideOldMembers(cluster) {
			return apierrors.NewForbidden(v1beta2.Resource("etcdclusters"), cluster.Name, ErrBesideOldMembers)
		}
		if admit == nil {
			return nil
		}
		return admit(ctx, obj)
	}
}
