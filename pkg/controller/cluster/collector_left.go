// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/metrics"

	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var pvcsLeft = metrics.NewDesc("etcd_operator_pvcs_without_cluster",
	"How many PVCs of a namespace belong to EtcdClusters that do not exist; absent if there are none. PVCs that stay by their retention policy do not count.",
	[]string{"namespace"}, nil, metrics.ALPHA, "")

// leftCollector counts the PVCs that no EtcdCluster needs. It reads caches when it is
// asked, so that it has one series for each namespace with such PVCs and no other one.
type leftCollector struct {
	metrics.BaseStableCollector
	claims   corelisters.PersistentVolumeClaimLister
	clusters etcdlisters.EtcdClusterLister
	leads    func() bool
}

// NewLeftCollector returns a collector of the PVCs that are left of EtcdClusters which do
// not exist. It has no series while leads is false. A registry takes it once.
func NewLeftCollector(
	claims corelisters.PersistentVolumeClaimLister, clusters etcdlisters.EtcdClusterLister, leads func() bool,
) metrics.StableCollector {
	return &leftCollector{claims: claims, clusters: clusters, leads: leads}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *leftCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- pvcsLeft }

// CollectWithStability implements metrics.StableCollector.
func (c *leftCollector) CollectWithStability(ch chan<- metrics.Metric) {
	if !c.leads() {
		return
	}
	claims, err := c.claims.List(labels.Everything())
	if err != nil {
		return // A lister reads from memory: it has no errors to give.
	}
	left := map[string]int{}
	for _, claim := range claims {
		if c.isLeft(claim) {
			left[claim.Namespace]++
		}
	}
	for namespace, n := range left {
		ch <- metrics.NewLazyConstMetric(pvcsLeft, metrics.GaugeValue, float64(n), namespace)
	}
}

func (c *leftCollector) isLeft(claim *corev1.PersistentVolumeClaim) bool {
	name := claim.Labels[resources.LabelCluster]
	if name == "" {
		return false
	}
	cluster, err := c.clusters.EtcdClusters(claim.Namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return false
	}
	return isLeft(claim, cluster)
}
