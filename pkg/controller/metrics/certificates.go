// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
)

var certificateEnd = metrics.NewDesc("etcd_operator_certificate_not_after_timestamp_seconds",
	"When the certificate of a cluster ends that ends first, in seconds since 1970, by namespace, cluster and use.",
	[]string{"namespace", "cluster", "use"}, nil, metrics.ALPHA, "")

// certificateCollector reads the statuses that the cache holds, so that a deleted cluster
// leaves nothing behind, and a cluster has one series.
type certificateCollector struct {
	metrics.BaseStableCollector
	clusters    etcdlisters.EtcdClusterLister
	responsible func(metav1.Object) bool
}

// NewCertificateCollector returns a collector of when the certificates end of the clusters in
// a cache that responsible is true for. A registry takes it once.
func NewCertificateCollector(clusters etcdlisters.EtcdClusterLister, responsible func(metav1.Object) bool) metrics.StableCollector {
	return &certificateCollector{clusters: clusters, responsible: responsible}
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
		if first := firstToEnd(&cluster.Status); first != nil && c.responsible(cluster) {
			collected <- metrics.NewLazyConstMetric(certificateEnd, metrics.GaugeValue,
				float64(first.NotAfter.Unix()), cluster.Namespace, cluster.Name, string(first.Use))
		}
	}
}

// firstToEnd returns the certificate that ends first, among those of the cluster and of its
// clients; nil if no end is known.
func firstToEnd(status *v1beta2.ClusterStatus) *v1beta2.CertificateStatus {
	certificates := slices.Clone(status.Certificates)
	for i := range status.Clients {
		certificates = append(certificates, v1beta2.CertificateStatus{Use: v1beta2.CertificateUseClient, NotAfter: status.Clients[i].NotAfter})
	}
	var first *v1beta2.CertificateStatus
	for i := range certificates {
		if c := &certificates[i]; c.NotAfter != nil && (first == nil || c.NotAfter.Before(first.NotAfter)) {
			first = c
		}
	}
	return first
}
