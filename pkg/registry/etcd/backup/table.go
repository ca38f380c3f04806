// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

func newTable(now clock.PassiveClock) kind.Table[*v1beta2.EtcdBackup] {
	return kind.Table[*v1beta2.EtcdBackup]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the backup."},
			{Name: "Cluster", Type: "string", Description: "Cluster or endpoint that is backed up."},
			{Name: "Storage", Type: "string", Description: "Kind of the store."},
			{Name: "Schedule", Type: "string", Description: "When a periodic backup is made."},
			{Name: "Revision", Type: "string", Description: "Revision of the key space in the last good backup."},
			{Name: "Size", Type: "string", Description: "Size of the last good snapshot."},
			{Name: "Verified", Type: "string", Description: "Whether the stored copy was proved good."},
			{Name: "Last-Success", Type: "string", Description: "Age of the last good backup."},
			{Name: "Phase", Type: "string", Description: "One-word summary."},
			{Name: "Age", Type: "string", Description: "Time since the object was created."},
			{Name: "URI", Type: "string", Priority: 1, Description: "Where the last good backup is."},
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
		kind.Or(string(backup.Spec.StorageType), kind.Unknown),
		scheduleCell(backup.Spec.BackupPolicy),
		revisionCell(status),
		sizeCell(status),
		verifiedCell(status),
		lastSuccessCell(status, now),
		phaseCell(backup),
		kind.Age(backup.CreationTimestamp, now),
		kind.Or(status.URI, kind.None),
		kind.Or(status.Reason, kind.None),
	}
}

func sourceCell(spec *v1beta2.BackupSpec) string {
	if spec.EtcdCluster != nil {
		return spec.EtcdCluster.Name
	}
	return kind.Or(strings.Join(spec.EtcdEndpoints, ","), kind.Unknown)
}

func scheduleCell(policy *v1beta2.BackupPolicy) string {
	if policy == nil {
		return kind.None
	}
	schedule := policy.Schedule
	if schedule == "" && policy.BackupIntervalInSecond > 0 {
		schedule = fmt.Sprintf("every %s", time.Duration(policy.BackupIntervalInSecond)*time.Second)
	}
	if schedule != "" && policy.Suspend {
		return schedule + " (suspended)"
	}
	return kind.Or(schedule, kind.None)
}

func revisionCell(status *v1beta2.BackupStatus) string {
	if status.EtcdRevision == 0 {
		return kind.None
	}
	return strconv.FormatInt(status.EtcdRevision, 10)
}

func sizeCell(status *v1beta2.BackupStatus) string {
	if status.SnapshotSize == 0 {
		return kind.None
	}
	return kind.Bytes(status.SnapshotSize)
}

func verifiedCell(status *v1beta2.BackupStatus) string {
	if status.LastSuccessDate.IsZero() {
		return kind.None
	}
	return strconv.FormatBool(status.Verified)
}

func lastSuccessCell(status *v1beta2.BackupStatus, now time.Time) string {
	if status.LastSuccessDate.IsZero() {
		return kind.None
	}
	return kind.Age(status.LastSuccessDate, now)
}

func phaseCell(backup *v1beta2.EtcdBackup) string {
	if backup.DeletionTimestamp != nil {
		return "Terminating"
	}
	return kind.Or(string(backup.Status.Phase), kind.Unknown)
}
