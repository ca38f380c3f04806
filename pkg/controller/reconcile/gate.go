// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// GateRetry bounds the wait for the event of an own write, in case the event was missed.
const GateRetry = time.Second

// ScopeRetry is when an object of another controller is looked at again: that controller may leave it.
const ScopeRetry = time.Minute

// CacheGate holds a key back until the caches show the last write for it. It compares
// resource versions, so it counts nothing and nothing expires. KEP-5647 describes the idea.
type CacheGate struct {
	// shown returns the newest resource version that the cache of a kind of object holds.
	shown map[string]func() string

	mu      sync.Mutex
	written map[types.NamespacedName]map[string]string
	// newest holds the newest resource version that each cache has ever shown.
	newest map[string]string
}

var _ Gate = &CacheGate{}

// NewGate returns a gate over caches, keyed by KindOf an object.
func NewGate(shown map[string]func() string) *CacheGate {
	return &CacheGate{shown: shown, written: map[types.NamespacedName]map[string]string{}, newest: map[string]string{}}
}

// KindOf names the kind of an object for NewGate.
func KindOf(object metav1.Object) string { return fmt.Sprintf("%T", object) }

// Note implements Gate.
func (g *CacheGate) Note(key types.NamespacedName, object metav1.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byKind := g.written[key]
	if byKind == nil {
		byKind = map[string]string{}
		g.written[key] = byKind
	}
	kind, rv := KindOf(object), object.GetResourceVersion()
	if isOlder(byKind[kind], rv) {
		byKind[kind] = rv
	}
}

// IsReady implements Gate.
func (g *CacheGate) IsReady(key types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetRolledBack()
	byKind := g.written[key]
	for kind, rv := range byKind {
		if shown, known := g.shown[kind]; known && isOlder(shown(), rv) {
			return false
		}
		delete(byKind, kind)
	}
	delete(g.written, key)
	return true
}

// forgetRolledBack drops the writes of kinds whose cache shows an older version than before:
// their API was restored from a backup. The versions that were noted never come, or belong
// to other writes when they do.
func (g *CacheGate) forgetRolledBack() {
	for kind, shown := range g.shown {
		now := shown()
		if now != "" && isOlder(now, g.newest[kind]) {
			for _, byKind := range g.written {
				delete(byKind, kind)
			}
		}
		g.newest[kind] = now
	}
}

// Compare implements Gate. A cache that was behind when the API was restored may never show an older
// version than before, so forgetRolledBack does not notice.
func (g *CacheGate) Compare(key types.NamespacedName, live metav1.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kind := KindOf(live)
	if rv, noted := g.written[key][kind]; noted && isOlder(live.GetResourceVersion(), rv) {
		delete(g.written[key], kind)
	}
}

// Forget implements Gate.
func (g *CacheGate) Forget(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.written, key)
}

// isOlder is true if a is empty or an older resource version than b. A version that cannot
// be compared holds nothing back.
func isOlder(a, b string) bool {
	if a == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
