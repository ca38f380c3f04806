// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

const (
	// backoffFirst is the wait after the second failure for the same reason; each further
	// failure doubles it. The first failure is followed by another attempt at once.
	backoffFirst = 500 * time.Millisecond
	// backoffMax is the longest wait. No event tells that a quota was raised or a policy was
	// changed, so it is also the longest delay after such a change.
	backoffMax = 5 * time.Second
	// backoffReset is how long after a failure the next one counts as the first again.
	backoffReset = time.Minute
)

// CreationBackoff delays the creation of pods and PVCs of a cluster after failures, by
// cluster and reason. It is safe for concurrent use; the zero value is ready.
type CreationBackoff struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]*clusterFailures
}

type clusterFailures struct {
	// name of the next pod. It stays the same while Kubernetes rejects the pod, so that the
	// messages of Kubernetes, which contain the name, stay the same.
	name string
	// failedPod is the UID of the last pod that failed as a whole.
	failedPod string
	reasons   map[string]*failure
}

type failure struct {
	err         error
	count       int
	last, until time.Time
}

// of returns the failures of a cluster. The caller holds the lock.
func (b *CreationBackoff) of(key types.NamespacedName) *clusterFailures {
	if b.clusters == nil {
		b.clusters = map[types.NamespacedName]*clusterFailures{}
	}
	if b.clusters[key] == nil {
		b.clusters[key] = &clusterFailures{reasons: map[string]*failure{}}
	}
	return b.clusters[key]
}

// PodName returns the name for the next pod of a cluster: fresh, unless a name is left from
// a pod that was rejected.
func (b *CreationBackoff) PodName(key types.NamespacedName, fresh string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clusters[key]; c != nil && c.name != "" {
		return c.name
	}
	return fresh
}

// Failed records that a creation failed with err for reason at now. It returns true for the
// first failure in a while. Unused is the name of a pod that was rejected; it is empty if the
// name may have been used.
func (b *CreationBackoff) Failed(key types.NamespacedName, now time.Time, reason, unused string, err error) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of(key)
	c.name = unused
	for name, old := range c.reasons {
		if apiclock.IsOver(old.last, now, backoffReset) {
			delete(c.reasons, name)
		}
	}
	entry := c.reasons[reason]
	if entry == nil {
		entry = &failure{}
		c.reasons[reason] = entry
	}
	entry.count++
	entry.err, entry.last, entry.until = err, now, now.Add(delay(entry.count))
	return entry.count == 1
}

// PodFailed records a pod that failed as a whole. It counts each pod once.
func (b *CreationBackoff) PodFailed(key types.NamespacedName, now time.Time, uid string, err error) (first bool) {
	b.mu.Lock()
	c := b.of(key)
	known := c.failedPod == uid
	c.failedPod = uid
	b.mu.Unlock()
	return !known && b.Failed(key, now, "failed", "", err)
}

// delay is how long to wait after the nth failure.
func delay(n int) time.Duration {
	if n < 2 {
		return 0
	}
	return job.Delay(backoffFirst, backoffMax, n-1)
}

// Blocked returns how long the creation of pods of a cluster must wait, and the error of the
// failure behind the wait; 0 and nil if creation may go on.
func (b *CreationBackoff) Blocked(key types.NamespacedName, now time.Time) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clusters[key]
	if c == nil {
		return 0, nil
	}
	var longest *failure
	for _, entry := range c.reasons {
		if !apiclock.IsOver(entry.last, now, entry.until.Sub(entry.last)) && (longest == nil || entry.until.After(longest.until)) {
			longest = entry
		}
	}
	if longest == nil {
		return 0, nil
	}
	return longest.until.Sub(now), longest.err
}

// UseName records that a pod of the last name was created.
func (b *CreationBackoff) UseName(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clusters[key]; c != nil {
		c.name = ""
	}
}

// Forget drops everything about a cluster.
func (b *CreationBackoff) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clusters, key)
}
