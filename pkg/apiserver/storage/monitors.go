// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
)

var errStopped = errors.New("the server is stopping")

// Monitors returns a getter for metrics.SetStorageMonitorGetter, with which each scrape reads the
// size of the storage. The getter of k8s.io/apiserver connects to etcd for each scrape and closes
// the connection at once, which makes gRPC log a warning. The getter of Monitors connects at the first scrape,
// and closes the connections when stop is closed.
func Monitors(
	configs func() []storagebackend.Config, create func(storagebackend.Config) (metrics.Monitor, error), stop <-chan struct{},
) func() ([]metrics.Monitor, error) {
	m := &monitors{configs: configs, create: create}
	go func() {
		<-stop
		m.close()
	}()
	return m.get
}

type monitors struct {
	configs func() []storagebackend.Config
	create  func(storagebackend.Config) (metrics.Monitor, error)

	mu      sync.Mutex
	created []metrics.Monitor
	stopped bool
}

// shared is a monitor that a scrape does not close.
type shared struct{ monitor metrics.Monitor }

// Monitor implements metrics.Monitor.
func (s shared) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	return s.monitor.Monitor(ctx)
}

// Close implements metrics.Monitor.
func (shared) Close() error { return nil }

func (m *monitors) get() ([]metrics.Monitor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return nil, errStopped
	}
	// After a failure, the next scrape creates those that are missing.
	for _, config := range m.configs()[len(m.created):] {
		monitor, err := m.create(config)
		if err != nil {
			return nil, err
		}
		m.created = append(m.created, monitor)
	}
	list := make([]metrics.Monitor, 0, len(m.created))
	for _, monitor := range m.created {
		list = append(list, shared{monitor: monitor})
	}
	return list, nil
}

func (m *monitors) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	for _, monitor := range m.created {
		if err := monitor.Close(); err != nil {
			klog.Background().V(2).Info("Closing the connection for the size of the storage failed", "reason", err)
		}
	}
}
