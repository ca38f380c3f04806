// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Work is what takes a place. One work of a cluster runs at a time.
type Work struct {
	// Key is the object whose reconcile starts the work.
	Key, Cluster types.NamespacedName
	// Due orders the works that wait: the earliest starts first. Those with the same time start as they came.
	Due time.Time
}

// waiter is a work without a place.
type waiter struct {
	Work

	arrived int
}

// Queue lets work wait for a place. The end of the process empties the queue; what waits then asks again.
type Queue struct {
	places Places

	mu sync.Mutex
	// started are the works that were started here and that the caller does not see yet.
	started map[types.NamespacedName]Work
	waiting map[types.NamespacedName]waiter
	arrived int
}

// NewQueue returns an empty queue.
func NewQueue(p Places) *Queue {
	return &Queue{places: p, started: map[types.NamespacedName]Work{}, waiting: map[types.NamespacedName]waiter{}}
}

// Start takes a place for a work, or says what lacks and lets it wait. Seen are works that the caller sees running; those
// that were started here may be among them.
func (q *Queue) Start(w Work, seen ...Work) Lack {
	q.mu.Lock()
	defer q.mu.Unlock()
	lack := q.lack(w, seen)
	if lack == Nothing {
		q.started[w.Key] = w
	}
	return lack
}

// Lack says what Start would say, and lets the work wait for what lacks. It takes no place.
func (q *Queue) Lack(w Work, seen ...Work) Lack {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lack(w, seen)
}

func (q *Queue) lack(w Work, seen []Work) Lack {
	q.wait(w)
	running, taken := q.running(seen)
	if !slices.Contains(q.startable(running, taken), w.Key) {
		switch lack := q.places.lack(taken, w.Key.Namespace); {
		case running[w.Cluster]:
			return OfCluster
		case lack != Nothing:
			return lack
		default:
			return OfAll // the free places are for those that are due before it
		}
	}
	delete(q.waiting, w.Key)
	return Nothing
}

// wait adds a work to those that wait. One that waits already keeps its turn.
func (q *Queue) wait(w Work) {
	known, waits := q.waiting[w.Key]
	if !waits {
		q.arrived++
		known.arrived = q.arrived
	} else if known.Due.Before(w.Due) {
		w.Due = known.Due
	}
	q.waiting[w.Key] = waiter{Work: w, arrived: known.arrived}
}

// running returns the clusters that have a work, and the places that each namespace has taken. None counts for more than
// its share, whatever the caller sees of it.
func (q *Queue) running(seen []Work) (clusters map[types.NamespacedName]bool, taken map[string]int) {
	clusters, taken = map[types.NamespacedName]bool{}, map[string]int{}
	counted := map[[2]types.NamespacedName]bool{}
	count := func(w Work) {
		clusters[w.Cluster] = true
		if id := [2]types.NamespacedName{w.Key, w.Cluster}; !counted[id] {
			counted[id] = true
			taken[w.Key.Namespace] = min(taken[w.Key.Namespace]+1, q.places.Share())
		}
	}
	for _, w := range seen {
		count(w)
	}
	for _, w := range q.started {
		count(w)
	}
	return clusters, taken
}

// startable returns the works that may start now, in their order.
func (q *Queue) startable(running map[types.NamespacedName]bool, before map[string]int) []types.NamespacedName {
	taken := maps.Clone(before)
	waiting := make([]waiter, 0, len(q.waiting))
	for _, w := range q.waiting {
		waiting = append(waiting, w)
	}
	slices.SortFunc(waiting, func(x, y waiter) int { return cmp.Or(x.Due.Compare(y.Due), cmp.Compare(x.arrived, y.arrived)) })
	chosen := map[types.NamespacedName]bool{}
	var fit []types.NamespacedName
	for _, w := range waiting {
		lack := q.places.lack(taken, w.Key.Namespace)
		if lack == OfAll {
			break
		}
		if lack == Nothing && !running[w.Cluster] && !chosen[w.Cluster] {
			chosen[w.Cluster] = true
			taken[w.Key.Namespace]++
			fit = append(fit, w.Key)
		}
	}
	return fit
}

// Seen drops a work that was started here: from now on the caller sees it, or it has ended.
func (q *Queue) Seen(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.started, key)
}

// End drops a work, whether it runs or waits.
func (q *Queue) End(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.started, key)
	delete(q.waiting, key)
}

// Next returns the works that may start now.
func (q *Queue) Next(seen ...Work) []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	return q.startable(q.running(seen))
}
