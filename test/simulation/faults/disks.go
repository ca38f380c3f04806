// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// DestroyMajority takes pods and volumes of all members but a minority.
func (w *World) DestroyMajority(e schedules.Event) {
	pods := w.Store.List(kubernetes.KindPod)
	if len(pods) < 2 {
		return
	}
	keep := 1 + e.B%((len(pods)+1)/2)
	for i := range len(pods) - keep {
		name := pods[(e.A+i)%len(pods)].GetName()
		w.Store.Remove(kubernetes.KindPod, name)
		w.Store.Remove(kubernetes.KindPVC, name)
	}
}

// destroyAll takes every pod and every volume.
func (w *World) destroyAll() {
	for _, k := range []kubernetes.Kind{kubernetes.KindPod, kubernetes.KindPVC} {
		for _, object := range w.Store.List(k) {
			w.Store.Remove(k, object.GetName())
		}
	}
}

// wipe empties the data directory of a member, whose container ends with that and is
// started again. A quorum always keeps its data. With B, that may be a member that has
// just joined and that the controller does not know yet, as each voter of etcd 3.3 does. A learner that was promoted
// is known.
func (w *World) wipe(e schedules.Event) {
	pod := w.AnyPod(e.A)
	if pod == nil || len(pod.Spec.InitContainers) > 0 && pod.Labels[resources.LabelCluster] == "" {
		return
	}
	r, dir := w.RunOf(string(pod.UID)), w.dirOf(pod)
	if r == nil || r.Over || dir == nil || dir.IsEmpty() || dir.Doomed {
		return
	}
	promoted := pod.Labels[resources.LabelRole] == resources.RoleLearner && dir.Lineage.Members.IsPromoted(dir.Id)
	if e.B == 0 && resources.MayFill(pod) && !promoted {
		return
	}
	for _, l := range w.Etcd.Lineages {
		if w.Checks.Matters(l) && !w.survives(l, map[*simetcd.DataDir]bool{dir: true}) {
			return
		}
	}
	running := r.Process != nil
	r.Halt()
	w.Etcd.Doom(dir)
	w.Etcd.Destroy(dir)
	empty := w.Etcd.NewDir()
	empty.Wiped = true
	if r.EmptyDir != nil {
		r.EmptyDir = empty
	} else if pvc, found := kubernetes.Lookup[kubernetes.PVC](w.Store, kubernetes.KindPVC, kubernetes.PVCName(pod)); found {
		w.Etcd.PVCs[string(pvc.UID)] = empty
	}
	if running {
		r.Exited()
	}
}

// hang lets the disk of a member take no writes for a while.
func (w *World) hang(e schedules.Event) {
	if len(w.Etcd.Processes) == 0 {
		return
	}
	d := w.Etcd.Processes[e.A%len(w.Etcd.Processes)].Dir
	w.Etcd.Hang(d)
	w.After(e.For, func() { w.Etcd.Resume(d); w.Disturb() })
}

// dirOf returns the data directory of a pod.
func (w *World) dirOf(pod *corev1.Pod) *simetcd.DataDir {
	if r := w.RunOf(string(pod.UID)); r != nil && r.EmptyDir != nil {
		return r.EmptyDir
	}
	return w.PVCDir(kubernetes.PVCName(pod))
}

// giveUpWiped deletes, as a user does, the remaining objects of members whose data is wiped or
// damaged. Only a person may do so with a voter, as docs/how-to/corrupt-member.md says.
func (w *World) giveUpWiped() {
	for _, object := range w.Store.List(kubernetes.KindPVC) {
		pvc := object.(kubernetes.PVC)
		if dir := w.Etcd.DirOn(string(pvc.UID)); dir != nil && dir.ForAPerson() {
			delete(w.Checks.KeptPVCs, pvc.Name)
			_ = w.Store.DeleteObject(kubernetes.KindPVC, pvc.Name, metav1.Preconditions{UID: &pvc.UID})
		}
	}
	for _, object := range w.Store.List(kubernetes.KindPod) {
		pod := object.(*corev1.Pod)
		if dir := w.dirOf(pod); dir == nil || !dir.ForAPerson() {
			continue
		}
		_ = w.Store.DeleteObject(kubernetes.KindPod, pod.Name, metav1.Preconditions{UID: &pod.UID})
	}
}

// damage makes what a learner has on its disk of no use. The learner is damaged that is
// there; otherwise the next one, if it comes soon.
func (w *World) damage(e schedules.Event) {
	for _, p := range w.Etcd.Processes {
		d, r := p.Dir, p.Run
		m := d.Lineage.Members.Find(d.Id)
		if m == nil || !m.Learner || d.Doomed {
			continue
		}
		d.Damaged = true
		w.Etcd.Doom(d)
		r.Exited()
		return
	}
	if e.For > 0 && !w.Quiet {
		e.For -= learnerStep
		w.After(learnerStep, func() { w.damage(e) })
	}
}

// learnerStep is how often it is looked for a learner: they vote soon.
const learnerStep = 20 * time.Millisecond
