// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// refillTime is how long an empty budget takes to be full again: 64 KiB a second for the default.
	// In the five minutes between two compactions, one namespace writes little more than two budgets.
	refillTime = 256 * time.Second
	// storedBudgets is how many budgets the objects of one kind in a namespace may take in the storage.
	storedBudgets = 4
)

// The flags with which an administrator changes or lifts the limits, and the verbs of the rights to exceed them.
const (
	BudgetFlag  = "--namespace-write-budget"
	ObjectsFlag = "--namespace-object-limit"
	// ExceedVerb lifts all limits.
	ExceedVerb = "exceed"
	// ExceedRateVerb lifts those on writes, and leaves those on what a namespace stores. The controller has it: it creates
	// what tenants ask for, such as the EtcdCluster of a restore, and must not wait for what they write.
	ExceedRateVerb = "exceed-rate"
)

// Budget bounds what is written into the storage that all namespaces share, and what the controller then has to look
// after. etcd keeps each version of an object until it is compacted, and rejects the writes of all namespaces when it is
// full.
type Budget struct {
	// Bytes is how much a namespace may write at once. 0 means no limit.
	Bytes int64
	// Objects is how many objects of one kind a namespace may have. 0 means no limit.
	Objects int
	// MayExceed is true if the user of the request has the right of a verb to write beyond the limits. The storage calls it
	// only where a limit would reject the write.
	MayExceed func(ctx context.Context, resource schema.GroupResource, verb string) bool
	Clock     clock.PassiveClock
}

// LimitWrites makes the storages of a getter reject writes of a namespace beyond its budget. The storages share
// the budget.
func LimitWrites(getter generic.RESTOptionsGetter, budget Budget) generic.RESTOptionsGetter {
	if budget.Bytes == 0 && budget.Objects == 0 {
		return getter
	}
	writes := share.NewBuckets(budget.Bytes, refillTime, budget.Clock)
	return wrappingGetter{RESTOptionsGetter: getter, wrap: func(resource schema.GroupResource, inner storage.Interface, newList func() runtime.Object) storage.Interface {
		return &budgetedStorage{
			Interface: inner, budget: budget, resource: resource, writes: writes,
			stored: newStoredAmounts(budget.Clock, func(ctx context.Context, prefix string) (amount, error) {
				return amountOfList(ctx, inner, prefix, newList())
			}),
		}
	}}
}

// budgetedStorage counts what it writes. Deletions are never counted nor rejected: they are the way out of a full
// storage.
type budgetedStorage struct {
	storage.Interface

	budget   Budget
	resource schema.GroupResource
	writes   *share.Buckets
	stored   *storedAmounts
}

