// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// RetryUnavailable makes the storages of a getter report an etcd that is not available, because
// its leader has changed or a member has stopped, as a timeout of the server. Such a response has the
// header Retry-After, and client libraries send the request again. Otherwise it would be an
// internal error, after which they stop.
func RetryUnavailable(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return retryableGetter{RESTOptionsGetter: getter}
}

type retryableGetter struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g retryableGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, keyFunc func(obj runtime.Object) (string, error),
		newFunc func() runtime.Object, newListFunc func() runtime.Object, attributes storage.AttrFunc,
		triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		inner, destroy, err := decorate(config, prefix, keyFunc, newFunc, newListFunc, attributes, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return retryableStorage{Interface: inner}, destroy, nil
	}
	return options, nil
}

// retryableStorage changes the errors of a storage that is not available.
type retryableStorage struct{ storage.Interface }

func (s retryableStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return asUnreachable(ctx, key, s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s retryableStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions,
) error {
	return asUnreachable(ctx, key, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options))
}

func (s retryableStorage) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	return asUnreachable(ctx, key, s.Interface.Get(ctx, key, options, out))
}

func (s retryableStorage) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	return asUnreachable(ctx, key, s.Interface.GetList(ctx, key, options, out))
}

func (s retryableStorage) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return asUnreachable(ctx, key, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
}

// asUnreachable returns the error that package registry turns into a timeout of the server, if etcd
// was not available; otherwise the error itself. Whether a write was carried out is not known.
func asUnreachable(ctx context.Context, key string, err error) error {
	if err == nil || !isUnavailable(err) {
		return err
	}
	klog.FromContext(ctx).Info("The storage is not available; the client is to try again", "key", key, "err", err)
	return storage.NewUnreachableError(key, 0)
}

func isUnavailable(err error) bool {
	var coded interface{ Code() codes.Code }
	if errors.As(err, &coded) {
		return coded.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}
