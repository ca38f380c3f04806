// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync"
)

// Places are the places for work that runs at the same time. A namespace takes a place while it has fewer than are free.
// One namespace alone takes half of them, several take less each, and one place is left for the namespace that comes next.
type Places struct {
	// Total is how many places there are, for all namespaces.
	Total int
	// Undivided lets one namespace take all places, where no other has work.
	Undivided bool
}

// Divided returns places that the namespaces share: one of them takes half.
func Divided(total int) Places { return Places{Total: total} }

// Lack says why there is no place for a work.
type Lack int

const (
	// Nothing lacks: the work has its place.
	Nothing Lack = iota
	// OfCluster lacks while another work of the same cluster runs.
	OfCluster
	// OfNamespace lacks while the namespace has its share of the places.
	OfNamespace
	// OfAll lacks while every place is taken.
	OfAll
)

// Share is how many places one namespace takes at most.
func (p Places) Share() int {
	if p.Undivided {
		return p.Total
	}
	return (p.Total + 1) / 2
}

// lack says whether the namespace may take a place while these are taken.
func (p Places) lack(taken map[string]int, namespace string) Lack {
	free := p.Total
	for _, n := range taken {
		free -= n
	}
	switch {
	case free <= 0:
		return OfAll
	case !p.Undivided && taken[namespace] >= free:
		return OfNamespace
	default:
		return Nothing
	}
}

// Limiter rejects work for which there is no place.
type Limiter struct {
	places Places

	mu    sync.Mutex
	taken map[string]int
}

// NewLimiter returns a limiter whose places are free.
func NewLimiter(p Places) *Limiter { return &Limiter{places: p, taken: map[string]int{}} }

// Total is how many places there are.
func (l *Limiter) Total() int { return l.places.Total }

// Acquire takes a place, or says what lacks. The caller calls release once, when the work has ended.
func (l *Limiter) Acquire(namespace string) (release func(), lack Lack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lack := l.places.lack(l.taken, namespace); lack != Nothing {
		return nil, lack
	}
	l.taken[namespace]++
	return sync.OnceFunc(func() { l.release(namespace) }), Nothing
}

func (l *Limiter) release(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[namespace]--; l.taken[namespace] == 0 {
		delete(l.taken, namespace)
	}
}

// Taken is how many places are taken.
func (l *Limiter) Taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for _, n := range l.taken {
		sum += n
	}
	return sum
}
