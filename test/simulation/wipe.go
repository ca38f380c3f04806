// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// wipeEvents empty disks under members whose pods and claims stay, now and then. They are
// drawn apart from the others, so that schedules without them stay what they were.
func wipeEvents(s *Schedule) {
	d := newDice(s.Seed, 6)
	if !d.chance(10) {
		return
	}
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, wipeAt(d))
	}
}

func wipeAt(d *dice) Event {
	return Event{At: d.between(20*time.Second, 6*time.Minute), Kind: EventWipe, A: d.IntN(1 << 16)}
}

// wipe empties the data directory of a member, whose container ends with that and is
// started again. A quorum always keeps its data. With B, that may be a member that has
// just joined, of which the controller does not know yet.
func (w *World) wipe(e Event) {
	pod := w.anyPod(e.A)
	if pod == nil || len(pod.Spec.InitContainers) > 0 || (e.B == 0 && resources.MayFill(pod)) {
		return
	}
	r, dir := w.runOf(string(pod.UID)), w.dirOf(pod)
	if r == nil || r.over || dir == nil || dir.empty() || dir.doomed {
		return
	}
	for _, l := range w.etcd.lineages {
		if w.checks.matters(l) && !w.survives(l, map[*dataDir]bool{dir: true}) {
			return
		}
	}
	running := r.process != nil
	r.halt()
	w.etcd.doom(dir)
	w.etcd.destroy(dir)
	empty := w.etcd.newDir()
	empty.wiped = true
	if r.emptyDir != nil {
		r.emptyDir = empty
	} else if claim, found := lookup[claimObject](w.store, kindClaim, claimName(pod)); found {
		w.etcd.claims[string(claim.UID)] = empty
	}
	if running {
		r.exited()
	}
}

// dirOf returns the data directory of a pod.
func (w *World) dirOf(pod *corev1.Pod) *dataDir {
	if r := w.runOf(string(pod.UID)); r != nil && r.emptyDir != nil {
		return r.emptyDir
	}
	return w.etcd.claimDir(claimName(pod))
}

// giveUpWiped deletes, as a person does, what is left of members whose data is gone.
func (w *World) giveUpWiped() {
	for _, object := range w.store.list(kindPod) {
		pod := object.(*corev1.Pod)
		if dir := w.dirOf(pod); dir == nil || !dir.forAPerson() {
			continue
		}
		if claim, found := lookup[claimObject](w.store, kindClaim, claimName(pod)); found {
			delete(w.checks.left, claim.Name)
			_ = w.store.deleteObject(kindClaim, claim.Name, metav1.Preconditions{UID: &claim.UID})
		}
		_ = w.store.deleteObject(kindPod, pod.Name, metav1.Preconditions{UID: &pod.UID})
	}
}

// forAPerson is true for data that only a person gives up: it is gone, or it is damaged and
// its member votes.
func (d *dataDir) forAPerson() bool {
	return d.wiped && d.empty() || d.damaged && d.lineage != nil && d.lineage.members.isVoter(d.id)
}

// damageEvents damage the disk of who is joining, now and then.
func damageEvents(s *Schedule) {
	d := newDice(s.Seed, 8)
	if d.chance(10) {
		s.Events = append(s.Events, Event{At: d.between(2*time.Second, 4*time.Minute), Kind: EventDamage, A: d.IntN(1 << 16)})
	}
}

// damage makes what a learner has on its disk of no use. The learner is damaged that is
// there; otherwise the next one, if it comes soon.
func (w *World) damage(e Event) {
	for _, p := range w.etcd.processes {
		d, r := p.dir, p.run
		m := d.lineage.members.find(d.id)
		if m == nil || !m.learner || d.doomed {
			continue
		}
		d.damaged = true
		w.etcd.doom(d)
		r.exited()
		return
	}
	if e.For > 0 && !w.quiet {
		e.For -= learnerStep
		w.after(learnerStep, func() { w.damage(e) })
	}
}

// learnerStep is how often it is looked for a learner: they vote soon.
const learnerStep = 20 * time.Millisecond
