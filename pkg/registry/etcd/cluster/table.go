// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

func newTable(now clock.PassiveClock) kind.Table[*v1beta2.EtcdCluster] {
	return kind.Table[*v1beta2.EtcdCluster]{
		Columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name of the cluster."},
			{Name: "Size", Type: "string", Description: "Number of voting members that is wanted."},
			{Name: "Ready", Type: "string", Description: "Members that serve clients, of those that are wanted or still vote."},
			{Name: "Tolerance", Type: "string", Description: "How many more members may fail before the quorum is lost."},
			{Name: "Leader", Type: "string", Description: "Member that leads."},
			{Name: "Version", Type: "string", Description: "Lowest version that a member runs, and where an upgrade goes to."},
			{Name: "DB", Type: "string", Description: "Size of the largest database file of a member."},
			{Name: "Last-Backup", Type: "string", Description: "Age of the newest good backup."},
			{Name: "Phase", Type: "string", Description: "One-word summary."},
			{Name: "Age", Type: "string", Description: "Time since the object was created."},
			{Name: "Service", Type: "string", Priority: 1, Description: "Service and port for clients."},
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
		wantedCell(cluster),
		readyCell(cluster),
		toleranceCell(status),
		kind.Or(status.Leader, kind.Unknown),
		versionCell(status),
		databaseCell(status),
		lastBackupCell(status, now),
		phaseCell(cluster),
		kind.Age(cluster.CreationTimestamp, now),
		serviceCell(status),
		kind.Or(message(status), kind.None),
	}
}

// observed is false until the controller has written a status.
func observed(status *v1beta2.ClusterStatus) bool {
	return status.Phase != v1beta2.ClusterPhaseNone
}

func wantedCell(cluster *v1beta2.EtcdCluster) string {
	if cluster.Spec.Replicas == nil {
		return kind.Unknown
	}
	return strconv.Itoa(int(*cluster.Spec.Replicas))
}

func readyCell(cluster *v1beta2.EtcdCluster) string {
	if !observed(&cluster.Status) {
		return kind.Unknown
	}
	wanted := ptr.Deref(cluster.Spec.Replicas, cluster.Status.Replicas)
	if wanted > 0 {
		// A member too many votes until it has left: 3 of 3 with 4 voters is not the end.
		wanted = max(wanted, cluster.Status.Replicas)
	}
	return fmt.Sprintf("%d/%d", len(cluster.Status.Members.Ready), wanted)
}

func toleranceCell(status *v1beta2.ClusterStatus) string {
	if status.Tolerance == nil {
		return kind.Unknown
	}
	return strconv.Itoa(int(*status.Tolerance))
}

func versionCell(status *v1beta2.ClusterStatus) string {
	if status.CurrentVersion == "" {
		return kind.Unknown
	}
	if status.TargetVersion == "" || status.TargetVersion == status.CurrentVersion {
		return status.CurrentVersion
	}
	return status.CurrentVersion + "→" + status.TargetVersion
}

func databaseCell(status *v1beta2.ClusterStatus) string {
	if status.DBSize == 0 {
		return kind.Unknown
	}
	return kind.Bytes(status.DBSize)
}

func lastBackupCell(status *v1beta2.ClusterStatus, now time.Time) string {
	switch {
	case status.LastBackup != nil:
		return kind.Age(status.LastBackup.Time, now)
	case observed(status):
		return kind.None
	default:
		return kind.Unknown
	}
}

// phaseCell shows a deletion under way, which no phase does.
func phaseCell(cluster *v1beta2.EtcdCluster) string {
	if cluster.DeletionTimestamp != nil {
		return "Terminating"
	}
	return kind.Or(string(cluster.Status.Phase), kind.Unknown)
}

func serviceCell(status *v1beta2.ClusterStatus) string {
	if status.ServiceName == "" || status.ClientPort == 0 {
		return kind.Or(status.ServiceName, kind.Unknown)
	}
	return net.JoinHostPort(status.ServiceName, strconv.Itoa(int(status.ClientPort)))
}

// message picks the one text that helps most: what is waited for, why the cluster
// failed, or the first condition that says that something is wrong.
func message(status *v1beta2.ClusterStatus) string {
	if status.BlockedBy != nil {
		return kind.Or(status.BlockedBy.Message, status.BlockedBy.Reason)
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
				return kind.Or(c.Message, c.Reason)
			}
		}
	}
	return ""
}
