// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/storagecert"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

const (
	// storageMembers is how many members artifacts/ha gives the etcd of the API servers.
	storageMembers = 3
	// storagePort is the port of clients of that etcd, and of the Service of an API server that has
	// it inside.
	storagePort = 2379
	// apiServerService is the Service of the API servers in artifacts/install and in the chart.
	apiServerService = "etcd-operator-apiserver"
	// storageBackupRetry follows an attempt to create the EtcdBackup that failed: the API servers
	// start after their storage, and that starts after the controller has issued its certificates.
	storageBackupRetry = 5 * time.Second
	// storageBackupSchedule and storageBackupsKept are a day of backups. The interval is how long a
	// new EtcdCluster is at risk if the storage is lost. The first backup is due at once: it binds the
	// PVC, for which helm install --wait waits.
	storageBackupSchedule = "@every 30m"
	storageBackupsKept    = 48
)

// storageEndpoints returns the addresses of the etcd that stores the objects, if it is inside of the
// only API server, or else in members of its own.
func (o *Options) storageEndpoints(embeddedService string) []string {
	if embeddedService != "" {
		return []string{fmt.Sprintf("https://%s.%s.svc:%d", embeddedService, o.podNamespace, storagePort)}
	}
	var endpoints []string
	for i := range storageMembers {
		endpoints = append(endpoints, fmt.Sprintf("https://%s-%d.%s.%s.svc:%d", o.StorageService, i, o.StorageService, o.podNamespace, storagePort))
	}
	return endpoints
}

// isOtherStorage is true for the endpoints that the controller of the other kind of installation
// has written. They lead nowhere after the objects were moved. Those of a person stay.
func (o *Options) isOtherStorage(endpoints []string) bool {
	if o.StorageEmbeddedService != "" {
		return slices.Equal(endpoints, o.storageEndpoints(""))
	}
	return slices.Equal(endpoints, o.storageEndpoints(apiServerService))
}

// storageBackup returns the EtcdBackup of the etcd that stores the objects of the API servers.
func (o *Options) storageBackup() *v1beta2.EtcdBackup {
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.podNamespace, Name: o.StorageService},
		Spec: v1beta2.BackupSpec{
			EtcdEndpoints:   o.storageEndpoints(o.StorageEmbeddedService),
			ClientTLSSecret: storagecert.ClientSecret(o.StorageService),
			StorageType:     v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{
				PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: o.StorageBackupPVC, Path: o.StorageService},
			},
			BackupPolicy: &v1beta2.BackupPolicy{Schedule: storageBackupSchedule, MaxBackups: storageBackupsKept},
		},
	}
}

// ensureStorageBackup creates the EtcdBackup, and returns when it exists. A person may change it
// afterwards.
func ensureStorageBackup(ctx context.Context, etcd versioned.Interface, o *Options, clock clock.Clock) {
	backup := o.storageBackup()
	for {
		err := o.tryStorageBackup(ctx, etcd, backup)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("EtcdBackup of the storage not created yet", "backup", klog.KObj(backup), "reason", err, "retryAfter", storageBackupRetry)
		}
		timer := clock.NewTimer(storageBackupRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// tryStorageBackup creates the EtcdBackup, or follows the objects to another kind of installation.
func (o *Options) tryStorageBackup(ctx context.Context, etcd versioned.Interface, backup *v1beta2.EtcdBackup) error {
	logger := klog.FromContext(ctx)
	backups := etcd.EtcdV1beta2().EtcdBackups(backup.Namespace)
	_, err := backups.Create(ctx, backup, metav1.CreateOptions{})
	if err == nil {
		logger.Info("EtcdBackup of the storage created", "backup", klog.KObj(backup), "schedule", backup.Spec.BackupPolicy.Schedule)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := backups.Get(ctx, backup.Name, metav1.GetOptions{})
	if err != nil || !o.isOtherStorage(existing.Spec.EtcdEndpoints) {
		return err
	}
	existing.Spec.EtcdEndpoints = backup.Spec.EtcdEndpoints
	if _, err := backups.Update(ctx, existing, metav1.UpdateOptions{}); err != nil {
		return err
	}
	logger.Info("EtcdBackup of the storage follows the objects to their new storage", "backup", klog.KObj(backup), "endpoints", backup.Spec.EtcdEndpoints)
	return nil
}
