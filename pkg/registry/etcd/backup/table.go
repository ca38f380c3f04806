// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

func newTable(now clock.PassiveClock) genericstore.Table[*v1beta2.EtcdBackup] {
	return genericstore.Table[*v1beta2.EtcdBackup]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the backup."},
			{Name: "Cluster", Type: "string", Description: "Cluster or endpoints to back up."},
			{Name: "Storage", Type: "string", Description: "Kind of the store."},
			{Name: "Schedule", Type: "string", Description: "Schedule of the backups."},
			{Name: "Revision", Type: "string", Description: "Revision of the last good backup."},
			{Name: "Size", Type: "string", Description: "Size of the last good snapshot, before compression and encryption."},
			{Name: "Verified", Type: "string", Description: "Whether the stored copy was verified."},
			{Name: "Last-Success", Type: "string", Description: "Age of the last good backup."},
			{Name: "Phase", Type: "string", Description: "One-word summary."},
			{Name: "Age", Type: "string", Description: "Time since the object was created."},
			{Name: "URI", Type: "string", Priority: 1, Description: "Location of the last good backup."},
			{Name: "Message", Type: "string", Priority: 1, Description: "Why the last backup failed."},
		},
		Row:      row,
		Fallback: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdbackups")),
		Clock:    now,
	}
}

func row(backup *v1beta2.EtcdBackup, now time.Time) []any {
	status := &backup.Status
	return []any{
		backup.Name,
		sourceCell(&backup.Spec),
		cmp.Or(string(backup.Spec.StorageType), genericstore.Unknown),
		scheduleCell(backup.Spec.BackupPolicy),
		revisionCell(status),
		sizeCell(status),
		verifiedCell(status),
		lastSuccessCell(status, now),
		phaseCell(backup),
		genericstore.Age(backup.CreationTimestamp, now),
		cmp.Or(status.URI, genericstore.None),
		cmp.Or(status.Reason, genericstore.None),
	}
}

func sourceCell(spec *v1beta2.BackupSpec) string {
	if spec.EtcdCluster != nil {
		return spec.EtcdCluster.Name
	}
	return cmp.Or(strings.Join(spec.EtcdEndpoints, ","), genericstore.Unknown)
}

func scheduleCell(policy *v1beta2.BackupPolicy) string {
	if policy == nil {
		return genericstore.None
	}
	schedule := policy.Schedule
	if schedule == "" && policy.BackupIntervalInSecond > 0 {
		schedule = fmt.Sprintf("every %s", time.Duration(policy.BackupIntervalInSecond)*time.Second)
	}
	if schedule != "" && policy.Suspend {
		return schedule + " (suspended)"
	}
	return cmp.Or(schedule, genericstore.None)
}

func revisionCell(status *v1beta2.BackupStatus) string {
	if status.EtcdRevision == 0 {
		return genericstore.None
	}
	return strconv.FormatInt(status.EtcdRevision, 10)
}

func sizeCell(status *v1beta2.BackupStatus) string {
	if status.SnapshotSize == 0 {
		return genericstore.None
	}
	return genericstore.Bytes(status.SnapshotSize)
}

func verifiedCell(status *v1beta2.BackupStatus) string {
	if status.LastSuccessDate.IsZero() {
		return genericstore.None
	}
	return strconv.FormatBool(status.Verified)
}

func lastSuccessCell(status *v1beta2.BackupStatus, now time.Time) string {
	if status.LastSuccessDate.IsZero() {
		return genericstore.None
	}
	return genericstore.Age(status.LastSuccessDate, now)
}

func phaseCell(backup *v1beta2.EtcdBackup) string {
	if backup.DeletionTimestamp != nil {
		return "Terminating"
	}
	return cmp.Or(string(backup.Status.Phase), genericstore.Unknown)
}
