// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

const (
	// SettleTime is how long a cluster has to reach its spec after the last fault. A
	// container that has crashed often is restarted every five minutes only.
	SettleTime = 40 * time.Minute
	settleStep = 5 * time.Second
)

// Settle ends all faults, lets the cluster come to rest and looks at what it has
// come to.
func (w *World) Settle() {
	w.heal()
	deadline := w.Elapsed + SettleTime
	wrong := ""
	for w.Elapsed < deadline && w.Violation == nil {
		w.Advance(settleStep)
		if wrong = w.Checks.Goal(); wrong != "" {
			// A promotion that was under way when the faults ended makes a voter of a damaged learner.
			w.giveUpWiped()
			w.followStatus()
			continue
		}
		if w.Checks.Rests() {
			return
		}
	}
	if w.Violation == nil {
		w.Violated("L1", "%v after the last fault: %s", SettleTime, wrong)
	}
}

// followStatus is a person that does what the status asks for.
func (w *World) followStatus() {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	for _, c := range cluster.Status.Conditions {
		switch {
		case c.Type != v1beta2.ClusterConditionCertificatesValid:
		case c.Reason == certificates.ReasonNameConflict:
			w.deleteUnowned(string(cluster.UID), c.Message)
		case c.Reason == certificates.ReasonPeerCertificateLost, c.Reason == certificates.ReasonCANotTrusted && strings.Contains(c.Message, "Restore Secret"):
			w.restoreSecrets(string(cluster.UID))
		}
	}
	if cluster.Status.BlockedBy == nil {
		return
	}
	switch b := cluster.Status.BlockedBy; b.Reason {
	case string(planner.ReasonVolumesFound), string(planner.ReasonOldPods):
		w.decideAboutFound(cluster)
	case string(planner.ReasonNameConflict):
		w.decideAboutFound(cluster)
		w.deleteUnowned(string(cluster.UID), b.Message)
	case string(planner.ReasonImageVersion):
		w.takeBackWrongImage(cluster)
	case string(planner.ReasonUnmanagedMember):
		w.removeUnmanaged(b.Unblock)
	case string(planner.ReasonQuorumLost):
		if len(cluster.Status.MemberStatuses) == 1 {
			w.finishDeletion()
		}
	}
}

// deleteUnowned deletes an object that keeps a name from the cluster: the record of an earlier
// cluster, or of this cluster after users have removed all that tells whose it is. Or a PVC that was
// released to the user, and whose name the bootstrap member has again in an API that was brought
// back from before the cluster had served. Or a Secret of an earlier cluster that was deleted when the API
// was from before the cluster had its finalizer: the controller did not see the deletion.
func (w *World) deleteUnowned(uid, message string) {
	if record, exists := kubernetes.Lookup[*corev1.ConfigMap](w.Store, kubernetes.KindRecord, schedules.RecordName); exists && simetcd.OwnerOf(record) == "" {
		w.Trace("a person deletes the ConfigMap that has the name of the record")
		w.Store.Remove(kubernetes.KindRecord, schedules.RecordName)
	}
	for _, object := range w.Store.List(kubernetes.KindPVC) {
		if pvc := object.(kubernetes.PVC); simetcd.OwnerOf(pvc) == "" && strings.HasPrefix(message, "PVC "+pvc.Name+" exists") {
			w.Trace("a person deletes the released PVC %s", pvc.Name)
			_ = w.Store.DeleteObject(kubernetes.KindPVC, pvc.Name, metav1.Preconditions{UID: &pvc.UID})
		}
	}
	for _, object := range w.Store.List(kubernetes.KindSecret) {
		if simetcd.OwnerOf(object) != uid && strings.HasPrefix(message, "secret "+object.GetName()+" ") {
			w.Trace("a person deletes the Secret %s of an earlier cluster", object.GetName())
			w.Store.Remove(kubernetes.KindSecret, object.GetName())
		}
	}
}

// finishDeletion ends the pod of the only member if it can never start, because a user has
// declared what does not run, and if a user has deleted its PVC. The correct declaration needs another
// pod, and with the pod the PVC goes. So the controller leaves the pod alone, and only a person can
// decide that its data is lost.
func (w *World) finishDeletion() {
	for _, object := range w.Store.List(kubernetes.KindPod) {
		pod := object.(*corev1.Pod)
		pvc, found := kubernetes.Lookup[kubernetes.PVC](w.Store, kubernetes.KindPVC, kubernetes.PVCName(pod))
		if found && pvc.DeletionTimestamp != nil && simetcd.NeverStarts(pod) {
			w.Trace("a person deletes pod %s, and with it the PVC", pod.Name)
			_ = w.Store.DeleteObject(kubernetes.KindPod, pod.Name, metav1.Preconditions{UID: &pod.UID})
		}
	}
}

// heal ends everything that still goes wrong, and what only a person would end.
func (w *World) heal() {
	w.Quiet = true
	w.Disturb()
	w.Trace("the faults end")
	clear(w.Etcd.Cut)
	clear(w.Etcd.Unreachable)
	clear(w.Etcd.Elsewhere)
	w.Etcd.ResumeAll()
	w.Etcd.Slow, w.SlowStartUntil = 0, 0
	w.Admission.Admit()
	w.Rejoin(w.Nodes)
	for _, n := range w.Nodes {
		w.Cordon(n, false)
		if !n.Up && !n.Lost {
			w.BootNode(n)
		}
	}
	for len(w.Controllers) > 1 {
		w.Controllers[len(w.Controllers)-1].Stop()
	}
	for _, c := range w.Controllers {
		c.Cache.Thaw()
		c.Faults = nil
	}
	if len(w.Controllers) == 0 {
		w.StartManager(0)
	}
	if old, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName); !found || old.DeletionTimestamp != nil {
		w.CreateCluster()
	}
	w.Change(func(s *v1beta2.ClusterSpec) { s.Paused = false })
	w.Repair()
	w.makeRoom()
	w.giveUpWiped()
}
