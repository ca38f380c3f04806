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

// considersVolumes is true if the rule for found volumes decides about PVCs of an earlier cluster. A cluster that joins a running
// etcd waits beside them, too: spec.bootstrap.existing stays in manifests and backups after the take-over has ended.
func considersVolumes(o *Observed) bool {
	return len(foundVolumes(o.Found)) > 0 && (takesBack(o) || !BeginsOtherwise(o) && !hasBegun(o))
}

// MostSources bounds the lists of one observation. The PVCs of one cluster name one source. Users of the namespace can write
// other sources on PVCs, and each one costs a list of all EtcdClusters.
const MostSources = 4

// SoughtSource returns the UID of the earlier cluster whose PVCs this cluster may go on with. It is empty if there is none, and
// if there are several: a user chooses one first.
func SoughtSource(o *Observed) string {
	if from := formerClusters(o); len(from) == 1 && considersVolumes(o) {
		return from[0]
	}
	return ""
}

// BeginsOtherwise is true for a cluster that a restore or a recovery fills.
func BeginsOtherwise(o *Observed) bool {
	return IsFilledByRestore(o.Cluster, o.AwaitedRestore) || recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).IsInProgress()
}

// whyNoneTaken waits if no request takes the PVCs of the earlier clusters back: there are several, or the only one may
// still exist.
func whyNoneTaken(o *Observed, from []string) *Wait {
	if len(from) <= 1 {
		return whySource(o, from)
	}
	volumes, others := foundVolumes(o.Found), "the PVCs of the others"
	if !takesBack(o) {
		others += ", or from all of them to " + beginWithout(o.Cluster)
	}
	return &Wait{
		Reason: ReasonVolumesFound,
		Message: fmt.Sprintf("the PVCs are of %d earlier clusters of this name, and a cluster goes on with the data of one: %s",
			len(from), describeVolumes(volumes)),
		Remedy: "Choose one, and take the labels from " + others + ", such as with: " + removeLabels(o.Cluster, volumes, "NAME"),
	}
}

// beginWithout says what a cluster does that finds no PVCs of an earlier cluster.
func beginWithout(c *v1beta2.EtcdCluster) string {
	if takesOver(c) {
		return "join the etcd in spec.bootstrap.existing"
	}
	return "begin empty"
}

// whySource waits if the cluster with the UID may still exist. Its PVCs are copies then, as in a namespace
// that a backup tool has restored under another name. They keep the cluster ID, the member IDs and the peer URLs. So
// members that start on them would join the raft group of that cluster, and acknowledge writes in place of its members.
func whySource(o *Observed, from []string) *Wait {
	volumes := slices.DeleteFunc(foundVolumes(o.Found), func(f Found) bool { return !slices.Contains(from, f.ClusterUID) })
	begin := fmt.Sprintf("take the labels from the PVCs: %s. Without spec.bootstrap this cluster then begins empty, and an EtcdRestore fills it",
		removeLabels(o.Cluster, volumes, strings.Join(namesOf(volumes), " ")))
	for i := range volumes {
		f := &volumes[i]
		namespace, _, _ := strings.Cut(f.Source.Exists, "/")
		switch {
		case f.Source == (Source{}):
		case f.Source.Beyond:
			return &Wait{
				Reason: ReasonVolumesFound,
				Message: fmt.Sprintf("the cluster whose data PVC %s holds may still exist. The controller has not looked for it, because the PVCs of that cluster name more than %d namespaces",
					f.Name, MostSources),
				Remedy: fmt.Sprintf("A cluster has one namespace. Correct the annotation %s of the PVCs that name another namespace. Otherwise restore a backup instead. To do so, %s.",
					resources.AnnotationClusterNamespace, begin),
			}
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
