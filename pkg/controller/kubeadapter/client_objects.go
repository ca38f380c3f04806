// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// GetService implements cluster.Objects.
func (c Client) GetService(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateService implements cluster.Objects.
func (c Client) CreateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error) {
	return c.Kubernetes.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
}

// UpdateService implements cluster.Objects.
func (c Client) UpdateService(ctx context.Context, service *corev1.Service) (*corev1.Service, error) {
	return c.Kubernetes.CoreV1().Services(service.Namespace).Update(ctx, service, metav1.UpdateOptions{})
}

// GetConfigMap implements cluster.Objects.
func (c Client) GetConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return c.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateConfigMap implements cluster.Objects.
func (c Client) CreateConfigMap(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return c.Kubernetes.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
}

// UpdateConfigMap implements cluster.Objects.
func (c Client) UpdateConfigMap(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return c.Kubernetes.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
}

// GetSecret implements cluster.Objects.
func (c Client) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return c.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateSecret implements cluster.Objects.
func (c Client) CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return c.Kubernetes.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
}

// UpdateSecret implements cluster.Objects.
func (c Client) UpdateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return c.Kubernetes.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
}

// DeleteSecret implements cluster.Objects.
func (c Client) DeleteSecret(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return c.Kubernetes.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}

// GetPod implements cluster.Objects.
func (c Client) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.Kubernetes.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetNode implements cluster.Objects.
func (c Client) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return c.Kubernetes.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// NodeReports implements cluster.Objects. A kubelet reports by renewing the Lease of its node: clocks
// differ, so the time in a Lease does not show its age. A node without a Lease, such as a virtual one, is
// judged by its condition Ready alone, which the caller has read.
func (c Client) NodeReports(ctx context.Context, nodes []string) (map[string]string, error) {
	reports := map[string]string{}
	for _, name := range nodes {
		version, err := c.leaseVersion(ctx, name)
		if err != nil {
			return nil, err
		}
		if version != "" {
			reports[name] = version
		}
	}
	return reports, nil
}

// leaseVersion returns the resource version of the Lease of a node; empty if it has none.
func (c Client) leaseVersion(ctx context.Context, node string) (string, error) {
	lease, err := c.Kubernetes.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the Lease of node %s: %w", node, err)
	}
	return lease.ResourceVersion, nil
}

// ListPods implements cluster.Objects.
func (c Client) ListPods(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	list, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(name).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListControlledPods implements cluster.Objects. It keeps no page of the other pods.
func (c Client) ListControlledPods(ctx context.Context, cluster *v1beta2.EtcdCluster) ([]corev1.Pod, error) {
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return c.Kubernetes.CoreV1().Pods(cluster.Namespace).List(ctx, o)
	}))
	var controlled []corev1.Pod
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && resources.Owns(cluster, pod) {
			controlled = append(controlled, *pod)
		}
		return nil
	})
	return controlled, err
}

// CreatePod implements cluster.Objects.
func (c Client) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return c.Kubernetes.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
}

// UpdatePod implements cluster.Objects.
func (c Client) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return c.Kubernetes.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
}

// DeletePod implements cluster.Objects.
func (c Client) DeletePod(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return c.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}

// StopPod implements cluster.Objects. A second is the least that Kubernetes takes for a period: with none it removes the
// object at once, and nothing reports the end of the containers.
func (c Client) StopPod(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return c.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only, GracePeriodSeconds: ptr.To[int64](1)})
}

// GetPVC implements cluster.Objects.
func (c Client) GetPVC(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return c.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListPVCs implements cluster.Objects.
func (c Client) ListPVCs(ctx context.Context, namespace, name string) ([]corev1.PersistentVolumeClaim, error) {
	list, err := c.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(name).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListNamespacePVCs implements cluster.Objects.
func (c Client) ListNamespacePVCs(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	list, err := c.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreatePVC implements cluster.Objects.
func (c Client) CreatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c.Kubernetes.CoreV1().PersistentVolumeClaims(pvc.Namespace).Create(ctx, pvc, metav1.CreateOptions{})
}

// UpdatePVC implements cluster.Objects.
func (c Client) UpdatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c.Kubernetes.CoreV1().PersistentVolumeClaims(pvc.Namespace).Update(ctx, pvc, metav1.UpdateOptions{})
}

// DeletePVC implements cluster.Objects.
func (c Client) DeletePVC(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return c.Kubernetes.CoreV1().PersistentVolumeClaims(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}

// GetPodDisruptionBudget implements cluster.Objects.
func (c Client) GetPodDisruptionBudget(ctx context.Context, namespace, name string) (*policyv1.PodDisruptionBudget, error) {
	return c.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreatePodDisruptionBudget implements cluster.Objects.
func (c Client) CreatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return c.Kubernetes.PolicyV1().PodDisruptionBudgets(pdb.Namespace).Create(ctx, pdb, metav1.CreateOptions{})
}

// UpdatePodDisruptionBudget implements cluster.Objects.
func (c Client) UpdatePodDisruptionBudget(ctx context.Context, pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return c.Kubernetes.PolicyV1().PodDisruptionBudgets(pdb.Namespace).Update(ctx, pdb, metav1.UpdateOptions{})
}

// DeletePodDisruptionBudget implements cluster.Objects.
func (c Client) DeletePodDisruptionBudget(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	return c.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
}
