// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

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
		switch f := &volumes[i]; {
		case f.Source.Exists != "":
			return &Wait{
				Reason: ReasonVolumesFound,
				Message: fmt.Sprintf("PVC %s holds data of EtcdCluster %s, which still exists. Its members have the same IDs, so a member on this PVC would take part in that cluster",
					f.Name, f.Source.Exists),
				Remedy: fmt.Sprintf("Restore a backup of %s instead. To do so, %s.", f.Source.Exists, begin),
			}
		case f.Source.Unchecked && f.ClusterNamespace == "":
			return &Wait{
				Reason:  ReasonVolumesFound,
				Message: "PVC " + f.Name + " does not say the namespace of its cluster, and the controller may not list the EtcdClusters of all namespaces. So that cluster may still exist",
				Remedy: fmt.Sprintf("If its members ran in this namespace, run: kubectl annotate pvc -n %s %s %s=%s. Otherwise restore a backup instead. To do so, %s.",
					o.Cluster.Namespace, f.Name, resources.AnnotationClusterNamespace, o.Cluster.Namespace, begin),
			}
		case f.Source.Unchecked:
			return &Wait{
				Reason:  ReasonVolumesFound,
				Message: fmt.Sprintf("PVC %s holds data of a cluster in namespace %s, where the controller may not list EtcdClusters. So that cluster may still exist", f.Name, f.ClusterNamespace),
				Remedy:  fmt.Sprintf("Allow the controller to list EtcdClusters in namespace %s, or restore a backup instead. To do so, %s.", f.ClusterNamespace, begin),
			}
		}
	}
	return nil
}
