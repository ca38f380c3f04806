// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
)

// sharedFor is how long a probe serves further requests, so that the members of a cluster
// have the same work for one client and for a hundred.
const sharedFor = time.Second

// shared holds the probes of the last moment.
type shared struct {
	probing singleflight.Group
	mu      sync.Mutex
	recent  map[string]*health.Probe
}

// ProbeShared probes a cluster as Probe does, or returns the probe that another request has
// made in the last second, or is making, of the cluster in the same state. It probes a cluster
// again that was changed since. Callers do not change the result.
func (p *Prober) ProbeShared(ctx context.Context, cluster *v1beta2.EtcdCluster) (*health.Probe, error) {
	key := string(cluster.UID) + "/" + cluster.ResourceVersion
	if recent := p.shared.get(key, p.clock.Now()); recent != nil {
		return recent, nil
	}
	// The request that probes may end before the others do; Probe has a limit of its own.
	probed := p.shared.probing.DoChan(key, func() (any, error) {
		result, err := p.Probe(context.WithoutCancel(ctx), cluster)
		if err == nil {
			p.shared.put(key, result, p.clock.Now())
		}
		return result, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case done := <-probed:
		result, ok := done.Val.(*health.Probe)
		if !ok && done.Err == nil {
			return nil, fmt.Errorf("unexpected type %T", done.Val)
		}
		return result, done.Err
	}
}

func (s *shared) get(key string, now time.Time) *health.Probe {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.recent[key]; p != nil && now.Sub(p.ProbedAt) < sharedFor {
		return p
	}
	return nil
}

// put keeps a probe, and forgets those that are too old.
func (s *shared) put(key string, p *health.Probe, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil {
		s.recent = map[string]*health.Probe{}
	}
	for other, old := range s.recent {
		if now.Sub(old.ProbedAt) >= sharedFor {
			delete(s.recent, other)
		}
	}
	s.recent[key] = p
}