// Create implements storage.Interface.
func (s *budgetedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if !s.counts(ctx) {
		return s.Interface.Create(ctx, key, obj, out, ttl)
	}
	taken, err := s.take(ctx, key, costOf(nil, obj))
	if err != nil {
		return err
	}
	err = s.Interface.Create(ctx, key, obj, out, ttl)
	if storage.IsExist(err) {
		s.giveBack(ctx, key, taken)
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
	var taken cost
	var before uint64
	counted := func(input runtime.Object, state storage.ResponseMeta) (runtime.Object, *uint64, error) {
		// The previous attempt has met another writer.
		s.giveBack(ctx, key, taken)
		taken, before = cost{}, state.ResourceVersion
		was, deleting := measure(input), isDeleting(input)
		obj, ttl, err := update(input, state)
		if err != nil || !deleting && isDeleteRequest(ctx) {
			return obj, ttl, err
		}
		c := costOf(was, obj)
		if deleting && mayGrow(was, measure(obj)) {
			c.grows = amount{}
		}
		taken, err = s.take(ctx, key, c)
		return obj, ttl, err
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, counted, cached)
	if accessor, accessErr := meta.Accessor(out); err == nil && accessErr == nil && accessor.GetResourceVersion() == strconv.FormatUint(before, 10) {
		s.giveBack(ctx, key, taken)
	}
	return err
}

// counts is false for a status. The right to write one is that of controllers, and a status that is not written hides
// what is wrong. The controller bounds by itself what it writes into the statuses of a namespace.
func (s *budgetedStorage) counts(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.Subresource != "status"
}

// take counts a write, or rejects it. The write of a user that may exceed the limits is counted only where it fits.
func (s *budgetedStorage) take(ctx context.Context, key string, c cost) (taken cost, err error) {
	namespace := request.NamespaceValue(ctx)
	if err = s.rejectSize(ctx, namespace, key, c); err == nil {
		if err = s.rejectRate(namespace, c); err == nil {
			return c, nil
		}
		s.stored.shrink(prefixOf(key), c.grows)
	}
	if s.budget.MayExceed(ctx, s.resource, ExceedVerb) || !creates(err, c) && s.budget.MayExceed(ctx, s.resource, ExceedRateVerb) {
		err = nil
	}
	return cost{}, err
}

// creates is true for a new object that the limits on what a namespace stores have rejected.
func creates(rejected error, c cost) bool {
	return apierrors.IsForbidden(rejected) && c.grows.objects > 0
}

// giveBack undoes take for what was not written.
func (s *budgetedStorage) giveBack(ctx context.Context, key string, c cost) {
	s.writes.GiveBack(request.NamespaceValue(ctx), c.writes)
	s.stored.shrink(prefixOf(key), c.grows)
}

// rejectSize counts by how much a write makes the objects of the namespace grow, or rejects it.
func (s *budgetedStorage) rejectSize(ctx context.Context, namespace, key string, c cost) error {
	most := amount{bytes: s.budget.Bytes * storedBudgets, objects: s.budget.Objects}
	excess := tooManyFinalizers
	if s.budget.Bytes == 0 || c.owes <= s.budget.Bytes {
		excess = s.stored.grow(ctx, prefixOf(key), c.grows, most)
	}
	var why string
	switch excess {
	case fits:
		return nil
	case tooManyObjects:
		why = fmt.Sprintf("namespace %s has %d %s, which is the limit for one namespace; delete those that are not needed%s. An administrator sets %s of the API server, and 0 lifts the limit",
			namespace, most.objects, s.resource.Resource, lessOften[s.resource.Resource], ObjectsFlag)
	case tooManyBytes:
		why = fmt.Sprintf("the %s in namespace %s have more than %s in the storage, which all namespaces share; delete objects, or make them smaller. "+
			"An administrator sets %s of the API server; the limit is %d times its value, and 0 lifts it", s.resource.Resource, namespace, inUnits(most.bytes), BudgetFlag, storedBudgets)
	case tooManyFinalizers:
		why = fmt.Sprintf("the removal of its finalizers, one by one, writes %s to the storage, which all namespaces share, and a namespace may write %s; set fewer finalizers. "+
			"An administrator sets %s of the API server; 0 lifts the limit", inUnits(c.owes), inUnits(s.budget.Bytes), BudgetFlag)
	}
	return apierrors.NewForbidden(s.resource, path.Base(key), fmt.Errorf("%s; %s", why, s.exempt()))
}

// rejectRate counts what a write makes etcd store, or rejects it.
func (s *budgetedStorage) rejectRate(namespace string, c cost) error {
	wait := s.writes.Take(namespace, c.writes)
	if wait == 0 {
		return nil
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	return apierrors.NewTooManyRequests(fmt.Sprintf(
		"namespace %s has written %s to the storage, which all namespaces share, faster than %s a second; send the request again in %d s, and write less often. "+
			"An administrator sets %s of the API server, and 0 lifts the limit; %s", namespace, inUnits(s.budget.Bytes),
		inUnits(s.budget.Bytes/int64(refillTime/time.Second)), seconds, BudgetFlag, s.exempt()), seconds)
}

// lessOften says how a namespace gets fewer objects of a kind.
var lessOften = map[string]string{
	"etcdbackups": ", or have the controller do it: spec.backup.ttl of the EtcdCluster counts for EtcdBackups from then on, and spec.ttl of an EtcdBackup for that one",
}

// exempt says which right lifts the limits for a user.
func (s *budgetedStorage) exempt() string {
	return fmt.Sprintf("the limit does not hold for a user with the right %s %s (%s) in all namespaces, as the ClusterRole etcd-operator:exceed gives it to one that has not every verb",
		ExceedVerb, s.resource.Resource, s.resource.Group)
}

// prefixOf returns the prefix of the objects of one kind in a namespace.
func prefixOf(key string) string { return path.Dir(key) + "/" }

func inUnits(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }
