// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ConsidersVolumes is true if the rule for found volumes decides about PVCs of an earlier cluster.
func ConsidersVolumes(o *Observed) bool {
	return len(foundVolumes(o.Found)) > 0 && (takesBack(o) || !beginsOtherwise(o) && !takesOver(o.Cluster) && !hasBegun(o))
}

// beginsOtherwise is true for a cluster that a restore or a recovery fills.
func beginsOtherwise(o *Observed) bool {
	return IsFilledByRestore(o.Cluster, o.AwaitedRestore) || recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).IsInProgress()
}

// whySource waits if the cluster with one of the UIDs may still exist. Its PVCs are copies then, as in a namespace
// that a backup tool has restored under another name. They keep the cluster ID, the member IDs and the peer URLs. So
// members that start on them would join the raft group of that cluster, and acknowledge writes in place of its members.
func whySource(o *Observed, uids []string) *Wait {
	volumes := slices.DeleteFunc(foundVolumes(o.Found), func(f Found) bool { return !slices.Contains(uids, f.ClusterUID) })
	begin := fmt.Sprintf("take the labels from the PVCs: %s. Without spec.bootstrap.fromVolumes this cluster then begins empty, and an EtcdRestore fills it",
		removeLabels(o.Cluster, volumes, strings.Join(namesOf(volumes), " ")))
	for i := range volumes {
		f := &volumes[i]
		namespace, _, _ := strings.Cut(f.Source.Exists, "/")
		switch {
		case f.Source == (Source{}):
		case namespace == o.Cluster.Namespace:
			return &Wait{
				Reason: ReasonVolumesFound,
				Message: fmt.Sprintf("PVC %s holds data of EtcdCluster %s, which still exists. Its members have the same IDs, so a member on this PVC would take part in that cluster",
					f.Name, f.Source.Exists),
				Remedy: fmt.Sprintf("Restore a backup of %s instead. To do so, %s.", f.Source.Exists, begin),
			}
		default:
			return awaitSource(o.Cluster, f, begin)
		}
	}
	return nil
}

// awaitSource waits for a cluster of another namespace. The text is the same whether that exists or cannot be looked for.
// A user that reads this status may write the PVCs, too, and must not learn which EtcdClusters other namespaces have.
func awaitSource(c *v1beta2.EtcdCluster, f *Found, begin string) *Wait {
	if f.ClusterNamespace == "" {
		return &Wait{
			Reason: ReasonVolumesFound,
			Message: fmt.Sprintf("PVC %s does not say the namespace of its cluster, which may still exist. Either it exists in another namespace, or the controller may not list the EtcdClusters of all namespaces. "+
				"A member on a copied PVC would take part in the cluster of the original", f.Name),
			Remedy: fmt.Sprintf("If its members ran in this namespace, run: kubectl annotate pvc -n %s %s %s=%s. Otherwise restore a backup instead. To do so, %s.",
				c.Namespace, f.Name, resources.AnnotationClusterNamespace, c.Namespace, begin),
		}
	}
	return &Wait{
		Reason: ReasonVolumesFound,
		Message: fmt.Sprintf("PVC %s holds data of a cluster in namespace %s, which may still exist. Either it exists, or the controller may not list EtcdClusters there. "+
			"A member on a copied PVC would take part in the cluster of the original", f.Name, f.ClusterNamespace),
		Remedy: fmt.Sprintf("Restore a backup instead. To do so, %s. If that cluster no longer exists, allow the controller to list EtcdClusters in namespace %s.", begin, f.ClusterNamespace),
	}
}
