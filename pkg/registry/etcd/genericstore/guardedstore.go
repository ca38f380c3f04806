// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// GuardedStore is a store for objects that users write. It checks the rights that the content
// of an object needs. Subresources and Creator use the embedded store and check other rights.
type GuardedStore struct {
	*genericregistry.Store
	Guard rights.Guard
}

var _ rest.StandardStorage = &GuardedStore{}

// Create stores a new object.
func (g *GuardedStore) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return g.Store.Create(ctx, obj, g.Guard.Create(g.DefaultQualifiedResource, validate), options)
}

// Update stores a changed object. An apply may create it.
func (g *GuardedStore) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return g.Store.Update(ctx, name, info, g.Guard.Create(g.DefaultQualifiedResource, createValidation),
		g.Guard.Update(g.DefaultQualifiedResource, updateValidation), forceAllowCreate, options)
}
