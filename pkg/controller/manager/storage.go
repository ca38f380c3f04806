// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
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
	// storageBackupRetry follows an attempt to create the EtcdBackup that failed: the API servers
	// start after their storage, and that starts after the controller has issued its certificates.
	storageBackupRetry = 5 * time.Second
	// storageBackupSchedule and storageBackupsKept are a day of backups. The interval is how long a
	// new EtcdCluster is at risk if the storage is lost.
	storageBackupSchedule = "*/30 * * * *"
	storageBackupsKept    = 48
)

// storageBackup returns the EtcdBackup of the etcd that stores the objects of the API servers.
func (o *Options) storageBackup() *v1beta2.EtcdBackup {
	var endpoints []string
	for i := range storageMembers {
		endpoints = append(endpoints, fmt.Sprintf("https://%s-%d.%s.%s.svc:2379", o.StorageService, i, o.StorageService, o.podNamespace))
	}
	return &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.podNamespace, Name: o.StorageService},
		Spec: v1beta2.BackupSpec{
			EtcdEndpoints:   endpoints,
			ClientTLSSecret: storagecert.ClientSecret(o.StorageService),
			StorageType:     v1beta2.BackupStorageTypePersistentVolumeClaim,
			BackupSource: v1beta2.BackupSource{
				PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: o.StorageBackupPVC, Path: o.StorageService},
			},
			BackupPolicy: &v1beta2.BackupPolicy{Schedule: storageBackupSchedule, MaxBackups: storageBackupsKept},
		},
	}
}

// createStorageBackup creates the EtcdBackup, and returns when it exists. A person may change it
// afterwards.
func createStorageBackup(ctx context.Context, etcd versioned.Interface, backup *v1beta2.EtcdBackup, clock clock.Clock) {
	logger := klog.FromContext(ctx)
	for {
		_, err := etcd.EtcdV1beta2().EtcdBackups(backup.Namespace).Create(ctx, backup, metav1.CreateOptions{})
		switch {
		case err == nil:
			logger.Info("EtcdBackup of the storage created", "backup", klog.KObj(backup), "schedule", backup.Spec.BackupPolicy.Schedule)
			return
		case apierrors.IsAlreadyExists(err):
			return
		case ctx.Err() == nil:
			logger.V(2).Info("EtcdBackup of the storage not created yet", "backup", klog.KObj(backup), "reason", err, "retryAfter", storageBackupRetry)
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
