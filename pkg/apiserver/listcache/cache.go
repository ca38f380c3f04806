// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package listcache

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// unusedAfter is how long an encoding stays that no list has used.
	unusedAfter = 5 * time.Minute
	// shrinkPeriod is how often the limit is adjusted and what is unused is removed.
	shrinkPeriod = 10 * time.Second
)

// encoding is one object in one format.
type encoding struct {
	version string
	// fields are the managed fields of the object that was encoded. They identify it: see find.
	fields []metav1.ManagedFieldsEntry
	data   []byte
	// used is when a list last used the encoding, in nanoseconds since 1970.
	used atomic.Int64
}

// cache holds at most one encoding of each object, within the space of all formats.
type cache struct {
	space *space

	mu      sync.RWMutex
	entries map[types.UID]*encoding
}

func newCache(space *space) *cache {
	return &cache{space: space, entries: map[types.UID]*encoding{}}
}

// find returns the encoding of the object; nil if there is none.
//
// UID and resource version are not enough: after a restore of the storage, an object may have a
// version again that it had before, with another content. So the object must also be the same in
// memory. The lists of a watch cache are copies that share the managed fields with the object in
// the cache, which never changes. An encoding keeps the managed fields, so that no other object
// gets their address.
func (c *cache) find(object metav1.Object, now time.Time) []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found := c.entries[object.GetUID()]
	if found == nil || found.version != object.GetResourceVersion() || !isSame(found.fields, object.GetManagedFields()) {
		return nil
	}
	found.used.Store(now.UnixNano())
	return found.data
}

// isUseful is true if there is space for half of the items of a list and of the pages that
// follow it. All items are estimated by the size of one. Otherwise the next list would find few of
// the encodings, for all of the memory.
func (c *cache) isUseful(items items, size int) bool {
	return (int64(len(items.objects))+items.following)*int64(size) <= 2*c.space.limit.Load()
}

// isSame is true if both are the same slice. An empty one has no address.
func isSame(a, b []metav1.ManagedFieldsEntry) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// put remembers the encoding of an object, if there is space for it.
func (c *cache) put(object metav1.Object, data []byte, now time.Time) {
	fields := object.GetManagedFields()
	if object.GetUID() == "" || object.GetResourceVersion() == "" || len(fields) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.entries[object.GetUID()]; before != nil {
		c.remove(object.GetUID(), before)
	}
	if !c.space.take(len(data)) {
		return
	}
	made := &encoding{version: object.GetResourceVersion(), fields: fields, data: data}
	made.used.Store(now.UnixNano())
	c.entries[object.GetUID()] = made
}

// shrink removes what no list has used for some time, and as much more as the space is exceeded.
func (c *cache) shrink(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, e := range c.entries {
		if now.Sub(time.Unix(0, e.used.Load())) > unusedAfter || c.space.excess() > 0 {
			c.remove(uid, e)
		}
	}
}

func (c *cache) remove(uid types.UID, e *encoding) {
	c.space.free(len(e.data))
	delete(c.entries, uid)
}
