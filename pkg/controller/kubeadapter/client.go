// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// Client reads and writes the live API.
type Client struct {
	Kubernetes kubernetes.Interface
	Etcd       versioned.Interface
	// Writes bounds the writes of the kinds of this group; see NewWrites. Nil is no bound.
	Writes *share.Buckets
}

// GetCluster implements the ports Objects of several reconcilers.
func (c Client) GetCluster(ctx context.Context, namespace, name string) (*v1beta2.EtcdCluster, error) {
	return c.Etcd.EtcdV1beta2().EtcdClusters(namespace).Get(ctx, name, metav1.GetOptions{})
}

// clustersOfAPage bounds the memory of a list of EtcdClusters, because a spec and a status may be large.
const clustersOfAPage = 100

// ListClusters implements cluster.Objects. All namespaces may have thousands of EtcdClusters.
func (c Client) ListClusters(ctx context.Context, namespace string) ([]v1beta2.EtcdCluster, error) {
	var clusters []v1beta2.EtcdCluster
	for options := (metav1.ListOptions{Limit: clustersOfAPage}); ; {
		list, err := c.Etcd.EtcdV1beta2().EtcdClusters(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			from := &list.Items[i]
			clusters = append(clusters, v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: strings.Clone(from.Namespace), Name: strings.Clone(from.Name), UID: types.UID(strings.Clone(string(from.UID))),
			}})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return clusters, nil
		}
	}
}

// UpdateClusterStatus implements the ports Objects of several reconcilers.
func (c Client) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return bounded(c, cluster, func() (*v1beta2.EtcdCluster, error) {
		return c.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).UpdateStatus(ctx, cluster, metav1.UpdateOptions{})
	})
}

// PatchFinalizers implements cluster.Objects. It is a patch, so that a field that this release does
// not know is kept.
func (c Client) PatchFinalizers(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion, "finalizers": cluster.Finalizers,
	}})
	if err != nil {
		return nil, fmt.Errorf("write the finalizers: %w", err)
	}
	return bounded(c, cluster, func() (*v1beta2.EtcdCluster, error) {
		return c.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// ForgetRestore implements cluster.Objects.
func (c Client) ForgetRestore(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion,
		"annotations": map[string]any{v1beta2.AnnotationRestore: nil, v1beta2.AnnotationRestoreUID: nil},
	}})
	if err != nil {
		return nil, fmt.Errorf("remove the annotations of the EtcdRestore: %w", err)
	}
	return bounded(c, cluster, func() (*v1beta2.EtcdCluster, error) {
		return c.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// CreateCluster implements restore.Objects.
func (c Client) CreateCluster(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return bounded(c, cluster, func() (*v1beta2.EtcdCluster, error) {
		return c.Etcd.EtcdV1beta2().EtcdClusters(cluster.Namespace).Create(ctx, cluster, metav1.CreateOptions{})
	})
}

// DeleteCluster implements restore.Objects.
func (c Client) DeleteCluster(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return c.Etcd.EtcdV1beta2().EtcdClusters(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}

// GetBackup implements backup.Objects.
func (c Client) GetBackup(ctx context.Context, namespace, name string) (*v1beta2.EtcdBackup, error) {
	return c.Etcd.EtcdV1beta2().EtcdBackups(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateBackup implements the ports Objects of several reconcilers.
func (c Client) CreateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return bounded(c, backup, func() (*v1beta2.EtcdBackup, error) {
		return c.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Create(ctx, backup, metav1.CreateOptions{})
	})
}

// ListBackups implements backup.Objects.
func (c Client) ListBackups(ctx context.Context, namespace string) ([]*v1beta2.EtcdBackup, error) {
	list, err := c.Etcd.EtcdV1beta2().EtcdBackups(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	backups := make([]*v1beta2.EtcdBackup, 0, len(list.Items))
	for i := range list.Items {
		backups = append(backups, &list.Items[i])
	}
	return backups, nil
}

// DeleteBackup implements backup.Objects.
func (c Client) DeleteBackup(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return c.Etcd.EtcdV1beta2().EtcdBackups(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}

// UpdateBackup implements backup.Objects.
func (c Client) UpdateBackup(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return bounded(c, backup, func() (*v1beta2.EtcdBackup, error) {
		return c.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Update(ctx, backup, metav1.UpdateOptions{})
	})
}

// UpdateBackupStatus implements backup.Objects.
func (c Client) UpdateBackupStatus(ctx context.Context, backup *v1beta2.EtcdBackup) (*v1beta2.EtcdBackup, error) {
	return bounded(c, backup, func() (*v1beta2.EtcdBackup, error) {
		return c.Etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).UpdateStatus(ctx, backup, metav1.UpdateOptions{})
	})
}

// GetRestore implements restore.Objects.
func (c Client) GetRestore(ctx context.Context, namespace, name string) (*v1beta2.EtcdRestore, error) {
	return c.Etcd.EtcdV1beta2().EtcdRestores(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListRestores implements backup.Objects.
func (c Client) ListRestores(ctx context.Context, namespace string) ([]*v1beta2.EtcdRestore, error) {
	list, err := c.Etcd.EtcdV1beta2().EtcdRestores(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	restores := make([]*v1beta2.EtcdRestore, 0, len(list.Items))
	for i := range list.Items {
		restores = append(restores, &list.Items[i])
	}
	return restores, nil
}

// CreateRestore implements cluster.Objects.
func (c Client) CreateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return bounded(c, restore, func() (*v1beta2.EtcdRestore, error) {
		return c.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).Create(ctx, restore, metav1.CreateOptions{})
	})
}

// UpdateRestore implements restore.Objects.
func (c Client) UpdateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return bounded(c, restore, func() (*v1beta2.EtcdRestore, error) {
		return c.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).Update(ctx, restore, metav1.UpdateOptions{})
	})
}

// UpdateRestoreStatus implements restore.Objects.
func (c Client) UpdateRestoreStatus(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return bounded(c, restore, func() (*v1beta2.EtcdRestore, error) {
		return c.Etcd.EtcdV1beta2().EtcdRestores(restore.Namespace).UpdateStatus(ctx, restore, metav1.UpdateOptions{})
	})
}
