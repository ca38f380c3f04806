// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// evictAgain is how often a person who drains a node asks for the evictions that were rejected.
const evictAgain = 5 * time.Second

// Cordon has a node take no more pods, or takes that back. Each controller hears of it later.
func (w *World) Cordon(n *Node, cordoned bool) {
	if n.Cordoned == cordoned {
		return
	}
	n.Cordoned = cordoned
	for _, c := range w.Caches {
		w.After(w.Dice.Between(time.Millisecond, 2*time.Second), func() { c.hearOfCordon(n) })
	}
}

func (c *Cache) hearOfCordon(n *Node) {
	if c.Closed || c.cordoned[n.name] == n.Cordoned {
		return
	}
	c.cordoned[n.name] = n.Cordoned
	if c.Changed != nil {
		c.Changed()
	}
}

// IsCordoned implements cluster.Cache.
func (c *Cache) IsCordoned(node string) bool { return c.cordoned[node] }

// Drain cordons a node and asks for the eviction of each pod on it that may go, again and again
// until none is left or the node is uncordoned.
func (w *World) Drain(n *Node, mayGo func(*corev1.Pod) bool) {
	w.Cordon(n, true)
	w.evictAll(n, mayGo)
}

func (w *World) evictAll(n *Node, mayGo func(*corev1.Pod) bool) {
	if !n.Cordoned || n.Lost {
		return
	}
	left := false
	w.EachPodOn(n, func(pod *corev1.Pod) {
		left = true
		if pod.DeletionTimestamp == nil && mayGo(pod) {
			w.Evict(pod)
		}
	})
	if left {
		w.After(evictAgain, func() { w.evictAll(n, mayGo) })
	}
}
