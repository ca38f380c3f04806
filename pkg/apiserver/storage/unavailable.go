// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"net/http"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// RetryUnavailable makes the storages of a getter report an etcd that is not available, because
// its leader has changed or a member has stopped, as a timeout of the server. Such a response has the
// header Retry-After, and client libraries send the request again. Otherwise it would be an
// internal error, after which they stop.
//
// An object that is not found is reported so, too, unless confirm returns nil afterwards. Garbage collection deletes the
// pods of an EtcdCluster that is not found, and in an empty etcd at the same address none is found. Without confirm
// every such response counts.
func RetryUnavailable(getter generic.RESTOptionsGetter, confirm func(context.Context) error) generic.RESTOptionsGetter {
	return wrappingGetter{RESTOptionsGetter: getter, wrap: func(_ schema.GroupResource, inner storage.Interface, _ func() runtime.Object) storage.Interface {
		return retryableStorage{Interface: inner, confirm: confirm}
	}}
}

// retryableStorage changes the errors of a storage that is not available.
type retryableStorage struct {
	storage.Interface

	confirm func(context.Context) error
}

func (s retryableStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return s.asUnreachable(ctx, key, s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s retryableStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions,
) error {
	return s.asUnreachable(ctx, key, s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options))
}

func (s retryableStorage) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	return s.asUnreachable(ctx, key, s.Interface.Get(ctx, key, options, out))
}

func (s retryableStorage) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	return s.asUnreachable(ctx, key, s.Interface.GetList(ctx, key, options, out))
}

func (s retryableStorage) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return s.asUnreachable(ctx, key, s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached))
}

// errFull is what a client gets while etcd is at its quota. The embedded etcd is guarded, and this is for
// every other one, which nothing but its administrator compacts then: the API server writes before it compacts.
var errFull = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "StorageFull",
	Message: "the etcd behind the etcd-operator API servers is at its quota (alarm NOSPACE), so objects cannot be created or changed. " +
		"Delete EtcdBackups that are not needed and EtcdRestores that have ended, then run \"artifacts/ha/storage.sh shrink\". " +
		"Compact and defragment an etcd of your own instead, and disarm its alarm. " +
		"EtcdClusters and namespaces are deleted only once there is space. Etcd clusters go on without this",
}}

// asUnreachable returns the error that package registry turns into a timeout of the server, if etcd was not available or
// was replaced. It returns errFull if etcd is full, and otherwise the error itself. Whether a write was carried out by an
// etcd that was not available is not known.
func (s retryableStorage) asUnreachable(ctx context.Context, key string, err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return errFull
	}
	if storage.IsNotFound(err) && s.confirm != nil {
		unconfirmed := s.confirm(ctx)
		if unconfirmed == nil {
			return err
		}
		err = unconfirmed
	} else if err == nil || !isUnavailable(err) {
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
