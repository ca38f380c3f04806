// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
)

// watch is a kind of object that a controller looks at.
type watch struct {
	informer cache.SharedIndexInformer
	// written is an object of that kind if the controller writes such; it then waits until
	// it sees what it has written.
	written metav1.Object
	// keyOf names the object that is to be looked at when one of these changes.
	keyOf func(metav1.Object) (types.NamespacedName, bool)
}

// gateOf returns the gate over what is written of list.
func gateOf(list []watch) *reconcile.CacheGate {
	seen := map[string]func() string{}
	for _, w := range list {
		if w.written != nil {
			seen[reconcile.KindOf(w.written)] = w.informer.GetStore().LastStoreSyncResourceVersion
		}
	}
	return reconcile.NewGate(seen)
}

// feed makes the informers of list wake a loop.
func feed(l *loop.Loop, list []watch) error {
	for _, w := range list {
		if err := l.Feed(w.informer, w.keyOf); err != nil {
			return err
		}
	}
	return nil
}
