// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/progress"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/topology"
)

func TestMerge(t *testing.T) {
	number := func(n int) *int { return &n }
	yes, no := true, false
	release := func(r kubernetes.Release) *kubernetes.Release { return &r }
	families := func(f topology.Families) *topology.Families { return &f }
	existing := settings{Kubernetes: kubernetes.Oldest(), Nodes: 3, Audit: true, TolerationSeconds: 5}
	for name, test := range map[string]struct {
		request Request
		old     *settings
		want    settings
		noIPv6  bool
		fails   bool
	}{
		"defaults":                         {want: settings{Kubernetes: kubernetes.Newest(), Nodes: 1, TolerationSeconds: 300, Families: topology.Dual}},
		"a new cluster":                    {request: Request{Nodes: number(2), Audit: &yes}, want: settings{Kubernetes: kubernetes.Newest(), Nodes: 2, Audit: true, TolerationSeconds: 300, Families: topology.Dual}},
		"an existing one stays as it is":   {old: &existing, want: existing},
		"the same size":                    {request: Request{Nodes: number(3)}, old: &existing, want: existing},
		"more nodes":                       {request: Request{Nodes: number(5)}, old: &existing, want: settings{Kubernetes: kubernetes.Oldest(), Nodes: 5, Audit: true, TolerationSeconds: 5}},
		"no audit any more":                {request: Request{Audit: &no}, old: &existing, want: settings{Kubernetes: kubernetes.Oldest(), Nodes: 3, TolerationSeconds: 5}},
		"no IPv6 here":                     {noIPv6: true, want: settings{Kubernetes: kubernetes.Newest(), Nodes: 1, TolerationSeconds: 300, Families: topology.IPv4}},
		"IPv6 where there is none":         {request: Request{Families: families(topology.Dual)}, noIPv6: true, fails: true},
		"one family":                       {request: Request{Families: families(topology.IPv6)}, want: settings{Kubernetes: kubernetes.Newest(), Nodes: 1, TolerationSeconds: 300, Families: topology.IPv6}},
		"the same families":                {request: Request{Families: families(topology.IPv4)}, old: &existing, want: settings{Kubernetes: kubernetes.Oldest(), Nodes: 3, Audit: true, TolerationSeconds: 5, Families: topology.IPv4}},
		"other families":                   {request: Request{Families: families(topology.Dual)}, old: &existing, fails: true},
		"an older Kubernetes":              {request: Request{Kubernetes: release(kubernetes.Oldest())}, want: settings{Kubernetes: kubernetes.Oldest(), Nodes: 1, TolerationSeconds: 300, Families: topology.Dual}},
		"the same Kubernetes":              {request: Request{Kubernetes: release(kubernetes.Oldest())}, old: &existing, want: existing},
		"another Kubernetes":               {request: Request{Kubernetes: release(kubernetes.Newest())}, old: &existing, fails: true},
		"fewer nodes":                      {request: Request{Nodes: number(2)}, old: &existing, fails: true},
		"no nodes":                         {request: Request{Nodes: number(0)}, fails: true},
		"too many nodes":                   {request: Request{Nodes: number(1000)}, fails: true},
		"a toleration that makes no sense": {request: Request{TolerationSeconds: number(-1)}, fails: true},
	} {
		var old settings
		if test.old != nil {
			old = *test.old
		}
		got, err := test.request.merge(old, test.old != nil, !test.noIPv6)
		if (err != nil) != test.fails {
			t.Errorf("%s: error %v", name, err)
		}
		if err == nil && got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func newCluster(t *testing.T) *Cluster {
	t.Helper()
	return &Cluster{Layout: layout.Layout{Cache: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}, Progress: progress.New()}
}

func TestSettings(t *testing.T) {
	c := newCluster(t)
	if _, err := c.load(); !errors.Is(err, ErrDown) {
		t.Errorf("no cluster: %v", err)
	}
	if err := os.MkdirAll(c.Layout.State, 0o755); err != nil {
		t.Fatal(err)
	}
	want := settings{Nodes: 2, TolerationSeconds: 7, Families: topology.Dual, Kubernetes: kubernetes.Oldest()}
	if err := c.save(want); err != nil {
		t.Fatal(err)
	}
	if got, err := c.load(); err != nil || got != want {
		t.Errorf("got %+v %v", got, err)
	}
	if got, err := c.Kubernetes(); err != nil || got != kubernetes.Oldest() {
		t.Errorf("the cluster runs %v, %v", got, err)
	}
	// A cluster that was made before there was a choice.
	if err := os.WriteFile(c.Layout.Settings(), []byte(`{"nodes":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Kubernetes(); err != nil || got != kubernetes.Newest() {
		t.Errorf("the cluster without a release runs %v, %v", got, err)
	}
}

func TestStateDirectoryWithOtherFilesIsRejected(t *testing.T) {
	c := newCluster(t)
	if err := os.MkdirAll(c.Layout.State, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := c.lock(context.Background())
	if err != nil {
		t.Fatalf("an empty directory: %v", err)
	}
	unlock()
	if err := os.Remove(c.Layout.Lock()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Layout.State, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lock(context.Background()); err == nil {
		t.Error("down would delete files of other programs")
	}
}

// The holder of the lock may remove the directory that the lock is in: a program that
// waits must then take a new lock, and not one that no other can see.
func TestLockSurvivesRemoval(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	unlock, err := c.lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	impatient, stop := context.WithTimeout(ctx, 250*time.Millisecond)
	defer stop()
	if _, err := c.lock(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second lock while the first is held: %v", err)
	}
	second := make(chan error)
	go func() {
		unlock, err := c.lock(ctx)
		if err == nil {
			defer unlock()
			_, err = os.Stat(c.Layout.Lock())
		}
		second <- err
	}()
	if err := c.removeState(); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-second; err != nil {
		t.Error(err)
	}
}
