// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
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
	// apiServerPods selects the pods of the API servers in both.
	apiServerPods = "app.kubernetes.io/name=etcd-operator-apiserver,app.kubernetes.io/component=apiserver"
	// embeddedFlag is the flag of an API server that has the etcd inside.
	embeddedFlag = "--embedded-etcd-dir"
	// storageBackupRetry follows an attempt to create the EtcdBackup that failed: the API servers
	// start after their storage, and that starts after the controller has issued its certificates.
	storageBackupRetry = 5 * time.Second
	// storageBackupSchedule is how long a new EtcdCluster is at risk if the storage is lost. The first backup is due at
	// once: it binds the PVC, for which helm install --wait waits.
	storageBackupSchedule = "@every 30m"
	// storageBackupsKept is how many fit into the PVC of 4Gi, beside the one that is being made, if one namespace stores
	// as much as its limits allow. A backup is as large as the database: tenants choose what is in it, so compression
	// bounds nothing.
	storageBackupsKept = 12
)

// errStorageNotUsed means that the API servers do not use the storage of this controller's flags. The API servers of an
// installation that was applied over another installation reject their empty storage, and the old pod goes on serving the objects.
// A backup of the empty storage would be the newest one, and would delete those of the objects.
var errStorageNotUsed = errors.New("the API servers do not store their objects in the storage of --storage-service")

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
	backup := &v1beta2.EtcdBackup{
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
	o.scope().mark(backup)
	return backup
}

// isStorageUsed returns nil if every API server that is ready stores its objects in the storage of the flags.
func (o *Options) isStorageUsed(apiServers []corev1.Pod) error {
	used := false
	for _, pod := range apiServers {
		isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !isReady {
			continue
		}
		if isEmbedded(pod) != (o.StorageEmbeddedService != "") {
			return fmt.Errorf("%w, but pod %s serves them from another storage: move the objects with artifacts/ha/storage.sh, or apply the installation again that they are in", errStorageNotUsed, pod.Name)
		}
		used = true
	}
	if !used {
		return errors.New("no pod of the API servers is ready")
	}
	return nil
}

// isEmbedded is true for an API server that has the etcd inside.
func isEmbedded(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool {
			return arg == embeddedFlag || strings.HasPrefix(arg, embeddedFlag+"=")
		})
	})
}

// ensureStorageBackup creates the EtcdBackup, and returns when it exists and the API servers use the storage. A person may
// change it afterwards.
func ensureStorageBackup(ctx context.Context, kube kubernetes.Interface, etcd versioned.Interface, o *Options, clock clock.Clock) {
	logger, backup, isReported := klog.FromContext(ctx), o.storageBackup(), false
	for {
		err := o.tryStorageBackup(ctx, kube, etcd, backup)
		if err == nil {
			return
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errStorageNotUsed) && !isReported:
			// A person has to end this, so the log says it once at the level that is always on.
			logger.Info("EtcdBackup of the storage stays as it is", "backup", klog.KObj(backup), "reason", err)
			isReported = true
		default:
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

// tryStorageBackup creates the EtcdBackup, or follows the objects to another kind of installation. It does so only while
// the API servers use the storage. An EtcdBackup that was created with other flags gets the mark of these, or no
// controller would carry it out.
func (o *Options) tryStorageBackup(ctx context.Context, kube kubernetes.Interface, etcd versioned.Interface, backup *v1beta2.EtcdBackup) error {
	logger := klog.FromContext(ctx)
	apiServers, err := kube.CoreV1().Pods(o.podNamespace).List(ctx, metav1.ListOptions{LabelSelector: apiServerPods})
	if err != nil {
		return fmt.Errorf("list the pods of the API servers: %w", err)
	}
	if err := o.isStorageUsed(apiServers.Items); err != nil {
		return err
	}
	backups := etcd.EtcdV1beta2().EtcdBackups(backup.Namespace)
	_, err = backups.Create(ctx, backup, metav1.CreateOptions{})
	if err == nil {
		logger.Info("EtcdBackup of the storage created", "backup", klog.KObj(backup), "schedule", backup.Spec.BackupPolicy.Schedule)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := backups.Get(ctx, backup.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	moved, outside := o.isOtherStorage(existing.Spec.EtcdEndpoints), !o.scope().includes(existing)
	if !moved && !outside {
		return nil
	}
	if moved {
		existing.Spec.EtcdEndpoints = backup.Spec.EtcdEndpoints
	}
	o.scope().mark(existing)
	if _, err := backups.Update(ctx, existing, metav1.UpdateOptions{}); err != nil {
		return err
	}
	logger.Info("EtcdBackup of the storage follows the objects to their new storage, or the flags of this controller", "backup", klog.KObj(backup),
		"endpoints", existing.Spec.EtcdEndpoints, "scope", o.scope().String())
	return nil
}
