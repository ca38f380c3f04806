// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Creator creates objects of a kind for a request to another resource. It does everything that
// a request for the kind does, including webhooks and policies, except authorization: the
// other resource authorizes the request.
type Creator[T Object] struct {
	Store    *genericregistry.Store
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Scheme knows the kind.
	Scheme *runtime.Scheme
	// Admission is that of the server; nil admits everything.
	Admission admission.Interface
}

// Create creates an object.
func (c *Creator[T]) Create(ctx context.Context, obj T, options *metav1.CreateOptions) (runtime.Object, error) {
	if c.Admission == nil {
		return c.Store.Create(ctx, obj, rest.ValidateAllObjectFunc, options)
	}
	user, _ := request.UserFrom(ctx)
	attributes := admission.NewAttributesRecord(obj, nil, c.Kind, request.NamespaceValue(ctx), obj.GetName(), c.Resource, "",
		admission.Create, options, dryrun.IsDryRun(options.DryRun), user)
	interfaces := admission.NewObjectInterfacesFromScheme(c.Scheme)
	admit := admission.WithAudit(c.Admission)
	if mutation, ok := admit.(admission.MutationInterface); ok && mutation.Handles(admission.Create) {
		if err := mutation.Admit(ctx, attributes, interfaces); err != nil {
			return nil, err
		}
	}
	return c.Store.Create(ctx, obj, rest.AdmissionToValidateObjectFunc(admit, attributes, interfaces), options)
}

// List lists objects.
func (c *Creator[T]) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	return c.Store.List(ctx, options)
}
