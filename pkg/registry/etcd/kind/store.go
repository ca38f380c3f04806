// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// Resource names a resource and makes its objects.
type Resource struct {
	Plural, Singular schema.GroupResource
	New, NewList     func() runtime.Object
}

// NewStore returns the store of a kind and the endpoint for its status, which
// shares the store's connection and watch cache. Both ask the guard for the rights that what
// users write needs.
func NewStore[T Object, S, U any](
	resource Resource, strategy Strategy[T, S, U], table rest.TableConvertor, optsGetter generic.RESTOptionsGetter, guard rights.Guard,
) (Guarded, *StatusREST, error) {
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
	options := &generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: attributes}
	if err := store.CompleteWithOptions(options); err != nil {
		return Guarded{}, nil, fmt.Errorf("store of %s: %w", resource.Plural, err)
	}

	statusStore := *store
	statusStrategy := NewStatusStrategy(strategy)
	statusStore.UpdateStrategy = statusStrategy
	statusStore.ResetFieldsStrategy = statusStrategy
	return Guarded{Store: store, Guard: guard}, &StatusREST{store: &statusStore, guard: guard}, nil
}
