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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// failing is a storage whose requests end with the error.
type failing struct {
	storage.Interface
	err    error
	events watch.Interface
}

func (f failing) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return f.err
}

func (f failing) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return f.events, f.err
}

func (f failing) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return f.err
}

func (f failing) Delete(
	context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object, storage.DeleteOptions,
) error {
	return f.err
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

// fakeGuard has two results of a read: that of now, and that of a moment ago.
type fakeGuard struct{ now, recent error }

func (g fakeGuard) Check(context.Context) error       { return g.now }
func (g fakeGuard) CheckRecent(context.Context) error { return g.recent }

// TestResponsesAreConfirmed: garbage collection deletes the pods of an EtcdCluster that is not found, that a list or a
// watch lacks, or that has another UID. So the storage must be the one that had the objects.
func TestResponsesAreConfirmed(t *testing.T) {
	t.Parallel()
	missing, replaced := storage.NewKeyNotFoundError("/a", 0), errors.New("replaced")
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "etcdclusters"}, "a") // what an update returns
	for name, test := range map[string]struct {
		err   error
		guard Guard
		want  func(error) bool
	}{
		"storage of the start":                           {nil, fakeGuard{}, isNil},
		"another storage":                                {nil, fakeGuard{now: replaced, recent: replaced}, storage.IsUnreachable},
		"storage that had the mark a moment ago":         {nil, fakeGuard{now: replaced}, isNil},
		"storage without a guard":                        {nil, nil, isNil},
		"missing object, storage of the start":           {missing, fakeGuard{}, storage.IsNotFound},
		"missing object, another storage":                {missing, fakeGuard{now: replaced, recent: replaced}, storage.IsUnreachable},
		"missing object, another storage since a moment": {missing, fakeGuard{now: replaced}, storage.IsUnreachable},
		"missing object, storage without a guard":        {missing, nil, storage.IsNotFound},
		"update of a missing object":                     {absent, fakeGuard{}, apierrors.IsNotFound},
		"update of a missing object, another storage":    {absent, fakeGuard{now: replaced}, storage.IsUnreachable},
		"storage that has no leader":                     {rpctypes.ErrNoLeader, fakeGuard{}, storage.IsUnreachable},
		"object that exists in another storage":          {storage.NewKeyExistsError("/a", 0), fakeGuard{now: replaced, recent: replaced}, storage.IsExist},
	} {
		s := retryableStorage{Interface: failing{err: test.err}, guard: test.guard}
		for verb, request := range map[string]func() error{
			"create": func() error { return s.Create(t.Context(), "/a", nil, nil, 0) },
			"get":    func() error { return s.Get(t.Context(), "/a", storage.GetOptions{}, nil) },
			"list":   func() error { return s.GetList(t.Context(), "/a", storage.ListOptions{}, nil) },
			"update": func() error { return s.GuaranteedUpdate(t.Context(), "/a", nil, true, nil, nil, nil) },
			"delete": func() error { return s.Delete(t.Context(), "/a", nil, nil, nil, nil, storage.DeleteOptions{}) },
		} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				t.Parallel()
				if err := request(); !test.want(err) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestWatchIsConfirmed: a watch begins only in the storage of the start. Client libraries watch again after the status
// 429, and after others they list.
func TestWatchIsConfirmed(t *testing.T) {
	t.Parallel()
	errWatch := errors.New("no watch")
	for name, test := range map[string]struct {
		err   error
		guard Guard
		want  func(error) bool
		// stops is true if the watch that has begun ends.
		stops bool
	}{
		"storage of the start":    {nil, fakeGuard{}, isNil, false},
		"storage without a guard": {nil, nil, isNil, false},
		"another storage":         {nil, fakeGuard{recent: errors.New("replaced")}, apierrors.IsTooManyRequests, true},
		"watch that fails":        {errWatch, fakeGuard{}, func(err error) bool { return errors.Is(err, errWatch) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := watch.NewFake()
			_, err := retryableStorage{Interface: failing{err: test.err, events: begun}, guard: test.guard}.Watch(t.Context(), "/a", storage.ListOptions{})
			if !test.want(err) || begun.IsStopped() != test.stops {
				t.Errorf("got %v, ended %t, want %t", err, begun.IsStopped(), test.stops)
			}
			if seconds, again := apierrors.SuggestsClientDelay(err); test.stops && (!again || seconds != 1) {
				t.Errorf("to be tried again: %t, after %d s, want after 1 s", again, seconds)
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

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
