// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// failing is a storage whose requests fail.
type failing struct {
	storage.Interface
	err error
}

func (f failing) Get(context.Context, string, storage.GetOptions, runtime.Object) error { return f.err }

func (f failing) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return f.err
}

// TestUnavailableStorageIsTriedAgain checks what a client sees of each error of etcd: a response
// with Retry-After if etcd was not available, and only then.
func TestUnavailableStorageIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"request that timed out":                {rpctypes.ErrTimeout, true},
		"leader that was lost":                  {rpctypes.ErrTimeoutDueToLeaderFail, true},
		"no leader":                             {fmt.Errorf("create: %w", rpctypes.ErrNoLeader), true},
		"connection that was lost":              {status.Error(codes.Unavailable, "transport is closing"), true},
		"full database":                         {rpctypes.ErrNoSpace, false},
		"object that exists":                    {storage.NewKeyExistsError("/a", 0), false},
		"error that does not come from etcd":    {errors.New("encode"), false},
		"request that the client has cancelled": {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := retryableStorage{Interface: failing{err: test.err}}.Create(t.Context(), "/a", nil, nil, 0)
			err = storeerr.InterpretCreateError(err, schema.GroupResource{Resource: "etcdclusters"}, "a")
			seconds, again := apierrors.SuggestsClientDelay(err)
			if again != test.again || again && (seconds < 1 || !apierrors.IsServerTimeout(err)) {
				t.Errorf("got %v, to be tried again after %d s: %t, want %t", err, seconds, again, test.again)
			}
			if status := apierrors.APIStatus(nil); again && errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
				t.Errorf("client libraries do not try again after status %d", status.Status().Code)
			}
		})
	}
	err := retryableStorage{Interface: failing{err: rpctypes.ErrNoSpace}}.Create(t.Context(), "/a", nil, nil, 0)
	err = storeerr.InterpretCreateError(err, schema.GroupResource{Resource: "etcdclusters"}, "a")
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != http.StatusInsufficientStorage || status.Status().Reason != "StorageFull" ||
		!strings.Contains(err.Error(), "Delete EtcdBackups") {
		t.Errorf("a full etcd: got %v, want StorageFull with its remedy", err)
	}
	if err := (retryableStorage{Interface: failing{}}).Create(t.Context(), "/a", nil, nil, 0); err != nil {
		t.Errorf("a write that succeeds: %v", err)
	}
}

// TestMissingObjectIsConfirmed: garbage collection deletes the pods of an EtcdCluster that is not found. So the storage
// must be the one that had the objects.
func TestMissingObjectIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		confirm func(context.Context) error
		missing bool
	}{
		"storage of the start":       {storage.NewKeyNotFoundError("/a", 0), func(context.Context) error { return nil }, true},
		"another storage":            {storage.NewKeyNotFoundError("/a", 0), func(context.Context) error { return errors.New("replaced") }, false},
		"storage without a guard":    {storage.NewKeyNotFoundError("/a", 0), nil, true},
		"storage that has no leader": {rpctypes.ErrNoLeader, func(context.Context) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := retryableStorage{Interface: failing{err: test.err}, confirm: test.confirm}.Get(t.Context(), "/a", storage.GetOptions{}, nil)
			if missing := storage.IsNotFound(err); missing != test.missing || !missing && !storage.IsUnreachable(err) {
				t.Errorf("got %v, want that it is not found: %t, or else that the storage is not available", err, test.missing)
			}
		})
	}
}

// getter returns a storage.
type getter struct{ storage.Interface }

func (g getter) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{Decorator: func(
		*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
		storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		return g.Interface, func() {}, nil
	}}, nil
}

// TestDecorator: the storages of a getter are those that are tried again.
func TestDecorator(t *testing.T) {
	t.Parallel()
	options, err := RetryUnavailable(getter{failing{err: rpctypes.ErrNoLeader}}, nil).GetRESTOptions(schema.GroupResource{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := options.Decorator(nil, "", nil, nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Create(t.Context(), "/a", nil, nil, 0); !storage.IsUnreachable(err) {
		t.Errorf("got %v, want that the storage is unreachable", err)
	}
}
