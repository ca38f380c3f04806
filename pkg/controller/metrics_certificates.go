// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"

	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

var certificateEnd = metrics.NewDesc("etcd_operator_certificate_not_after_timestamp_seconds",
	"When a certificate of a cluster ends, in seconds since 1970, by namespace, cluster and use.",
	[]string{"namespace", "cluster", "use"}, nil, metrics.ALPHA, "")

// certificateCollector reads the statuses that the cache holds, so that a cluster that
// is gone leaves nothing behind. There are at most five certificates to a cluster.
type certificateCollector struct {
	metrics.BaseStableCollector
	clusters etcdlisters.EtcdClusterLister
}

// NewCertificateCollector returns a collector of when the certificates of the clusters in a
// cache end. A registry takes it once.
func NewCertificateCollector(clusters etcdlisters.EtcdClusterLister) metrics.StableCollector {
	return &certificateCollector{clusters: clusters}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *certificateCollector) DescribeWithStability(descriptions chan<- *metrics.Desc) {
	descriptions <- certificateEnd
}

// CollectWithStability implements metrics.StableCollector.
func (c *certificateCollector) CollectWithStability(collected chan<- metrics.Metric) {
	clusters, err := c.clusters.List(labels.Everything())
	if err != nil {
		return // a lister over a cache does not fail
	}
	for _, cluster := range clusters {
		for i := range cluster.Status.Certificates {
			if certificate := &cluster.Status.Certificates[i]; certificate.NotAfter != nil {
				collected <- metrics.NewLazyConstMetric(certificateEnd, metrics.GaugeValue,
					float64(certificate.NotAfter.Unix()), cluster.Namespace, cluster.Name, string(certificate.Use))
			}
		}
	}
}
