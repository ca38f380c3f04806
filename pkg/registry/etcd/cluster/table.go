// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

func newTable(now clock.PassiveClock) genericstore.Table[*v1beta2.EtcdCluster] {
	return genericstore.Table[*v1beta2.EtcdCluster]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
			{Name: "Size", Type: "string", Description: "Desired number of voting members."},
			{Name: "Ready", Type: "string", Description: "Members that serve clients, of the desired or the voting ones, whichever are more."},
			{Name: "Tolerance", Type: "string", Description: "How many more members may fail before the quorum is lost."},
			{Name: "Leader", Type: "string", Description: "Leader."},
			{Name: "Version", Type: "string", Description: "Lowest version of a member, and the version of an upgrade in progress."},
			{Name: "DB", Type: "string", Description: "Size of the largest database file of a member."},
			{Name: "Last-Backup", Type: "string", Description: "Age of the newest good backup."},
			{Name: "Phase", Type: "string", Description: "One-word summary. Of a cluster that runs and is not available: why."},
			{Name: "Age", Type: "string", Description: "Time since the object was created."},
			{Name: "Service", Type: "string", Priority: 1, Description: "Client Service and port."},
			{Name: "Message", Type: "string", Priority: 1, Description: "What the controller waits for, or what is wrong."},
		},
		Row:      row,
		Fallback: rest.NewDefaultTableConvertor(v1beta2.Resource("etcdclusters")),
		Clock:    now,
	}
}

func row(cluster *v1beta2.EtcdCluster, now time.Time) []any {
	status := &cluster.Status
	return []any{
		cluster.Name,
		sizeCell(cluster),
		readyCell(cluster),
		toleranceCell(status),
		cmp.Or(status.Leader, genericstore.Unknown),
		versionCell(status),
		databaseCell(status),
		lastBackupCell(status, now),
		phaseCell(cluster),
		genericstore.Age(cluster.CreationTimestamp, now),
		serviceCell(status),
		cmp.Or(messageCell(status), genericstore.None),
	}
}

// isObserved is false until the controller has written a status.
func isObserved(status *v1beta2.ClusterStatus) bool {
	return status.Phase != v1beta2.ClusterPhaseNone
}

func sizeCell(cluster *v1beta2.EtcdCluster) string {
	if cluster.Spec.Replicas == nil {
		return genericstore.Unknown
	}
	return strconv.Itoa(int(*cluster.Spec.Replicas))
}

func readyCell(cluster *v1beta2.EtcdCluster) string {
	if !isObserved(&cluster.Status) {
		return genericstore.Unknown
	}
	desired := ptr.Deref(cluster.Spec.Replicas, cluster.Status.Replicas)
	if desired > 0 {
		// During a scale-down more members vote than desired: 3/3 would look complete.
		desired = max(desired, cluster.Status.Replicas)
	}
	return fmt.Sprintf("%d/%d", len(cluster.Status.Members.Ready), desired)
}

func toleranceCell(status *v1beta2.ClusterStatus) string {
	if status.Tolerance == nil {
		return genericstore.Unknown
	}
	return strconv.Itoa(int(*status.Tolerance))
}

func versionCell(status *v1beta2.ClusterStatus) string {
	if status.CurrentVersion == "" {
		return genericstore.Unknown
	}
	if status.TargetVersion == "" || status.TargetVersion == status.CurrentVersion {
		return status.CurrentVersion
	}
	return status.CurrentVersion + "→" + status.TargetVersion
}

func databaseCell(status *v1beta2.ClusterStatus) string {
	if status.DBSize == 0 {
		return genericstore.Unknown
	}
	return genericstore.Bytes(status.DBSize)
}

func lastBackupCell(status *v1beta2.ClusterStatus, now time.Time) string {
	switch {
	case status.LastBackup != nil:
		return genericstore.Age(status.LastBackup.Time, now)
	case isObserved(status):
		return genericstore.None
	default:
		return genericstore.Unknown
	}
}

// phaseCell shows a deletion in progress, for which there is no phase, and why a cluster that runs does
// not serve or rejects writes.
func phaseCell(cluster *v1beta2.EtcdCluster) string {
	status := &cluster.Status
	if cluster.DeletionTimestamp != nil {
		return "Terminating"
	}
	if status.Phase == v1beta2.ClusterPhaseRunning {
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == v1beta2.ClusterConditionAvailable && c.Status != corev1.ConditionTrue {
				return cmp.Or(c.Reason, string(status.Phase))
			}
		}
	}
	return cmp.Or(string(status.Phase), genericstore.Unknown)
}

func serviceCell(status *v1beta2.ClusterStatus) string {
	if status.ServiceName == "" || status.ClientPort == 0 {
		return cmp.Or(status.ServiceName, genericstore.Unknown)
	}
	return net.JoinHostPort(status.ServiceName, strconv.Itoa(int(status.ClientPort)))
}

// messageCell returns the most helpful text: what the controller waits for, why the cluster
// failed, or the message of the first condition that reports a problem.
func messageCell(status *v1beta2.ClusterStatus) string {
	if status.BlockedBy != nil {
		return cmp.Or(status.BlockedBy.Message, status.BlockedBy.Reason)
	}
	if status.Reason != "" {
		return status.Reason
	}
	for _, problem := range []v1beta2.ClusterConditionType{
		v1beta2.ClusterConditionQuorumLost, v1beta2.ClusterConditionRecovering,
		v1beta2.ClusterConditionDegraded, v1beta2.ClusterConditionPaused,
	} {
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == problem && c.Status == corev1.ConditionTrue {
				return cmp.Or(c.Message, c.Reason)
			}
		}
	}
	return ""
}
