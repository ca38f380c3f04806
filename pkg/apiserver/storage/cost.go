// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// amount is how much is stored.
type amount struct {
	bytes   int64
	objects int
}

// cost is what a write costs its namespace.
type cost struct {
	// writes is what etcd gets: the object now, and once more for each finalizer, whose removal writes the object again.
	// That is paid for when the finalizer is added, or the object grows, so that a namespace without a budget can
	// remove finalizers, and so delete its objects.
	writes int64
	// owes is the part of writes for the finalizers that this write adds.
	owes int64
	// grows is by how much what is stored grows.
	grows amount
}

// measured is what the cost of a write depends on.
type measured struct{ bytes, finalizers int64 }

func measure(obj runtime.Object) *measured {
	m := measured{bytes: sizeOf(obj)}
	if accessor, err := meta.Accessor(obj); err == nil {
		m.finalizers = int64(len(accessor.GetFinalizers()))
	}
	return &m
}

// costOf returns the cost of writing obj in place of an object with these measures; nil for a new object.
func costOf(was *measured, obj runtime.Object) cost {
	now, grows := measure(obj), amount{}
	if was == nil {
		was, grows.objects = &measured{}, 1
	}
	grows.bytes = now.bytes - was.bytes
	owes := now.bytes*now.finalizers - was.bytes*was.finalizers
	return cost{writes: max(now.bytes+owes, 0), owes: owes, grows: grows}
}

const (
	// smallDeleting is the size up to which an object that is being deleted may grow.
	smallDeleting = 16 << 10
	// removalGrowth is by how much the removal of a finalizer may grow a larger one: the managed fields name the client.
	removalGrowth = 4 << 10
)

// mayGrow is true for a write of an object that is being deleted whose growth is free. What removes its finalizers must not
// be rejected. No finalizer is added to such an object, so that this happens a few times only.
func mayGrow(was, now *measured) bool {
	return now.bytes <= smallDeleting || now.finalizers < was.finalizers && now.bytes-was.bytes <= removalGrowth
}

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

// sizeOf returns the size of an object in protobuf.
func sizeOf(obj runtime.Object) int64 {
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	return 0
}

var errNoList = errors.New("the storage returned no list")

// amountOfList returns what is stored below a prefix, as the watch cache knows it.
func amountOfList(ctx context.Context, from storage.Interface, prefix string, list runtime.Object) (amount, error) {
	options := storage.ListOptions{ResourceVersion: "0", Predicate: storage.Everything, Recursive: true}
	if err := from.GetList(ctx, prefix, options, list); err != nil {
		return amount{}, err
	}
	sized, ok := list.(interface{ Size() int })
	if !ok {
		return amount{}, errNoList
	}
	return amount{bytes: int64(sized.Size()), objects: meta.LenList(list)}, nil
}
