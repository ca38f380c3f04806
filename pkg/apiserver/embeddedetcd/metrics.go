// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

var (
	databaseSize = metrics.NewDesc("etcd_operator_apiserver_embedded_storage_size_bytes",
		"Size of the database of the embedded etcd.", nil, nil, metrics.ALPHA, "")
	databaseAvailable = metrics.NewDesc("etcd_operator_apiserver_embedded_storage_available_bytes",
		"How much the database of the embedded etcd may grow, by the quota of etcd and the free space of the volume.", nil, nil, metrics.ALPHA, "")
)

// storageCollector reads the size of the database and the free space at each scrape.
type storageCollector struct {
	metrics.BaseStableCollector
	server *Server
}

// Metrics returns a collector of the size of the database and of the space for it. A registry
// takes it once.
func (s *Server) Metrics() metrics.StableCollector { return &storageCollector{server: s} }

// DescribeWithStability implements metrics.StableCollector.
func (c *storageCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- databaseSize
	ch <- databaseAvailable
}

// CollectWithStability implements metrics.StableCollector.
func (c *storageCollector) CollectWithStability(ch chan<- metrics.Metric) {
	dir := c.server.etcd.Config().Dir
	free, err := freeBytes(dir)
	if err != nil {
		klog.Background().Error(err, "cannot read the free space for the database; its metrics are absent", "directory", dir)
		return
	}
	size := c.server.etcd.Server.Backend().Size()
	ch <- metrics.NewLazyConstMetric(databaseSize, metrics.GaugeValue, float64(size))
	ch <- metrics.NewLazyConstMetric(databaseAvailable, metrics.GaugeValue, float64(available(size, free, c.server.quota)))
}

// available returns how much a database may grow that has the size, on a volume with free bytes.
// The guard ends the writes before the volume is full.
func available(size, free, quota int64) int64 {
	return max(0, min(quota-size, free-minFree))
}
