// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Scalable says where a kind keeps what a Scale shows.
type Scalable[T Object] struct {
	Resource     schema.GroupResource
	GroupVersion schema.GroupVersion
	// Path of the wanted number of replicas, by JSON names.
	Path fieldpath.Path

	Wanted    func(obj T) int32
	SetWanted func(obj T, replicas int32)
	Observed  func(obj T) int32
	Selector  func(obj T) string
	// Unsafe says why the object must not be scaled to that now; empty if it may.
	Unsafe func(obj T, replicas int32) string
}

// ScaleREST serves autoscaling/v1 Scale as a subresource. A change runs through the
// store of the kind, so the kind's own validation judges the new size, and
// admission sees it as a Scale.
type ScaleREST[T Object] struct {
	store    *genericregistry.Store
	scalable Scalable[T]
}

var (
	_ rest.Patcher                  = &ScaleREST[anyObject]{}
	_ rest.GroupVersionKindProvider = &ScaleREST[anyObject]{}
	_ rest.TableConvertor           = &ScaleREST[anyObject]{}
)

// NewScaleREST returns the scale subresource of the kind that store keeps.
func NewScaleREST[T Object](store *genericregistry.Store, scalable Scalable[T]) *ScaleREST[T] {
	return &ScaleREST[T]{store: store, scalable: scalable}
}

// GroupVersionKind tells discovery, and through it every scale client, what the
// subresource speaks.
func (r *ScaleREST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New returns an empty Scale.
func (r *ScaleREST[T]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy leaves the shared store to the main resource.
func (r *ScaleREST[T]) Destroy() {}

// Get returns the Scale of an object.
func (r *ScaleREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.scalable.scaleOf(obj)
}

// Update changes the wanted number of replicas.
func (r *ScaleREST[T]) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name,
		&scaledObject[T]{name: name, scale: info, scalable: r.scalable},
		r.scalable.onCreate(createValidation), r.scalable.onUpdate(updateValidation), false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := r.scalable.scaleOf(obj)
	return scale, false, err
}

// ConvertToTable shows the default columns, since a Scale is not of the kind.
func (r *ScaleREST[T]) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

func (s Scalable[T]) scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", obj))
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              typed.GetName(),
			Namespace:         typed.GetNamespace(),
			UID:               typed.GetUID(),
			ResourceVersion:   typed.GetResourceVersion(),
			CreationTimestamp: typed.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: s.Wanted(typed)},
		Status: autoscalingv1.ScaleStatus{Replicas: s.Observed(typed), Selector: s.Selector(typed)},
	}, nil
}

func (s Scalable[T]) onCreate(admit rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		scale, err := s.scaleOf(obj)
		if err != nil {
			return err
		}
		return admit(ctx, scale)
	}
}

func (s Scalable[T]) onUpdate(admit rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		newer, err := s.scaleOf(obj)
		if err != nil {
			return err
		}
		older, err := s.scaleOf(old)
		if err != nil {
			return err
		}
		return admit(ctx, newer, older)
	}
}

// scaledObject turns the stored object into a Scale, lets the request change that,
// and carries the result back into the object.
type scaledObject[T Object] struct {
	name     string
	scale    rest.UpdatedObjectInfo
	scalable Scalable[T]
}

// Preconditions are those of the request.
func (i *scaledObject[T]) Preconditions() *metav1.Preconditions { return i.scale.Preconditions() }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i *scaledObject[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, ok := old.DeepCopyObject().(T)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("unexpected type %T", old))
	}
	if obj.GetResourceVersion() == "" {
		return nil, apierrors.NewNotFound(i.resource(), i.name)
	}

	// Who owns spec.replicas of the Scale is who owns the wanted size of the object.
	owners := managedfields.NewScaleHandler(obj.GetManagedFields(), i.scalable.GroupVersion,
		managedfields.ResourcePathMappings{i.scalable.GroupVersion.String(): i.scalable.Path})
	before, err := i.scalable.scaleOf(obj)
	if err != nil {
		return nil, err
	}
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return nil, err
	}

	after, err := i.requested(ctx, before)
	if err != nil {
		return nil, err
	}
	if why := i.scalable.Unsafe(obj, after.Spec.Replicas); why != "" && after.Spec.Replicas != before.Spec.Replicas {
		// Not a conflict: clients try those again until they give up, and tell nobody why.
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), i.name, field.ErrorList{
			field.Forbidden(field.NewPath("spec", "replicas"), why),
		})
	}
	managed, err := owners.ToParent(after.ManagedFields)
	if err != nil {
		return nil, err
	}
	i.scalable.SetWanted(obj, after.Spec.Replicas)
	obj.SetResourceVersion(after.ResourceVersion)
	obj.SetManagedFields(managed)
	return obj, nil
}

// requested applies the request to the present Scale.
func (i *scaledObject[T]) requested(ctx context.Context, before *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	obj, err := i.scale.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	after, ok := obj.(*autoscalingv1.Scale)
	if !ok || after == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", obj))
	}
	if after.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), i.name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), after.Spec.Replicas, "must not be negative"),
		})
	}
	if after.UID != "" && after.UID != before.UID {
		return nil, apierrors.NewConflict(i.resource(), i.name,
			fmt.Errorf("the request is for UID %s, the object has UID %s", after.UID, before.UID))
	}
	return after, nil
}

func (i *scaledObject[T]) resource() schema.GroupResource {
	return schema.GroupResource{Group: i.scalable.Resource.Group, Resource: i.scalable.Resource.Resource + "/scale"}
}
