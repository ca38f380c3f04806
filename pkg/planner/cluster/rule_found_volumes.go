// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ruleFoundVolumes waits while PVCs of an earlier cluster of this name exist, so that no cluster
// begins empty beside its own data. The user decides: with spec.bootstrap.fromVolumes the rule takes these
// PVCs back, and what else that cluster has left. Everything then is as in a cluster that has
// lost its status, and the rules below start its members on their data.
func ruleFoundVolumes(o *Observed) (Plan, bool) {
	switch volumes := foundVolumes(o.Found); {
	case takesBack(o):
		return takeBack(o)
	case !considersVolumes(o):
		return Plan{}, false // there are none, the cluster has begun, or it begins with other data
	default:
		if why := whyNoneTaken(o, formerClusters(o)); why != nil {
			return Plan{Wait: why, RequeueAfter: recheckSteady}, true // fromVolumes would lead to the same wait
		}
		without := beginWithout(o.Cluster)
		return wait(recheckSteady, ReasonVolumesFound, // each observation lists EtcdClusters
			fmt.Sprintf("%s of an earlier cluster of this name: %s. This cluster does not %s beside them",
				diagnosis.Count(len(volumes), "PVC"), describeVolumes(volumes), without),
			fmt.Sprintf("To go on with their data, run: kubectl patch etcdcluster %s -n %s --type=merge -p '%s'. To %s and keep them, take their labels away: %s",
				o.Cluster.Name, o.Cluster.Namespace, requestVolumes(o.Cluster), without, removeLabels(o.Cluster, volumes, strings.Join(namesOf(volumes), " ")))), true
	}
}

// requestVolumes is the merge patch that requests to take the PVCs back. A cluster begins with the data of one etcd, so it
// takes spec.bootstrap.existing away.
func requestVolumes(c *v1beta2.EtcdCluster) string {
	if takesOver(c) {
		return `{"spec":{"bootstrap":{"existing":null,"fromVolumes":{}}}}`
	}
	return `{"spec":{"bootstrap":{"fromVolumes":{}}}}`
}

// takesBack is true from the request until a quorum has confirmed what was taken back. The request counts when the
// first PVC has become one of this cluster. To remove spec.bootstrap later changes nothing: a cluster that has the data of
// some of its members needs that of the others. A backup tool may bring them back one by one.
func takesBack(o *Observed) bool { return o.Cluster.TakesVolumesBack() || awaitsConfirmation(o.PVCs) }

// IsFilledByRestore is true for a cluster that an existing EtcdRestore is about to fill. The annotation alone does
// not prove that: manifests and backups of a cluster keep the annotation of a restore that ended long ago.
func IsFilledByRestore(cluster *v1beta2.EtcdCluster, r *v1beta2.EtcdRestore) bool {
	if !awaitsRestore(cluster) || cluster.TakesVolumesBack() || r == nil || r.Spec.EtcdCluster.Name != cluster.Name {
		return false
	}
	uid := cluster.Annotations[v1beta2.AnnotationRestoreUID]
	return (uid == "" || uid == string(r.UID)) && r.Status.Phase != v1beta2.RestorePhaseSucceeded && r.Status.Phase != v1beta2.RestorePhaseFailed
}

