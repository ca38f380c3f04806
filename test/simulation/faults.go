// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// happen carries out an event of the schedule.
func (w *World) happen(e Event) {
	w.disturb()
	w.trace("EVENT %s(%d, %d, %v)", e.Kind, e.A, e.B, e.For)
	if e.Kind != EventCall {
		w.stats.fault(e.Kind.String())
	}
	switch e.Kind {
	case EventCall:
		w.armCall(e)
	case EventFreeze:
		w.freeze(e)
	case EventSecondController:
		w.second(e)
	case EventKillController:
		if c := w.controller(e.A); c != nil {
			c.crash()
		}
	case EventKillContainer, EventDeletePod, EventForceDeletePod, EventEvict, EventPressure:
		if pod := w.anyPod(e.A); pod != nil {
			w.harmPod(e.Kind, pod)
		}
	case EventNodeDown, EventNodeLost, EventDrain:
		w.harmNode(e, w.nodes[e.A%len(w.nodes)])
	case EventSever:
		w.severSome(e)
	case EventSlowStart:
		w.slowStartUntil = w.now + e.For
	case EventSlowCatchUp:
		w.etcd.slow = 1 + e.A%20
		w.after(e.For, func() { w.etcd.slow = 0 })
	case EventHideMember, EventCutMember:
		w.isolate(e)
	case EventWipe:
		w.wipe(e)
	case EventDamage:
		w.damage(e)
	case EventOldAPI:
		w.saveAPI(e)
	case EventDisaster:
		w.destroyMajority(e)
	case EventRecover:
		w.requestRecovery()
	case EventBackup:
		w.backUp(fmt.Sprintf("backup-%d", len(w.backups)+1))
	case EventRestore:
		w.askRestore(fmt.Sprintf("restore-%d", w.recoveries), w.newest())
	case EventTotalLoss:
		w.destroyAll()
	default:
		w.userDoes(e)
	}
}

// armCall lets one of the next calls of a controller go wrong.
func (w *World) armCall(e Event) {
	c := w.controller(e.A)
	if c == nil {
		return
	}
	c.armed = append(c.armed, &armed{
		fault: CallFault(e.B % int(callFaults)), skip: e.A / 7 % 12, writes: e.A%3 != 0,
		pause: []time.Duration{500 * time.Millisecond, 3 * time.Second, 15 * time.Second, time.Minute}[e.B/16%4],
	})
}

func (w *World) controller(i int) *manager {
	if len(w.controllers) == 0 {
		return nil
	}
	return w.controllers[i%len(w.controllers)]
}

func (w *World) freeze(e Event) {
	c := w.controller(e.A)
	if c == nil {
		return
	}
	for k := kind(0); k < kinds; k++ {
		if e.B%8 == 7 || kind(e.B%int(kinds)) == k {
			c.cache.freeze(k, e.For)
		}
	}
}

// second starts another controller that acts at the same time, on what it knows.
func (w *World) second(e Event) {
	if len(w.controllers) > 1 {
		return
	}
	c := w.startManager(e.A % 40)
	if e.B%2 == 0 {
		for k := kind(0); k < kinds; k++ {
			c.cache.freeze(k, e.For/2)
		}
	}
	w.after(e.For, func() {
		if !w.quiet {
			c.crash()
		}
	})
}

func (w *World) anyPod(i int) *corev1.Pod {
	pods := w.store.list(kindPod)
	if len(pods) == 0 {
		return nil
	}
	return pods[i%len(pods)].(*corev1.Pod)
}

// spares is true if losing the data of some pods would leave a quorum, or the
// schedule is one in which it may be lost.
func (w *World) spares(pods ...*corev1.Pod) bool {
	if w.plan.Deadly {
		return true
	}
	lost := map[*dataDir]bool{}
	for _, pod := range pods {
		r := w.runOf(string(pod.UID))
		if r == nil {
			continue
		}
		if r.emptyDir != nil {
			lost[r.emptyDir] = true
		}
	}
	for _, l := range w.etcd.lineages {
		if w.checks.matters(l) && !w.survives(l, lost) {
			return false
		}
	}
	return true
}

func (w *World) survives(l *lineage, lost map[*dataDir]bool) bool {
	kept := 0
	for i := range l.members.peers {
		m := &l.members.peers[i]
		if d := l.dirs[m.id]; !m.learner && d != nil && !d.doomed && !lost[d] {
			kept++
		}
	}
	return kept >= l.members.quorum()
}

func (w *World) harmPod(kind EventKind, pod *corev1.Pod) {
	if kind != EventKillContainer && !w.spares(pod) {
		return
	}
	uid := pod.UID
	switch kind {
	case EventKillContainer:
		if r := w.runOf(string(uid)); r != nil && r.process != nil {
			r.exited()
		}
	case EventDeletePod:
		_ = w.store.deleteObject(kindPod, pod.Name, metav1.Preconditions{UID: &uid})
	case EventForceDeletePod:
		w.store.remove(kindPod, pod.Name)
	case EventEvict:
		w.evict(pod)
	case EventPressure:
		edit(w.store, kindPod, pod.Name, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
			setCondition(p, corev1.PodReady, corev1.ConditionFalse)
		})
	default:
	}
}

func (w *World) harmNode(e Event, n *node) {
	var pods []*corev1.Pod
	w.eachPodOn(n, func(pod *corev1.Pod) { pods = append(pods, pod) })
	if !n.up || !w.spares(pods...) {
		return
	}
	switch e.Kind {
	case EventNodeDown:
		w.crashNode(n, e.For+time.Duration(e.B%2)*evictAfter)
	case EventNodeLost:
		up := 0
		for _, other := range w.nodes {
			if other.up {
				up++
			}
		}
		if up > 6 {
			w.crashNode(n, 0)
		}
	case EventDrain:
		for _, pod := range pods {
			w.evict(pod)
		}
	default:
	}
}

// isolate cuts a member off from the controllers, or from some or all of the others.
func (w *World) isolate(e Event) {
	if len(w.runs) == 0 {
		return
	}
	name := w.runs[e.A%len(w.runs)].name
	if e.Kind == EventHideMember {
		w.etcd.unreachable[name] = true
		w.after(e.For, func() { delete(w.etcd.unreachable, name); w.disturb() })
		return
	}
	for i, r := range w.runs {
		if r.name == name || (e.B%4 == 0 && i%2 == 0) {
			continue
		}
		p := pair(name, r.name)
		w.etcd.cut[p] = true
		w.after(e.For, func() { delete(w.etcd.cut, p); w.disturb() })
	}
}
