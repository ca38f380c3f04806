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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// Guard knows whether a storage is still the one that its server was started with. Both methods return nil if it is.
type Guard interface {
	// Check reads that now.
	Check(ctx context.Context) error
	// CheckRecent reads it now as well, unless a read of a moment ago has found it.
	CheckRecent(ctx context.Context) error
}

// RetryUnavailable makes the storages of a getter report an etcd that is not available, because
// its leader has changed or a member has stopped, as a timeout of the server. Such a response has the
// header Retry-After, and client libraries send the request again. Otherwise it would be an
// internal error, after which they stop.
//
// Each response that tells what is stored is reported so, too, unless the guard confirms afterwards that the storage is
// the one of the start. Garbage collection deletes the pods of an EtcdCluster that is not found, that a list or the
// first events of a watch lack, or that has another UID. In an empty etcd at the same address all of that happens. The
// storages are those above the watch cache, because it reads all objects again from such an etcd, and serves them from
// memory. Without a guard every response counts.
func RetryUnavailable(getter generic.RESTOptionsGetter, guard Guard) generic.RESTOptionsGetter {
	return wrappingGetter{RESTOptionsGetter: getter, wrap: func(_ schema.GroupResource, inner storage.Interface, _ func() runtime.Object) storage.Interface {
		return retryableStorage{Interface: inner, guard: guard}
	}}
}

// retryableStorage changes the errors of a storage that is not available.
type retryableStorage struct {
	storage.Interface

	guard Guard
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

// Watch rejects a watch as the watch cache does before it has read all objects. After this error client libraries watch
// again from the same revision. After most others they list first.
func (s retryableStorage) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	events, err := s.Interface.Watch(ctx, key, options)
	if err != nil {
		return nil, err
	}
	if err := s.confirm(ctx, nil); err != nil {
		events.Stop()
		logUnavailable(ctx, key, err)
		return nil, apierrors.NewTooManyRequests("the storage is not available", 1)
	}
	return events, nil
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
	unavailable := err
	if err == nil || !isUnavailable(err) {
		if unavailable = s.confirm(ctx, err); unavailable == nil {
			return err
		}
	}
	logUnavailable(ctx, key, unavailable)
	return storage.NewUnreachableError(key, 0)
}

// confirm returns nil if the storage that has responded is the one of the start, or if the response does not tell what
// is stored. A missing object needs a read of the guard, because it is read from etcd itself, an instant after etcd was
// replaced. An update says of a missing object what the API says of it, and not what the storage says. Lists and watches reach an etcd that was replaced only after the watch cache has begun again, and GETs
// find something in it only after it was created again.
func (s retryableStorage) confirm(ctx context.Context, err error) error {
	switch {
	case s.guard == nil:
		return nil
	case storage.IsNotFound(err), apierrors.IsNotFound(err):
		return s.guard.Check(ctx)
	case err == nil:
		return s.guard.CheckRecent(ctx)
	default:
		return nil
	}
}

func logUnavailable(ctx context.Context, key string, err error) {
	klog.FromContext(ctx).Info("The storage is not available; the client is to try again", "key", key, "err", err)
}

func isUnavailable(err error) bool {
	var coded interface{ Code() codes.Code }
	if errors.As(err, &coded) {
		return coded.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}
