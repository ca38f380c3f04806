// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
)

const (
	// refillTime is how long an empty budget takes to be full again: 64 KiB a second for the default.
	// In the five minutes between two compactions, one namespace writes little more than two budgets.
	refillTime = 256 * time.Second
	// storedBudgets is how many budgets the objects of one kind in a namespace may take in the storage.
	storedBudgets = 4
)

// BudgetFlag is the flag with which an administrator changes or lifts the budget.
const BudgetFlag = "--namespace-write-budget"

// Budget bounds what users write into the storage that all namespaces share. etcd keeps each version of an
// object until it is compacted, and rejects the writes of all namespaces when it is full.
type Budget struct {
	// Bytes is how much a namespace may write at once. 0 means no limit.
	Bytes int64
	// OperatorNamespace has the service accounts of the operator, whose writes are not counted: they follow from
	// counted writes, and a status that is not written hides what is wrong.
	OperatorNamespace string
	Clock             clock.PassiveClock
}

// LimitWrites makes the storages of a getter reject writes of a namespace beyond its budget. The storages share
// the budget.
func LimitWrites(getter generic.RESTOptionsGetter, budget Budget) generic.RESTOptionsGetter {
	if budget.Bytes == 0 {
		return getter
	}
	writes := newBuckets(budget.Bytes, budget.Clock)
	return wrappingGetter{RESTOptionsGetter: getter, wrap: func(inner storage.Interface, newList func() runtime.Object) storage.Interface {
		return &budgetedStorage{
			Interface: inner, budget: budget, writes: writes,
			stored: newStoredSizes(budget.Clock, func(ctx context.Context, prefix string) (int64, error) {
				return sizeOfList(ctx, inner, prefix, newList())
			}),
		}
	}}
}

// budgetedStorage counts what it writes. Deletions are never counted nor rejected: they are the way out of a full
// storage.
type budgetedStorage struct {
	storage.Interface
	budget Budget
	writes *buckets
	stored *storedSizes
}

// Create implements storage.Interface.
func (s *budgetedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if !s.counts(ctx) {
		return s.Interface.Create(ctx, key, obj, out, ttl)
	}
	namespace, size := request.NamespaceValue(ctx), sizeOf(obj)
	if err := s.take(ctx, namespace, key, size, size); err != nil {
		return err
	}
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if storage.IsExist(err) {
		s.writes.giveBack(namespace, size)
	}
	return err
}

// GuaranteedUpdate implements storage.Interface. A write that changes nothing is not counted, because etcd does not get it.
// One whose outcome is not known is: the client decides when it stops to wait.
func (s *budgetedStorage) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	if !s.counts(ctx) {
		return s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached)
	}
	namespace := request.NamespaceValue(ctx)
	var taken int64
	var before uint64
	counted := func(input runtime.Object, state storage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The previous attempt has met another writer.
		s.writes.giveBack(namespace, taken)
		taken, before = 0, state.ResourceVersion
		size, deleting, finalizers := sizeOf(input), isDeleting(input), countFinalizers(input)
		obj, ttl, err := update(input, state)
		begins := !deleting && isDeleteRequest(ctx)
		if err != nil || begins || deleting && finalizers <= freeFinalizers && countFinalizers(obj) < finalizers {
			return obj, ttl, err
		}
		if err := s.take(ctx, namespace, key, sizeOf(obj), sizeOf(obj)-size); err != nil {
			return nil, nil, err
		}
		taken = sizeOf(obj)
		return obj, ttl, nil
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, counted, cached)
	if accessor, accessErr := meta.Accessor(out); err == nil && accessErr == nil && accessor.GetResourceVersion() == strconv.FormatUint(before, 10) {
		s.writes.giveBack(namespace, taken)
	}
	return err
}

// counts is true for a write of a user. The right to write a status is that of controllers, and members of
// system:masters are administrators.
func (s *budgetedStorage) counts(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || info.Subresource == "status" {
		return false
	}
	by, ok := request.UserFrom(ctx)
	return !ok || !slices.ContainsFunc(by.GetGroups(), func(group string) bool {
		return group == user.SystemPrivilegedGroup || group == serviceaccount.MakeNamespaceGroupName(s.budget.OperatorNamespace)
	})
}

// take counts a write of size bytes by which what is stored grows, or rejects it.
func (s *budgetedStorage) take(ctx context.Context, namespace, key string, size, growth int64) error {
	limit := s.budget.Bytes * storedBudgets
	if growth > 0 && !s.stored.grow(ctx, path.Dir(key)+"/", growth, limit) {
		return apierrors.NewForbidden(resourceOf(ctx), path.Base(key), fmt.Errorf(
			"the objects of this kind in namespace %s have more than %s in the storage, which all namespaces share; delete objects, or make them smaller. "+
				"An administrator sets %s of the API server; the limit is %d times its value, and 0 lifts it", namespace, inUnits(limit), BudgetFlag, storedBudgets))
	}
	if wait := s.writes.take(namespace, size); wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		return apierrors.NewTooManyRequests(fmt.Sprintf(
			"namespace %s has written %s to the storage, which all namespaces share, faster than %s a second; send the request again in %d s, and write less often. "+
				"An administrator sets %s of the API server; 0 lifts the limit", namespace, inUnits(s.budget.Bytes),
			inUnits(s.budget.Bytes/int64(refillTime/time.Second)), seconds, BudgetFlag), seconds)
	}
	return nil
}

func resourceOf(ctx context.Context) schema.GroupResource {
	info, _ := request.RequestInfoFrom(ctx)
	if info == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}

func inUnits(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// freeFinalizers is how many finalizers an object that is being deleted has at most while a user removes them without a
// budget: one of the user and those of Kubernetes. Each removal writes the whole object.
const freeFinalizers = 3

// isDeleteRequest is true for a request to delete objects. Its first write of an object is free. Each further one
// exchanges how Kubernetes treats the dependents of an object that is being deleted, and writes the whole object.
func isDeleteRequest(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && strings.HasPrefix(info.Verb, "delete")
}

func isDeleting(obj runtime.Object) bool {
	accessor, err := meta.Accessor(obj)
	return err == nil && accessor.GetDeletionTimestamp() != nil
}

func countFinalizers(obj runtime.Object) int {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	return len(accessor.GetFinalizers())
}

// sizeOf returns the size of an object in protobuf.
func sizeOf(obj runtime.Object) int64 {
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	return 0
}

var errNoList = errors.New("the storage returned no list")

// sizeOfList returns the size of what is stored below a prefix, as the watch cache knows it.
func sizeOfList(ctx context.Context, from storage.Interface, prefix string, list runtime.Object) (int64, error) {
	options := storage.ListOptions{ResourceVersion: "0", Predicate: storage.Everything, Recursive: true}
	if err := from.GetList(ctx, prefix, options, list); err != nil {
		return 0, err
	}
	sized, ok := list.(interface{ Size() int })
	if !ok {
		return 0, errNoList
	}
	return int64(sized.Size()), nil
}
