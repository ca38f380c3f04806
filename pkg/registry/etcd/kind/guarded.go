// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Guarded is a store whose objects are written by users. It asks for the rights that their
// content needs; subresources and Creator use the store itself and ask for their own.
type Guarded struct {
	*genericregistry.Store
	Guard rights.Guard
}

var _ rest.StandardStorage = &Guarded{}

// Create stores a new object.
func (g *Guarded) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return g.Store.Create(ctx, obj, g.Guard.Create(g.DefaultQualifiedResource, validate), options)
}

// Update stores a change of an object. An apply may create it.
func (g *Guarded) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return g.Store.Update(ctx, name, info, g.Guard.Create(g.DefaultQualifiedResource, createValidation),
		g.Guard.Update(g.DefaultQualifiedResource, updateValidation), forceAllowCreate, options)
}
