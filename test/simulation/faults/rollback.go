// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// apiBackup is what its own etcd had stored at a moment: the EtcdCluster, if
// there was one, and the EtcdRestores that had not ended.
type apiBackup struct {
	cluster kubernetes.EtcdCluster
	version int64
	// asked are the EtcdRestores that had asked the cluster already.
	asked map[string]bool
}

// bumped is by how much resource versions go on when the user has asked for that.
const bumped = 1_000_000_000

// saveAPI makes a backup of our API, which is brought back later.
func (w *World) saveAPI(e schedules.Event) {
	saved := &apiBackup{version: w.Store.Versions[kubernetes.KindCluster], asked: maps.Clone(w.Restores)}
	saved.cluster, _ = kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	w.After(e.For, func() {
		if w.Violation == nil {
			w.rollBack(e, saved)
		}
	})
}

// rebuildAPI is for an API whose storage was lost without a backup: the EtcdCluster
// is made again from its record.
func (w *World) rebuildAPI(e schedules.Event) {
	record, found := kubernetes.Lookup[*corev1.ConfigMap](w.Store, kubernetes.KindRecord, schedules.RecordName)
	if !found {
		return
	}
	cluster, err := resources.RecordedCluster(record)
	if err != nil {
		return // it was created a moment ago
	}
	version := w.Store.Versions[kubernetes.KindCluster]
	cluster.ResourceVersion = strconv.FormatInt(version, 10)
	w.rollBack(e, &apiBackup{cluster: cluster, version: version})
}

// rollBack restores the objects of our API to an earlier state. Garbage collection deletes
// objects whose owner is an EtcdCluster that does not exist now.
func (w *World) rollBack(e schedules.Event, saved *apiBackup) {
	w.Disturb()
	w.Trace("EVENT the API is as it was %v ago", e.For)
	w.Stats.Fault("operator state rolled back")
	s := w.Store
	was, found := kubernetes.Lookup[kubernetes.EtcdCluster](s, kubernetes.KindCluster, schedules.ClusterName)
	if e.A%2 == 0 {
		s.Versions[kubernetes.KindCluster] += bumped
	} else {
		s.Versions[kubernetes.KindCluster] = saved.version
	}
	if found && (saved.cluster == nil || saved.cluster.UID != was.UID) {
		w.Checks.Deleted[string(was.UID)] = true
		s.Remove(kubernetes.KindCluster, schedules.ClusterName)
		w.lose(was)
	}
	if saved.cluster != nil {
		if !found || *was.Spec.Replicas != *saved.cluster.Spec.Replicas {
			w.Checks.Resized(*saved.cluster.Spec.Replicas)
		}
		w.Checks.Returned(saved.cluster)
		w.labelAgain(saved.cluster)
		s.Tables[kubernetes.KindCluster].Put(saved.cluster)
		s.Record(kubernetes.KindCluster, saved.cluster, false)
	}
	for _, id := range slices.Sorted(maps.Keys(w.Restores)) {
		if !saved.asked[id] {
			// It existed already, perhaps, and had not come to the point yet.
			w.After(w.Dice.Between(0, time.Minute), func() { w.askOnceMore(id) })
		}
	}
}

// confirmedWithin is how long a new PVC with data may have its owner reference, with which garbage
// collection deletes it. One whose pod is rejected stays empty.
const confirmedWithin = 2 * time.Minute

// lose is for a cluster whose object vanished, and not because its owner has deleted it: no
// PVC goes by itself. After a while a person deletes the remaining objects. A record that names no owner
// says in its content whose it is.
func (w *World) lose(was kubernetes.EtcdCluster) {
	uid := string(was.UID)
	isItsOwn := func(object metav1.Object) bool {
		record, is := object.(*corev1.ConfigMap)
		return simetcd.OwnerOf(object) == uid || is && len(record.Data) > 0 && resources.OwnsRecord(was, record)
	}
	kept := map[string]types.UID{}
	for _, object := range w.Store.List(kubernetes.KindPVC) {
		_, written := w.Etcd.PVCs[string(object.GetUID())]
		confirmed := metav1.GetControllerOf(object) == nil || written && w.Since(object.GetCreationTimestamp().Time) > confirmedWithin
		if object.GetDeletionTimestamp() == nil && simetcd.OwnerOf(object) == uid && confirmed {
			kept[object.GetName()] = object.GetUID()
		}
	}
	w.Checks.KeptPVCs = kept
	w.After(w.Dice.Between(2*kubernetes.CollectDelay, time.Minute), func() {
		w.Checks.KeptPVCs = nil
		for _, k := range []kubernetes.Kind{kubernetes.KindService, kubernetes.KindRecord, kubernetes.KindSecret, kubernetes.KindPVC, kubernetes.KindPod, kubernetes.KindBudget} {
			for _, object := range w.Store.List(k) {
				if id := object.GetUID(); isItsOwn(object) {
					_ = w.Store.DeleteObject(k, object.GetName(), metav1.Preconditions{UID: &id})
				}
			}
		}
	})
}

// askOnceMore is the controller of EtcdRestores with one that is from before it asked: it
// follows what the cluster reports about it, and asks again if the cluster reports nothing.
func (w *World) askOnceMore(id string) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	switch {
	case !found || w.Quiet:
	case cluster.Status.Recovery != nil && cluster.Status.Recovery.ID == id:
	case cluster.Status.Recovery.IsInProgress():
		w.After(5*time.Second, func() { w.askOnceMore(id) })
	default:
		w.Trace("EtcdRestore %s asks once more", id)
		w.Ask(id, w.Asked[id])
	}
}
