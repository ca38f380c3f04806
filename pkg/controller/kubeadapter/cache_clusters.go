// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ClusterCache is the cache of clusters and their objects. Its indexers have the indices of Indices: a
// namespace may hold the objects of a thousand clusters.
type ClusterCache struct {
	Clusters etcdlisters.EtcdClusterLister
	Restores etcdlisters.EtcdRestoreLister
	Services corelisters.ServiceLister
	Records  corelisters.ConfigMapLister
	Budgets  policylisters.PodDisruptionBudgetLister
	PodSet   cache.Indexer
	PVCSet   cache.Indexer
	Slices   cache.Indexer
	// Cordons implement Cordoned of cluster.Cache.
	*Cordons
}

const (
	byCluster  = "cluster"
	byRecovery = "recovery"
	byService  = "service"
)

// Indices find the objects of one cluster, and the EndpointSlices of one service.
func Indices() cache.Indexers {
	return cache.Indexers{
		byCluster: indexLabel(resources.LabelCluster), byRecovery: indexLabel(resources.LabelRecovery), byService: indexLabel(discoveryv1.LabelServiceName),
	}
}

func indexLabel(label string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		o, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		if value := o.GetLabels()[label]; value != "" {
			return []string{indexed(o.GetNamespace(), value)}, nil
		}
		return nil, nil
	}
}

func indexed(namespace, value string) string { return namespace + "/" + value }

// of returns the objects of an index that the selector of the cluster matches.
func of[T metav1.Object](set cache.Indexer, namespace, cluster string) ([]T, error) {
	found, err := set.ByIndex(byCluster, indexed(namespace, cluster))
	if err != nil {
		return nil, err
	}
	labelled := selector(cluster)
	list := make([]T, 0, len(found))
	for _, object := range found {
		if o, ok := object.(T); ok && labelled.Matches(labels.Set(o.GetLabels())) {
			list = append(list, o)
		}
	}
	return list, nil
}

// Cluster implements cluster.Cache.
func (c ClusterCache) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return c.Clusters.EtcdClusters(namespace).Get(name)
}

// Restore implements cluster.Cache.
func (c ClusterCache) Restore(namespace, name string) (*v1beta2.EtcdRestore, error) {
	return c.Restores.EtcdRestores(namespace).Get(name)
}

// Service implements cluster.Cache.
func (c ClusterCache) Service(namespace, name string) (*corev1.Service, error) {
	return c.Services.Services(namespace).Get(name)
}

// ConfigMap implements cluster.Cache.
func (c ClusterCache) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) {
	return c.Records.ConfigMaps(namespace).Get(name)
}

// PodDisruptionBudget implements cluster.Cache.
func (c ClusterCache) PodDisruptionBudget(namespace, name string) (*policyv1.PodDisruptionBudget, error) {
	return c.Budgets.PodDisruptionBudgets(namespace).Get(name)
}

// Pods implements cluster.Cache.
func (c ClusterCache) Pods(namespace, name string) ([]*corev1.Pod, error) {
	return of[*corev1.Pod](c.PodSet, namespace, name)
}

// Pod implements cluster.Cache.
func (c ClusterCache) Pod(namespace, name string) (*corev1.Pod, error) {
	return corelisters.NewPodLister(c.PodSet).Pods(namespace).Get(name)
}

// PVC implements cluster.Cache.
func (c ClusterCache) PVC(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return corelisters.NewPersistentVolumeClaimLister(c.PVCSet).PersistentVolumeClaims(namespace).Get(name)
}

// PVCs implements cluster.Cache.
func (c ClusterCache) PVCs(namespace, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return of[*corev1.PersistentVolumeClaim](c.PVCSet, namespace, name)
}

// HiddenPods implements cluster.Cache.
func (c ClusterCache) HiddenPods(namespace, name string) ([]*corev1.Pod, error) {
	return hidden[*corev1.Pod](c.PodSet, namespace, name)
}

// HiddenPVCs implements cluster.Cache.
func (c ClusterCache) HiddenPVCs(namespace, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return hidden[*corev1.PersistentVolumeClaim](c.PVCSet, namespace, name)
}

// hidden returns the objects of recovery members of a cluster that were not published.
func hidden[T metav1.Object](set cache.Indexer, namespace, cluster string) ([]T, error) {
	found, err := set.ByIndex(byRecovery, indexed(namespace, cluster))
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(found))
	for _, object := range found {
		if o, ok := object.(T); ok && resources.IsHidden(o.GetLabels(), cluster) {
			list = append(list, o)
		}
	}
	return list, nil
}

// PodsInEndpoints implements cluster.Cache.
func (c ClusterCache) PodsInEndpoints(namespace, service string) (map[types.UID]bool, error) {
	slices, err := c.Slices.ByIndex(byService, indexed(namespace, service))
	if err != nil {
		return nil, err
	}
	inEndpoints := map[types.UID]bool{}
	for _, object := range slices {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && ptr.Deref(e.Conditions.Ready, true) {
				inEndpoints[e.TargetRef.UID] = true
			}
		}
	}
	return inEndpoints, nil
}

func selector(cluster string) labels.Selector {
	return labels.SelectorFromSet(resources.Labels(cluster))
}
