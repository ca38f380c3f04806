// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// readTimeout is how long one look at all clusters may take.
const readTimeout = 30 * time.Second

// Source reads what the page shows. All browsers share one look at the API, which is made at most
// once in a time and only if a browser asks.
type Source struct {
	Clients *connect.Clients
	// Namespace is "" for all. Name is "" for all clusters.
	Namespace, Name string
	Clock           clock.PassiveClock
	// Every is how old a look may become.
	Every time.Duration

	flight singleflight.Group
	mu     sync.Mutex
	last   *View
	read   time.Time
}

// Read makes the first look. Later ones need not succeed.
func (s *Source) Read(ctx context.Context) error {
	view, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.keep(view)
	return nil
}

// View returns a look that is not older than Every. If the API does not respond it returns the
// last one, and says so. The error is that of ctx, which is the context of the request.
func (s *Source) View(ctx context.Context) (*View, error) {
	s.mu.Lock()
	last, age := s.last, s.Clock.Since(s.read)
	s.mu.Unlock()
	if last != nil && age < s.Every {
		return last, nil
	}
	// The look goes on if this browser leaves: others may wait for it.
	done := s.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		view, err := s.look(ctx)
		if err != nil {
			view = s.outdated(err)
		}
		s.keep(view)
		return view, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-done:
		return result.Val.(*View), result.Err
	}
}

func (s *Source) keep(view *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.read = view, s.Clock.Now()
}

// outdated returns the last look with the reason why there is no later one.
func (s *Source) outdated(err error) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := &View{Scope: s.scope()}
	if s.last != nil {
		copied := *s.last
		view = &copied
	}
	view.Problem = "What you see is old: " + err.Error()
	return view
}

func (s *Source) scope() string {
	switch {
	case s.Name != "":
		return s.Namespace + "/" + s.Name
	case s.Namespace != "":
		return "namespace " + s.Namespace
	default:
		return "all namespaces"
	}
}

func (s *Source) look(ctx context.Context) (*View, error) {
	var list []*report.Status
	var err error
	if s.Name == "" {
		list, err = report.ReadAll(ctx, s.Clients, s.Namespace)
	} else {
		var one *report.Status
		one, err = report.ReadStatus(ctx, s.Clients, s.Namespace, s.Name)
		list = append(list, one)
	}
	if err != nil {
		return nil, err
	}
	style := render.Style{Unicode: true, Wide: true, Now: s.Clock.Now()}
	view := &View{
		Scope:    s.scope(),
		Backups:  readTable(ctx, s.Clients, s.Namespace, "etcdbackups", s.Name),
		Restores: readTable(ctx, s.Clients, s.Namespace, "etcdrestores", s.Name),
	}
	for _, one := range list {
		view.Clusters = append(view.Clusters, newCluster(one, style))
	}
	return view, nil
}