// takeBack makes what an earlier cluster of this name has left part of this cluster. The record
// comes last: from then on the cluster is one that has begun.
func takeBack(o *Observed) (Plan, bool) {
	from, begun := formerClusters(o), isBootstrapped(o) && (o.Record.State == Current || hasOwnPVC(o.PVCs))
	if begun && (o.Etcd.Linearizable || len(from) != 1) {
		return Plan{}, false
	}
	if why := whyNoneTaken(o, from); why != nil {
		return Plan{Wait: why, RequeueAfter: recheckSteady}, true
	}
	if why := whyNotTakenBack(o); why != nil && !begun {
		return Plan{Wait: why, RequeueAfter: recheckWaiting}, true
	}
	var actions []Action
	for _, kind := range []ObjectKind{KindSecret, KindPVC, KindPod, KindBudget, KindService, KindRecord} {
		for i := range o.Found {
			if f := &o.Found[i]; f.Kind == kind && isTakenBack(o, f, from) {
				actions = append(actions, TakeBack{Object: f.Object, ClusterUID: f.ClusterUID})
			}
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}

// isTakenBack is true for a found object of the cluster that is taken back. Objects other than
// PVCs need not say their cluster: they hold nothing that decides about data.
func isTakenBack(o *Observed, f *Found, from []string) bool {
	uid := ""
	if len(from) == 1 {
		uid = from[0]
	}
	switch {
	case f.Controlled, !f.Labelled:
		return false
	case f.Kind == KindPVC:
		return f.ClusterUID == uid
	case f.Kind == KindPod:
		return f.ClusterUID == uid && !f.MayFill && hasVolume(o, f.Name, uid)
	default:
		return f.ClusterUID == resources.UnknownClusterUID || f.ClusterUID == uid
	}
}

// hasOwnPVC is true if a PVC was made for this cluster, or confirmed as its own. A cluster that has one has begun
// although its record is lost.
func hasOwnPVC(pvcs []PVC) bool {
	return slices.ContainsFunc(pvcs, func(c PVC) bool { return c.Owned && c.TakenBackFrom == "" })
}

// hasVolume is true if the PVC called name is taken back from the cluster with a UID, or was.
func hasVolume(o *Observed, name, uid string) bool {
	return pvcByName(o.PVCs, name) != nil ||
		slices.ContainsFunc(o.Found, func(f Found) bool { return f.Kind == KindPVC && f.Name == name && f.ClusterUID == uid })
}

// whyNotTakenBack returns what is in the way before the cluster has begun; nil if nothing is.
func whyNotTakenBack(o *Observed) *Wait {
	from := formerClusters(o)
	if pvcByName(o.PVCs, o.BootstrapName) != nil || podByName(o.Pods, o.BootstrapName) != nil {
		return &Wait{
			Reason:  ReasonVolumesFound,
			Message: "the bootstrap member " + o.BootstrapName + " of this cluster exists, and it begins empty",
			Remedy:  "Delete this EtcdCluster with whenDeleted: Delete, which deletes only what is its own, and create it again with spec.bootstrap.fromVolumes.",
		}
	}
	for i := range o.Found {
		switch f := &o.Found[i]; {
		case f.Kind == KindPVC && f.Controlled:
			return &Wait{
				Reason:  ReasonVolumesFound,
				Message: "PVC " + f.Name + " names an owner, so Kubernetes deletes it if that owner does not exist",
				Remedy:  unprotectFirst(o, KindPVC, f.Name) + "Wait until it no longer exists. If its data is needed, remove its owner references.",
			}
		case f.Kind == KindPod && !isTakenBack(o, f, from):
			return &Wait{
				Reason:  ReasonOldPods,
				Message: "pod " + f.Name + " of an earlier cluster of this name exists, and no PVC that is taken back has its data",
				Remedy:  "If its cluster was deleted, Kubernetes deletes the pod. Otherwise delete the pod. The PVCs stay.",
			}
		}
	}
	if len(foundVolumes(o.Found)) == 0 && !awaitsConfirmation(o.PVCs) && !hasBegun(o) {
		return &Wait{
			Reason:  ReasonVolumesNotFound,
			Message: "spec.bootstrap.fromVolumes is set, and no PVC in the namespace has the label etcd_cluster=" + o.Cluster.Name,
			Remedy:  "Bring the PVCs back with their names, labels and annotations. To begin empty, remove spec.bootstrap.",
		}
	}
	return nil
}

// formerClusters returns the UIDs of the earlier clusters whose PVCs are taken back or can be. PVCs
// that do not say their cluster count only if no other does: a released PVC says none. After this cluster
// has begun, only what belongs to PVCs that no quorum has confirmed is taken back: it came late.
func formerClusters(o *Observed) []string {
	var from []string
	for i := range o.PVCs {
		if c := &o.PVCs[i]; c.Owned && c.TakenBackFrom != "" {
			from = append(from, c.TakenBackFrom)
		}
	}
	if !isBootstrapped(o) || o.Record.State != Current {
		named, unnamed := []string(nil), []string(nil)
		for _, f := range foundVolumes(o.Found) {
			if f.ClusterUID == resources.UnknownClusterUID {
				unnamed = append(unnamed, f.ClusterUID)
			} else {
				named = append(named, f.ClusterUID)
			}
		}
		if from = append(from, named...); len(from) == 0 {
			from = unnamed
		}
	}
	slices.Sort(from)
	return slices.Compact(from)
}

// withoutLabels are arguments of kubectl label after which a PVC is not found any more. The PVC of a hidden recovery
// member has only the second label, and kubectl skips a label that a PVC does not have.
const withoutLabels = resources.LabelCluster + "- " + resources.LabelRecovery + "-"

// removeLabels returns the command after which PVCs are not found any more. While a PVC has the label of protected
// objects, the admission policy rejects the removal of the others, and its deletion.
func removeLabels(cluster *v1beta2.EtcdCluster, volumes []Found, names string) string {
	command := "kubectl label pvc -n " + cluster.Namespace + " " + names + " " + withoutLabels
	if !slices.ContainsFunc(volumes, func(f Found) bool { return f.Protected }) {
		return command
	}
	return command + " " + resources.LabelProtected + "- (as an administrator: the last of these labels protects the PVCs of the earlier cluster)"
}

// unprotectFirst comes before a remedy that ends in the deletion of an object of an earlier cluster; empty if
// the object is not protected. An object without the labels of this cluster may be that of another cluster, which
// would protect it again.
func unprotectFirst(o *Observed, kind ObjectKind, name string) string {
	if !slices.ContainsFunc(o.Found, func(f Found) bool { return f.Kind == kind && f.Name == name && f.Protected && f.Labelled }) {
		return ""
	}
	resource := map[ObjectKind]string{KindPVC: "pvc", KindService: "service", KindRecord: "configmap"}[kind]
	return fmt.Sprintf("It is protected from deletion, as its cluster was. An administrator removes its label first: kubectl label %s %s -n %s %s-. ",
		resource, name, o.Cluster.Namespace, resources.LabelProtected)
}

func namesOf(found []Found) []string {
	var names []string
	for i := range found {
		names = append(names, found[i].Name)
	}
	return names
}

// foundVolumes returns the PVCs that were found.
func foundVolumes(found []Found) []Found {
	return slices.DeleteFunc(slices.Clone(found), func(f Found) bool { return f.Kind != KindPVC })
}

// describeVolumes says of each PVC what it tells of itself.
func describeVolumes(volumes []Found) string {
	var list []string
	for i := range volumes {
		v := &volumes[i]
		facts := []string{"created " + v.Made.UTC().Format(time.DateTime)}
		if v.Version != "" {
			facts = append(facts, "etcd "+v.Version)
		}
		facts = append(facts, "cluster UID "+v.ClusterUID)
		list = append(list, v.Name+" ("+strings.Join(facts, ", ")+")")
	}
	return strings.Join(list, ", ")
}
