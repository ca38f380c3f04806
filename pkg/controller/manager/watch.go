// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/controller/kubeadapter"
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

// feedCordons makes a node that is cordoned or uncordoned wake a loop for the clusters with pods
// on it. pods must have the indices of kubeadapter.PodIndices.
func feedCordons(l *loop.Loop, cordons *kubeadapter.Cordons, pods cache.Indexer) error {
	err := cordons.Notify(func(node string) {
		found, err := kubeadapter.PodsOn(pods, node)
		if err != nil {
			klog.Background().Error(err, "Cannot find the pods of a node that was cordoned or uncordoned", "node", node)
			return
		}
		for _, pod := range found {
			if key, member := keyOfMemberObject(pod); member {
				l.Enqueue(key)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("watch cordoned nodes: %w", err)
	}
	return nil
}
