// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// connection is a monitor that reports its end.
type connection struct{ closed chan struct{} }

func (c *connection) Monitor(context.Context) (metrics.StorageMetrics, error) {
	return metrics.StorageMetrics{Size: 42}, nil
}

func (c *connection) Close() error {
	close(c.closed)
	return nil
}

// TestMonitorsConnectOnce: a connection that fails is tried again at the next scrape, and one that
// succeeded serves all scrapes until the server stops.
func TestMonitorsConnectOnce(t *testing.T) {
	t.Parallel()
	away := errors.New("no etcd yet")
	var connections []*connection
	stop := make(chan struct{})
	get := Monitors(
		func() []storagebackend.Config { return make([]storagebackend.Config, 2) },
		func(storagebackend.Config) (metrics.Monitor, error) {
			if err := away; len(connections) == 1 && err != nil {
				away = nil
				return nil, err
			}
			connections = append(connections, &connection{closed: make(chan struct{})})
			return connections[len(connections)-1], nil
		}, stop)
	if _, err := get(); err == nil {
		t.Fatal("the connection that failed was not reported")
	}
	for range 3 {
		list, err := get()
		if err != nil || len(list) != 2 {
			t.Fatalf("%d monitors, error %v", len(list), err)
		}
		for _, monitor := range list {
			if got, err := monitor.Monitor(t.Context()); err != nil || got.Size != 42 {
				t.Errorf("size %d, error %v", got.Size, err)
			}
			if err := monitor.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if len(connections) != 2 {
		t.Errorf("%d connections for 2 storages", len(connections))
	}
	close(stop)
	for _, c := range connections {
		select {
		case <-c.closed:
		case <-time.After(10 * time.Second):
			t.Fatal("a connection is open after the stop")
		}
	}
	if _, err := get(); !errors.Is(err, errStopped) {
		t.Errorf("after the stop: got %v, want %v", err, errStopped)
	}
}
