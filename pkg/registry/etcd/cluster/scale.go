// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ScaleREST serves autoscaling/v1 Scale for clusters. A change goes through the store of
// EtcdClusters, so that their validation checks the new size. Admission sees a Scale.
type ScaleREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher                  = &ScaleREST{}
	_ rest.GroupVersionKindProvider = &ScaleREST{}
	_ rest.TableConvertor           = &ScaleREST{}
)

var (
	scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	// sizePaths maps spec.replicas of a Scale to the same field of an EtcdCluster, by JSON name.
	sizePaths = managedfields.ResourcePathMappings{v1beta2.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "size")}
)

// GroupVersionKind returns the kind that discovery shows to scale clients.
func (r *ScaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return scaleKind }

// New returns an empty Scale.
func (r *ScaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy does nothing: the store belongs to the main resource.
func (r *ScaleREST) Destroy() {}

// Get returns the Scale of a cluster.
func (r *ScaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleFromCluster(obj)
}

// Update changes the desired size of a cluster.
func (r *ScaleREST) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdatedObjectInfo{name: name, request: info},
		admitScaleCreate(createValidation), admitScaleUpdate(updateValidation), false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleFromCluster(obj)
	return scale, false, err
}

// ConvertToTable shows the default columns of a Scale.
func (r *ScaleREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

func scaleFromCluster(obj runtime.Object) (*autoscalingv1.Scale, error) {
	cluster, err := asCluster(obj)
	if err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              cluster.Name,
			Namespace:         cluster.Namespace,
			UID:               cluster.UID,
			ResourceVersion:   cluster.ResourceVersion,
			CreationTimestamp: cluster.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: ptr.Deref(cluster.Spec.Replicas, 0)},
		Status: autoscalingv1.ScaleStatus{Replicas: cluster.Status.Replicas, Selector: cluster.Status.Selector},
	}, nil
}

func admitScaleCreate(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		scale, err := scaleFromCluster(obj)
		if err != nil {
			return err
		}
		return admit(ctx, scale)
	}
}

func admitScaleUpdate(admit rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		newer, err := scaleFromCluster(obj)
		if err != nil {
			return err
		}
		older, err := scaleFromCluster(old)
		if err != nil {
			return err
		}
		return admit(ctx, newer, older)
	}
}

// scaleUpdatedObjectInfo turns the stored cluster into a Scale, applies the request to it,
// and writes the result back into the cluster.
type scaleUpdatedObjectInfo struct {
	name    string
	request rest.UpdatedObjectInfo
}

// Preconditions returns those of the request.
func (i *scaleUpdatedObjectInfo) Preconditions() *metav1.Preconditions {
	return i.request.Preconditions()
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i *scaleUpdatedObjectInfo) UpdatedObject(ctx context.Context, stored runtime.Object) (runtime.Object, error) {
	cluster, err := asCluster(stored.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	before, err := scaleFromCluster(cluster)
	if err != nil {
		return nil, err
	}
	// The manager of spec.replicas of the Scale is the manager of spec.size of the cluster.
	managers := managedfields.NewScaleHandler(cluster.ManagedFields, v1beta2.SchemeGroupVersion, sizePaths)
	if before.ManagedFields, err = managers.ToSubresource(); err != nil {
		return nil, err
	}
	after, err := i.apply(ctx, before)
	if err != nil {
		return nil, err
	}
	if after.Spec.Replicas != before.Spec.Replicas {
		if reason := unsafeSizeReason(cluster, after.Spec.Replicas); reason != "" {
			// Not a conflict: clients retry a conflict without showing its message.
			return nil, i.invalid(field.Forbidden(field.NewPath("spec", "replicas"), reason))
		}
	}
	if cluster.ManagedFields, err = managers.ToParent(after.ManagedFields); err != nil {
		return nil, err
	}
	cluster.Spec.Replicas = &after.Spec.Replicas
	cluster.ResourceVersion = after.ResourceVersion
	return cluster, nil
}

// apply returns the Scale that the request makes of the one before.
func (i *scaleUpdatedObjectInfo) apply(ctx context.Context, before *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	obj, err := i.request.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	after, ok := obj.(*autoscalingv1.Scale)
	if !ok || after == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request body is a %T; etcdclusters/scale takes a Scale", obj))
	}
	if after.Spec.Replicas < 0 {
		return nil, i.invalid(field.Invalid(field.NewPath("spec", "replicas"), after.Spec.Replicas, "must not be negative"))
	}
	if after.UID != "" && after.UID != before.UID {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/scale"), i.name,
			fmt.Errorf("EtcdCluster was recreated (UID changed from %s to %s); read it and send the request again", after.UID, before.UID))
	}
	return after, nil
}

func (i *scaleUpdatedObjectInfo) invalid(err *field.Error) error {
	return apierrors.NewInvalid(scaleKind.GroupKind(), i.name, field.ErrorList{err})
}

// unsafeSizeReason says why a cluster must not be scaled to a size now, as far as its last
// status shows it; empty if it may be. The controller checks again before it removes a member.
func unsafeSizeReason(cluster *v1beta2.EtcdCluster, size int32) string {
	if size == 0 {
		return "" // hibernation removes no member from etcd, so it needs no quorum
	}
	if isQuorumLost(cluster) {
		return "the quorum is lost, and etcd adds and removes members only with a quorum; get etcdclusters/" + cluster.Name + "/health shows what to do"
	}
	if cluster.Status.Replicas-size <= 1 {
		return "" // the controller removes a member that is not healthy first
	}
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		votes := m.Role == v1beta2.MemberRoleLeader || m.Role == v1beta2.MemberRoleFollower
		if votes && m.Healthy != corev1.ConditionTrue {
			return fmt.Sprintf("member %s is not healthy, so at most one member may be removed at a time; use %d or more until the member is healthy",
				m.Name, cluster.Status.Replicas-1)
		}
	}
	return ""
}
