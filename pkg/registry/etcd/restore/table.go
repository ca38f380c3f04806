// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

func newTable(now clock.PassiveClock) genericstore.Table[*v1beta2.EtcdRestore] {
	return genericstore.Table[*v1beta2.EtcdRestore]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the restore."},
			{Name: "Cluster", Type: "string", Description: "Cluster to restore."},
			{Name: "Source", Type: "string", Description: "EtcdBackup or kind of store with the backup."},
			{Name: "Revision", Type: "string", Description: "Revision of the restored key space."},
			{Name: "Progress", Type: "string", Description: "Part of the data that is transferred."},
			{Name: "Phase", Type: "string", Description: "One-word summary."},
			{Name: "Age", Type: "string", Description: "Time since the object was created."},
			{Name: "Message", Type: "string", Priority: 1, Description: "Why the restore failed, or what it waits for."},
		},
		Row:      row,
		Fallback: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdrestores")),
		Clock:    now,
	}
}

func row(restore *v1beta2.EtcdRestore, now time.Time) []any {
	status := &restore.Status
	return []any{
		restore.Name,
		cmp.Or(restore.Spec.EtcdCluster.Name, genericstore.Unknown),
		sourceCell(&restore.Spec),
		revisionCell(status),
		progressCell(status),
		phaseCell(restore),
		genericstore.Age(restore.CreationTimestamp, now),
		cmp.Or(messageCell(status), genericstore.None),
	}
}

func sourceCell(spec *v1beta2.RestoreSpec) string {
	if spec.Backup == nil {
		return cmp.Or(string(spec.BackupStorageType), genericstore.Unknown)
	}
	if spec.Backup.Revision != nil {
		return fmt.Sprintf("etcdbackup/%s@%d", spec.Backup.Name, *spec.Backup.Revision)
	}
	return "etcdbackup/" + spec.Backup.Name
}

func revisionCell(status *v1beta2.RestoreStatus) string {
	if status.Revision == 0 {
		return genericstore.None
	}
	return strconv.FormatInt(status.Revision, 10)
}

func progressCell(status *v1beta2.RestoreStatus) string {
	switch {
	case status.Progress == nil:
		return genericstore.None
	case status.Progress.TotalBytes > 0:
		return fmt.Sprintf("%d%%", status.Progress.Bytes*100/status.Progress.TotalBytes)
	default:
		return genericstore.Bytes(status.Progress.Bytes)
	}
}

func messageCell(status *v1beta2.RestoreStatus) string {
	if c := meta.FindStatusCondition(status.Conditions, "Progressing"); status.Reason == "" && c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return status.Reason
}

func phaseCell(restore *v1beta2.EtcdRestore) string {
	if restore.DeletionTimestamp != nil {
		return "Terminating"
	}
	return cmp.Or(string(restore.Status.Phase), genericstore.Unknown)
}
