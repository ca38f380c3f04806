// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	etcdlisters "github.com/etcd-operator/etcd-operator/pkg/generated/listers/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Listers is the Cache that informers fill. The indexers have the indices of Indices: a
// namespace may hold the objects of a thousand clusters.
type Listers struct {
	Clusters etcdlisters.EtcdClusterLister
	Services corelisters.ServiceLister
	Budgets  policylisters.PodDisruptionBudgetLister
	PodSet   cache.Indexer
	ClaimSet cache.Indexer
	Slices   cache.Indexer
}

const (
	byCluster = "cluster"
	byService = "service"
)

// Indices find the objects of one cluster, and the EndpointSlices of one service.
func Indices() cache.Indexers {
	return cache.Indexers{byCluster: indexLabel(resources.LabelCluster), byService: indexLabel(discoveryv1.LabelServiceName)}
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
	wanted := selector(cluster)
	list := make([]T, 0, len(found))
	for _, object := range found {
		if o, ok := object.(T); ok && wanted.Matches(labels.Set(o.GetLabels())) {
			list = append(list, o)
		}
	}
	return list, nil
}

// Cluster implements Cache.
func (l Listers) Cluster(namespace, name string) (*v1beta2.EtcdCluster, error) {
	return l.Clusters.EtcdClusters(namespace).Get(name)
}

// Service implements Cache.
func (l Listers) Service(namespace, name string) (*corev1.Service, error) {
	return l.Services.Services(namespace).Get(name)
}

// PodDisruptionBudget implements Cache.
func (l Listers) PodDisruptionBudget(namespace, name string) (*policyv1.PodDisruptionBudget, error) {
	return l.Budgets.PodDisruptionBudgets(namespace).Get(name)
}

// Pods implements Cache.
func (l Listers) Pods(namespace, name string) ([]*corev1.Pod, error) {
	return of[*corev1.Pod](l.PodSet, namespace, name)
}

// Pod implements Cache.
func (l Listers) Pod(namespace, name string) (*corev1.Pod, error) {
	return corelisters.NewPodLister(l.PodSet).Pods(namespace).Get(name)
}

// Claim implements Cache.
func (l Listers) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return corelisters.NewPersistentVolumeClaimLister(l.ClaimSet).PersistentVolumeClaims(namespace).Get(name)
}

// Claims implements Cache.
func (l Listers) Claims(namespace, name string) ([]*corev1.PersistentVolumeClaim, error) {
	return of[*corev1.PersistentVolumeClaim](l.ClaimSet, namespace, name)
}

// Routed implements Cache.
func (l Listers) Routed(namespace, service string) (map[types.UID]bool, error) {
	slices, err := l.Slices.ByIndex(byService, indexed(namespace, service))
	if err != nil {
		return nil, err
	}
	routed := map[types.UID]bool{}
	for _, object := range slices {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && ptr.Deref(e.Conditions.Ready, true) {
				routed[e.TargetRef.UID] = true
			}
		}
	}
	return routed, nil
}

func selector(cluster string) labels.Selector {
	return labels.SelectorFromSet(resources.Labels(cluster))
}

// API is the live API, through clients.
type API struct {
	Kubernetes kubernetes.Interface
	Etcd       versioned.Interface
}

// GetCluster implements Objects.
func (a API) GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(namespace).Get(ctx, name, metav1.GetOptions{})
}

// UpdateClusterStatus implements Objects.
func (a API) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return a.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
}

// PatchFinalizers implements Objects. It is a patch, so that a field that this release does
// not know is kept.
func (a API) PatchFinalizers(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion, "finalizers": cluster.Finalizers,
	}})
	if err != nil {
		return nil, fmt.Errorf("write the finalizers: %w", err)
	}
	return a.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// GetService implements Objects.
func (a API) GetService(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return a.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateService implements Objects.
func (a API) CreateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error) {
	return a.Kubernetes.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
}

// UpdateService implements Objects.
func (a API) UpdateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error) {
	return a.Kubernetes.CoreV1().Services(service.Namespace).Update(ctx, service, metav1.UpdateOptions{})
}

// GetSecret implements Objects.
func (a API) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return a.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateSecret implements Objects.
func (a API) CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return a.Kubernetes.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
}

// UpdateSecret implements Objects.
func (a API) UpdateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return a.Kubernetes.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
}

// GetPod implements Objects.
func (a API) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return a.Kubernetes.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListPods implements Objects.
func (a API) ListPods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	list, err := a.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(name).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreatePod implements Objects.
func (a API) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return a.Kubernetes.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
}

// UpdatePod implements Objects.
func (a API) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return a.Kubernetes.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
}

// DeletePod implements Objects.
func (a API) DeletePod(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return a.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}

// GetClaim implements Objects.
func (a API) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return a.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListClaims implements Objects.
func (a API) ListClaims(ctx context.Context, namespace, name string) ([]corev1.PersistentVolumeClaim, error) {
	list, err := a.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(name).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListNamespaceClaims implements Objects.
func (a API) ListNamespaceClaims(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	list, err := a.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreateClaim implements Objects.
func (a API) CreateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return a.Kubernetes.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
}

// UpdateClaim implements Objects.
func (a API) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return a.Kubernetes.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
}

// DeleteClaim implements Objects.
func (a API) DeleteClaim(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return a.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}

// CreateRestore implements Objects.
func (a API) CreateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return a.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).Create(ctx, restore, metav1.CreateOptions{})
}

// GetPodDisruptionBudget implements Objects.
func (a API) GetPodDisruptionBudget(ctx context.Context, namespace, name string) (*policyv1.PodDisruptionBudget, error) {
	return a.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreatePodDisruptionBudget implements Objects.
func (a API) CreatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return a.Kubernetes.PolicyV1().PodDisruptionBudgets(pdb.Namespace).Create(ctx, pdb, metav1.CreateOptions{})
}

// UpdatePodDisruptionBudget implements Objects.
func (a API) UpdatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return a.Kubernetes.PolicyV1().PodDisruptionBudgets(pdb.Namespace).Update(ctx, pdb, metav1.UpdateOptions{})
}

// DeletePodDisruptionBudget implements Objects.
func (a API) DeletePodDisruptionBudget(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return a.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}
