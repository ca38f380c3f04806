// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

const (
	// writtenBytes is how many bytes of objects of this group the controller writes at once for a namespace, statuses
	// above all. It is four times what the users of a namespace may write, so that a namespace of many clusters reaches
	// it only if something there changes without end.
	writtenBytes = 64 << 20
	// writtenRefill is how long it takes until so many bytes may be written again: 256 KiB a second.
	writtenRefill = 256 * time.Second
)

// NewWrites returns what bounds the writes of the controller for each namespace. They follow from what tenants do: a member that
// they run may report other values with each response, and what the controller sets they may take away again. Neither must
// fill the storage of all namespaces.
func NewWrites(c clock.PassiveClock) *share.Buckets {
	return share.NewBuckets(writtenBytes, writtenRefill, c)
}

// sized is an object whose size in the storage is known.
type sized interface {
	metav1.Object
	Size() int
}

// bounded writes an object unless its namespace has used what may be written for it. The error says when it is possible
// again. A request that failed is not counted. The removal of a finalizer from an object that is being deleted is not
// bounded, because it makes room.
func bounded[T any](c Client, object sized, write func() (T, error)) (T, error) {
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		return write()
	}
	namespace, bytes := object.GetNamespace(), int64(object.Size())
	if wait := c.Writes.Take(namespace, bytes); wait > 0 {
		metrics.WriteBounded(namespace)
		var none T
		return none, fmt.Errorf("the controller wrote %d MiB and more than %d KiB a second for the objects in namespace %s, which is the limit for a namespace; "+
			"it writes again in %v. Look there for a member that reports other values with each response, or a program that undoes what the controller sets",
			writtenBytes>>20, writtenBytes>>10/int(writtenRefill/time.Second), namespace, wait.Round(time.Second))
	}
	written, err := write()
	if err != nil {
		c.Writes.GiveBack(namespace, bytes)
	}
	return written, err
}
