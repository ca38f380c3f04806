// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// backoffFirst is the wait after the second failure for the same reason; it doubles
	// with each further one. The first failure is followed by another attempt at once.
	backoffFirst = 500 * time.Millisecond
	// backoffMost is the longest wait. Nothing tells when a quota was raised or a policy
	// changed, so it is also how long a cluster may wait in vain.
	backoffMost = 5 * time.Second
	// backoffForget is how long after a failure the next one counts as the first again.
	backoffForget = time.Minute
)

// ErrPodFailed means that pods of the cluster fail as a whole, such as those that a node
// evicts or does not admit. Another one is made after a while.
var ErrPodFailed = errors.New("pods fail")

// failures delays the creation of pods and PVCs for clusters for which that failed, by
// cluster and reason. It is safe for concurrent use; the zero value is ready.
type failures struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]*clusterFailures
}

type clusterFailures struct {
	// name of the next pod: it stays the same while it is rejected, so that messages of
	// Kubernetes, which contain it, do too.
	name string
	// failed is the UID of the last pod that failed as a whole.
	failed  string
	reasons map[string]*podFailure
}

type podFailure struct {
	err         error
	count       int
	last, until time.Time
}

// of returns the record of a cluster. The caller holds the lock.
func (f *failures) of(key types.NamespacedName) *clusterFailures {
	if f.clusters == nil {
		f.clusters = map[types.NamespacedName]*clusterFailures{}
	}
	if f.clusters[key] == nil {
		f.clusters[key] = &clusterFailures{reasons: map[string]*podFailure{}}
	}
	return f.clusters[key]
}

// name returns the name for the next pod of a cluster: fresh, unless an earlier one was
// rejected, and so was never used.
func (f *failures) name(key types.NamespacedName, fresh string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clusters[key]; c != nil && c.name != "" {
		return c.name
	}
	return fresh
}

// note records that something for reason failed with err at now, and returns whether it
// is the first time in a while. Unused is the name of a pod that was rejected; it is empty
// if a name may have been used.
func (f *failures) note(key types.NamespacedName, now time.Time, reason, unused string, err error) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.of(key)
	c.name = unused
	for name, old := range c.reasons {
		if now.Sub(old.last) > backoffForget {
			delete(c.reasons, name)
		}
	}
	entry := c.reasons[reason]
	if entry == nil {
		entry = &podFailure{}
		c.reasons[reason] = entry
	}
	entry.count++
	entry.err, entry.last, entry.until = err, now, now.Add(delay(entry.count))
	return entry.count == 1
}

// noteFailed records a pod that failed as a whole, once, like note.
func (f *failures) noteFailed(key types.NamespacedName, now time.Time, uid string, err error) (first bool) {
	f.mu.Lock()
	c := f.of(key)
	known := c.failed == uid
	c.failed = uid
	f.mu.Unlock()
	return !known && f.note(key, now, "failed", "", err)
}

// delay is how long to wait after the nth failure.
func delay(n int) time.Duration {
	if n < 2 {
		return 0
	}
	d := backoffFirst
	for range n - 2 {
		if d *= 2; d >= backoffMost {
			return backoffMost
		}
	}
	return d
}

// blocked returns how long the creation of pods of a cluster must wait, and the error of
// the failure for which it must; 0 and nil if it need not.
func (f *failures) blocked(key types.NamespacedName, now time.Time) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[key]
	if c == nil {
		return 0, nil
	}
	var longest *podFailure
	for _, entry := range c.reasons {
		if entry.until.After(now) && (longest == nil || entry.until.After(longest.until)) {
			longest = entry
		}
	}
	if longest == nil {
		return 0, nil
	}
	return longest.until.Sub(now), longest.err
}

// used records that the last name was used.
func (f *failures) used(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clusters[key]; c != nil {
		c.name = ""
	}
}

// forget drops everything about a cluster.
func (f *failures) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clusters, key)
}

// podFailed is the error of a pod that failed as a whole.
func podFailed(name, why string) error {
	return fmt.Errorf("%w: pod %s: %s", ErrPodFailed, name, why)
}
