// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// updater changes clusters.
type updater interface {
	Update(
		ctx context.Context, name string, info rest.UpdatedObjectInfo,
		createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
		forceAllowCreate bool, options *metav1.UpdateOptions,
	) (runtime.Object, bool, error)
}

// OperationREST takes requests for operations that take longer than a request. It
// writes the operation into the status of the cluster, where the controller finds it
// and where it survives a restart of everything, and returns it.
type OperationREST struct {
	clusters    updater
	operation   v1beta2.OperationType
	subresource string
	clock       clock.PassiveClock
	// whole is true for an operation that is about all members, always. Who asks for it
	// while it goes on gets that one.
	whole bool
	// begin writes the operation into the cluster.
	begin func(*v1beta2.EtcdCluster, *v1beta2.ClusterOperation)
}

var (
	_ rest.NamedCreater                   = &OperationREST{}
	_ rest.SubresourceObjectMetaPreserver = &OperationREST{}
)

func newOperation(statuses updater, operation v1beta2.OperationType, subresource string) *OperationREST {
	return &OperationREST{clusters: statuses, operation: operation, subresource: subresource, clock: clock.RealClock{}, begin: enter}
}

func enter(cluster *v1beta2.EtcdCluster, operation *v1beta2.ClusterOperation) {
	cluster.Status.Operation = operation
}

// New returns an empty request.
func (r *OperationREST) New() runtime.Object { return &v1beta2.EtcdClusterOperation{} }

// Destroy leaves what is shared to the main resource.
func (r *OperationREST) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID of a request,
// which says what cluster is meant.
func (r *OperationREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create asks for the operation.
func (r *OperationREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(*v1beta2.EtcdClusterOperation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an EtcdClusterOperation, got %T", obj))
	}
	if err := named(asked, name); err != nil {
		return nil, err
	}
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	operation := r.requested(ctx, asked)
	ask := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		cluster, ok := old.DeepCopyObject().(*v1beta2.EtcdCluster)
		if !ok {
			return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", old))
		}
		if err := r.possible(cluster, asked); err != nil {
			return nil, err
		}
		if !r.goesOn(cluster) {
			r.begin(cluster, operation.DeepCopy())
		}
		return cluster, nil
	}
	updated, _, err := r.clusters.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, ask), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	cluster, ok := updated.(*v1beta2.EtcdCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", updated))
	}
	return &v1beta2.EtcdClusterOperation{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID, ResourceVersion: cluster.ResourceVersion,
		},
		Spec:   asked.Spec,
		Status: *cluster.Status.Operation.DeepCopy(),
	}, nil
}

// goesOn is true if what is asked for is being done already.
func (r *OperationREST) goesOn(cluster *v1beta2.EtcdCluster) bool {
	running := cluster.Status.Operation
	return r.whole && !running.Over() && running.Type == r.operation
}

func (r *OperationREST) requested(ctx context.Context, asked *v1beta2.EtcdClusterOperation) *v1beta2.ClusterOperation {
	operation := &v1beta2.ClusterOperation{
		Type: r.operation,
		ID:   string(uuid.NewUUID()),
		// Stored times have whole seconds; what is answered shall be what is stored.
		RequestedAt: metav1.NewTime(r.clock.Now().Truncate(time.Second)),
		Members:     slices.Clone(asked.Spec.Members),
		Phase:       v1beta2.OperationPending,
		RequestedBy: requester(ctx),
	}
	return operation
}

// possible says why the operation cannot be asked for now.
func (r *OperationREST) possible(cluster *v1beta2.EtcdCluster, asked *v1beta2.EtcdClusterOperation) error {
	if err := meant(cluster, asked, r.subresource); err != nil {
		return err
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(v1beta2.Resource("etcdclusters/"+r.subresource), cluster.Name, fmt.Errorf(format, args...))
	}
	if running := cluster.Status.Operation; !running.Over() && !r.goesOn(cluster) {
		return conflict("%s %s, asked for at %s, is %s; wait for it to end", running.Type, running.ID,
			running.RequestedAt.UTC().Format(time.RFC3339), running.Phase)
	}
	if ptr.Deref(cluster.Spec.Replicas, 0) == 0 {
		return conflict("the cluster is hibernated: it has no members")
	}
	if cluster.Spec.Paused {
		return conflict("spec.paused is true, so nobody would do it; set it to false first")
	}
	if errs := r.validateMembers(cluster, asked); len(errs) > 0 {
		return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterOperation").GroupKind(), cluster.Name, errs)
	}
	return nil
}

func (r *OperationREST) validateMembers(cluster *v1beta2.EtcdCluster, asked *v1beta2.EtcdClusterOperation) field.ErrorList {
	var errs field.ErrorList
	if r.whole && len(asked.Spec.Members) > 0 {
		return append(errs, field.Forbidden(field.NewPath("spec", "members"), "it is about all members, one by one: leave this out"))
	}
	seen := map[string]bool{}
	for i, member := range asked.Spec.Members {
		path := field.NewPath("spec", "members").Index(i)
		known := slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Name == member })
		switch {
		case seen[member]:
			errs = append(errs, field.Duplicate(path, member))
		case !known:
			errs = append(errs, field.Invalid(path, member, "the cluster has no such member"))
		}
		seen[member] = true
	}
	return errs
}
