// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Gate holds a key back until the caches show what was last written for it. It
// compares resource versions, so nothing is counted and nothing expires; the idea
// is that of KEP-5647.
type Gate struct {
	// seen returns the newest resource version that the cache of a kind of object has
	// taken in.
	seen map[string]func() string

	mu      sync.Mutex
	written map[types.NamespacedName]map[string]string
	// newest holds the newest resource version that each cache was seen to have.
	newest map[string]string
}

// NewGate returns a gate over caches, keyed by KindOf an object.
func NewGate(seen map[string]func() string) *Gate {
	return &Gate{seen: seen, written: map[types.NamespacedName]map[string]string{}, newest: map[string]string{}}
}

// KindOf names the kind of an object for NewGate.
func KindOf(object metav1.Object) string { return fmt.Sprintf("%T", object) }

// Note remembers that object was written for key.
func (g *Gate) Note(key types.NamespacedName, object metav1.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byKind := g.written[key]
	if byKind == nil {
		byKind = map[string]string{}
		g.written[key] = byKind
	}
	kind, rv := KindOf(object), object.GetResourceVersion()
	if older(byKind[kind], rv) {
		byKind[kind] = rv
	}
}

// Ready is true if the caches show everything that was noted for key.
func (g *Gate) Ready(key types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.goBack()
	byKind := g.written[key]
	for kind, rv := range byKind {
		if seen, known := g.seen[kind]; known && older(seen(), rv) {
			return false
		}
		delete(byKind, kind)
	}
	delete(g.written, key)
	return true
}

// goBack forgets what was written of kinds whose cache shows an earlier time than before.
// Their API was restored from a backup: the versions that were noted never come, or mean
// something else when they do.
func (g *Gate) goBack() {
	for kind, seen := range g.seen {
		now := seen()
		if now != "" && older(now, g.newest[kind]) {
			for _, byKind := range g.written {
				delete(byKind, kind)
			}
		}
		g.newest[kind] = now
	}
}

// Forget drops what was noted for key.
func (g *Gate) Forget(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.written, key)
}

// older is true if a is an older resource version than b, or none at all. One that
// cannot be compared holds nothing back.
func older(a, b string) bool {
	if a == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
