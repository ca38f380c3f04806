// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/picture"
)

// sharedFor is how long a picture answers further requests, so that the members of a cluster
// have the same work whether one client looks at it or a hundred do.
const sharedFor = time.Second

// shared holds the pictures of the last moment.
type shared struct {
	asking singleflight.Group
	mu     sync.Mutex
	recent map[string]*picture.Picture
}

// AskShared makes a picture of a cluster as Ask does, or returns the one that another request
// has made in the last second, or is making. It shows the cluster in the same state: one that
// was changed since is asked again. Callers do not change the picture.
func (a *Asker) AskShared(ctx context.Context, cluster *v1beta2.EtcdCluster) (*picture.Picture, error) {
	key := string(cluster.UID) + "/" + cluster.ResourceVersion
	if p := a.shared.get(key, a.clock.Now()); p != nil {
		return p, nil
	}
	// The request that asks may end before the others do; Ask has a limit of its own.
	asked := a.shared.asking.DoChan(key, func() (any, error) {
		p, err := a.Ask(context.WithoutCancel(ctx), cluster)
		if err == nil {
			a.shared.put(key, p, a.clock.Now())
		}
		return p, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-asked:
		p, ok := result.Val.(*picture.Picture)
		if !ok && result.Err == nil {
			return nil, fmt.Errorf("unexpected type %T", result.Val)
		}
		return p, result.Err
	}
}

func (s *shared) get(key string, now time.Time) *picture.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.recent[key]; p != nil && now.Sub(p.AskedAt) < sharedFor {
		return p
	}
	return nil
}

// put keeps a picture, and forgets those that are too old.
func (s *shared) put(key string, p *picture.Picture, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil {
		s.recent = map[string]*picture.Picture{}
	}
	for other, old := range s.recent {
		if now.Sub(old.AskedAt) >= sharedFor {
			delete(s.recent, other)
		}
	}
	s.recent[key] = p
}
