// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// readWithin is how long a person takes to read the status of a new cluster.
const readWithin = 5 * time.Second

// watchFound is a person that created a cluster and does what its status asks for until it is ready. A budget of an
// earlier cluster is named when everything else is done.
func (w *World) watchFound(uid types.UID) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	isReady := found && slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Type == v1beta2.ClusterConditionReady && c.Status == corev1.ConditionTrue
	})
	if !found || isReady || cluster.UID != uid || cluster.DeletionTimestamp != nil {
		return
	}
	w.decideAboutFound(cluster)
	w.After(readWithin, func() { w.watchFound(uid) })
}

// decideAboutFound decides about the PVCs of an earlier cluster that the status names.
func (w *World) decideAboutFound(cluster *v1beta2.EtcdCluster) {
	b := cluster.Status.BlockedBy
	switch {
	case b == nil:
		return
	case b.Reason == string(planner.ReasonOldPods), b.Reason == string(planner.ReasonNameConflict):
		w.deleteFormer(cluster, b.Message)
		return
	case b.Reason != string(planner.ReasonVolumesFound) || cluster.TakesVolumesBack():
		return
	}
	from := map[string]bool{}
	var pvcs []kubernetes.PVC
	for _, object := range w.Store.List(kubernetes.KindPVC) {
		if pvc := object.(kubernetes.PVC); resources.MayHoldFormerMember(cluster, pvc) && resources.IsLabelled(pvc, cluster.Name) {
			pvcs = append(pvcs, pvc)
			from[resources.FormerClusterUID(pvc)] = true
		}
	}
	if w.Plan.TakesBack && len(from) == 1 {
		for uid := range from {
			w.Trace("a person takes the PVCs of cluster %s back", uid)
			w.Checks.TakenBack(uid, string(cluster.UID))
		}
		w.Change(func(s *v1beta2.ClusterSpec) {
			s.Bootstrap = &v1beta2.BootstrapPolicy{FromVolumes: &v1beta2.FromVolumes{}}
		})
		return
	}
	for _, pvc := range pvcs {
		label := resources.LabelCluster
		if resources.IsHidden(pvc.Labels, cluster.Name) {
			label = resources.LabelRecovery
		}
		w.Trace("a person takes the label %s of PVC %s away", label, pvc.Name)
		w.unlabelled[pvc.UID] = label
		kubernetes.Edit(w.Store, kubernetes.KindPVC, pvc.Name, func(p *corev1.PersistentVolumeClaim) { delete(p.Labels, label) })
	}
}

// deleteFormer deletes the object of an earlier cluster that the status names, if nothing else deletes it.
func (w *World) deleteFormer(cluster *v1beta2.EtcdCluster, message string) {
	prefixes := []string{"pod ", "ConfigMap ", "Service ", "secret ", "PodDisruptionBudget "}
	for i, k := range []kubernetes.Kind{kubernetes.KindPod, kubernetes.KindRecord, kubernetes.KindService, kubernetes.KindSecret, kubernetes.KindBudget} {
		prefix := prefixes[i]
		for _, object := range w.Store.List(k) {
			if strings.HasPrefix(message, prefix+object.GetName()+" ") && !resources.Owns(cluster, object) && (w.Quiet || len(object.GetOwnerReferences()) == 0) {
				w.Trace("a person deletes %s%s of an earlier cluster", prefix, object.GetName())
				uid := object.GetUID()
				_ = w.Store.DeleteObject(k, object.GetName(), metav1.Preconditions{UID: &uid})
			}
		}
	}
}

// bringBack is a backup tool that brings a namespace back: the objects have no owners, and the EtcdCluster
// is a new object without a status. The pods come back with their volumes, or do not come back.
func (w *World) bringBack(e schedules.Event) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || cluster.DeletionTimestamp != nil {
		return
	}
	w.Disturb()
	w.Checks.Deleted[string(cluster.UID)] = true
	w.Store.Remove(kubernetes.KindCluster, schedules.ClusterName)
	for _, k := range []kubernetes.Kind{kubernetes.KindService, kubernetes.KindRecord, kubernetes.KindSecret, kubernetes.KindPVC, kubernetes.KindPod, kubernetes.KindBudget} {
		for _, object := range w.Store.List(k) {
			if k == kubernetes.KindPod && e.B%2 == 0 {
				w.Store.Remove(k, object.GetName())
				continue
			}
			kubernetes.Edit(w.Store, k, object.GetName(), func(o metav1.Object) { o.SetOwnerReferences(nil) })
		}
	}
	if e.A%3 == 0 {
		w.Store.Remove(kubernetes.KindRecord, schedules.RecordName)
	}
	w.After(e.For, w.CreateCluster)
}

// BringOneBack is bringBack without pods, and with the PVC of one member only.
func (w *World) BringOneBack() {
	w.bringBack(schedules.Event{A: 1, For: 10 * time.Second})
	for i, object := range w.Store.List(kubernetes.KindPVC) {
		if i > 0 {
			w.Store.Remove(kubernetes.KindPVC, object.GetName())
		}
	}
}

// labelAgain gives the PVCs of a cluster that exists again the label back that a person has taken away while
// another cluster had its name.
func (w *World) labelAgain(cluster *v1beta2.EtcdCluster) {
	for _, object := range w.Store.List(kubernetes.KindPVC) {
		if pvc := object.(kubernetes.PVC); resources.Owns(cluster, pvc) && w.unlabelled[pvc.UID] != "" {
			w.Trace("a person labels PVC %s again", pvc.Name)
			kubernetes.Edit(w.Store, kubernetes.KindPVC, pvc.Name, func(p *corev1.PersistentVolumeClaim) {
				metav1.SetMetaDataLabel(&p.ObjectMeta, w.unlabelled[p.UID], schedules.ClusterName)
			})
		}
	}
}
