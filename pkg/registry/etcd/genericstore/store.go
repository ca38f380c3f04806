// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Resource holds the names of a resource and creates its empty objects.
type Resource struct {
	Plural, Singular schema.GroupResource
	New, NewList     func() runtime.Object
}

// New returns the store of a kind and the endpoint for its status, which shares the store's
// connection and watch cache. Both let the guard check the rights that an object needs.
func New[T Object, S, U any](
	resource Resource, strategy Strategy[T, S, U], table rest.TableConvertor, optsGetter generic.RESTOptionsGetter, guard rights.Guard,
) (GuardedStore, *StatusREST, error) {
	store := &genericregistry.Store{
		NewFunc:                   resource.New,
		NewListFunc:               resource.NewList,
		DefaultQualifiedResource:  resource.Plural,
		SingularQualifiedResource: resource.Singular,
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            table,
	}
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: getAttrs}
	if err := store.CompleteWithOptions(options); err != nil {
		return GuardedStore{}, nil, fmt.Errorf("store of %s: %w", resource.Plural, err)
	}

	statusStore := *store
	statusStrategy := NewStatusStrategy(strategy)
	statusStore.UpdateStrategy = statusStrategy
	statusStore.ResetFieldsStrategy = statusStrategy
	return GuardedStore{Store: store, Guard: guard}, &StatusREST{store: &statusStore, guard: guard}, nil
}
