// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package orphanedpvc

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/metrics"

	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var pvcsWithoutCluster = metrics.NewDesc("etcd_operator_pvcs_without_cluster",
	"Number of PVCs in a namespace whose EtcdCluster does not exist; absent if there are none. PVCs that a retention policy keeps do not count.",
	[]string{"namespace"}, nil, metrics.ALPHA, "")

// collector counts orphaned PVCs. It reads caches at each scrape, so that only namespaces
// with orphaned PVCs have a series.
type collector struct {
	metrics.BaseStableCollector
	pvcs     corelisters.PersistentVolumeClaimLister
	clusters etcdlisters.EtcdClusterLister
	isLeader func() bool
}

// NewCollector returns a collector of orphaned PVCs. It has no series while isLeader is
// false. A registry takes it once.
func NewCollector(
	pvcs corelisters.PersistentVolumeClaimLister, clusters etcdlisters.EtcdClusterLister, isLeader func() bool,
) metrics.StableCollector {
	return &collector{pvcs: pvcs, clusters: clusters, isLeader: isLeader}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- pvcsWithoutCluster }

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	if !c.isLeader() {
		return
	}
	pvcs, err := c.pvcs.List(labels.Everything())
	if err != nil {
		return // A lister reads from memory and does not fail.
	}
	count := map[string]int{}
	for _, pvc := range pvcs {
		if c.isOrphaned(pvc) {
			count[pvc.Namespace]++
		}
	}
	for namespace, n := range count {
		ch <- metrics.NewLazyConstMetric(pvcsWithoutCluster, metrics.GaugeValue, float64(n), namespace)
	}
}

func (c *collector) isOrphaned(pvc *corev1.PersistentVolumeClaim) bool {
	name := pvc.Labels[resources.LabelCluster]
	if name == "" {
		return false
	}
	cluster, err := c.clusters.EtcdClusters(pvc.Namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return false
	}
	return isOrphaned(pvc, cluster)
}
