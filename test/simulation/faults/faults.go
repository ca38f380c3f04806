// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// CarryOut carries out an event of the schedule.
func (w *World) CarryOut(e schedules.Event) {
	w.Disturb()
	w.Trace("EVENT %s(%d, %d, %v)", e.Kind, e.A, e.B, e.For)
	if e.Kind != schedules.EventCall {
		w.Stats.Fault(e.Kind.String())
	}
	switch e.Kind {
	case schedules.EventCall:
		w.armCall(e)
	case schedules.EventFreeze:
		w.freeze(e)
	case schedules.EventSecondController:
		w.second(e)
	case schedules.EventKillController:
		if c := w.controller(e.A); c != nil {
			c.Crash()
		}
	case schedules.EventKillContainer, schedules.EventDeletePod, schedules.EventForceDeletePod, schedules.EventEvict, schedules.EventPressure:
		if pod := w.AnyPod(e.A); pod != nil {
			w.harmPod(e.Kind, pod)
		}
	case schedules.EventDrain:
		w.drain(e)
	case schedules.EventNodeDown, schedules.EventNodeLost:
		w.harmNode(e, w.Nodes[e.A%len(w.Nodes)])
	case schedules.EventSever:
		w.severSome(e)
	case schedules.EventSlowStart:
		w.SlowStartUntil = w.Elapsed + e.For
	case schedules.EventSlowCatchUp:
		w.Etcd.Slow = 1 + e.A%20
		w.After(e.For, func() { w.Etcd.Slow = 0 })
	case schedules.EventHideMember, schedules.EventCutMember:
		w.isolate(e)
	case schedules.EventHang:
		w.hang(e)
	case schedules.EventFill:
		w.fill(e)
	case schedules.EventReject:
		w.reject(e)
	case schedules.EventDeleteNamespace:
		w.deleteNamespace(e)
	case schedules.EventWipe:
		w.wipe(e)
	case schedules.EventDamage:
		w.damage(e)
	case schedules.EventLoseRecord:
		w.LoseRecord(e.A, e.B)
	case schedules.EventOldAPI:
		w.saveAPI(e)
	case schedules.EventLoseAPI:
		w.rebuildAPI(e)
	case schedules.EventUnmanagedMember:
		w.addUnmanaged(e)
	case schedules.EventOtherCluster:
		w.leadElsewhere(e)
	case schedules.EventOldCA:
		w.putBackCA(e)
	case schedules.EventReturn:
		w.bringBack(e)
	case schedules.EventDisaster:
		w.DestroyMajority(e)
	case schedules.EventRecover:
		w.RequestRecovery()
	case schedules.EventBackup:
		w.BackUp()
	case schedules.EventRestore:
		w.AskRestore(fmt.Sprintf("restore-%d", w.Recoveries), w.NewestBackup())
	case schedules.EventTotalLoss:
		w.destroyAll()
	case schedules.EventStallLearner:
		w.Etcd.StallNext = true
	case schedules.EventDeaf:
		w.declareDeaf(e)
	case schedules.EventSetImage:
		w.setImage(e)
	case schedules.EventWrongImage:
		w.declareWrongImage(e)
	default:
		w.UserDoes(e)
	}
}

// armCall lets one of the next calls of a controller go wrong.
func (w *World) armCall(e schedules.Event) {
	c := w.controller(e.A)
	if c == nil {
		return
	}
	c.Faults = append(c.Faults, &manager.Fault{
		Fault: manager.CallFault(e.B % int(manager.CallFaults)), Skip: e.A / 7 % 12, Writes: e.A%3 != 0,
		Pause: []time.Duration{500 * time.Millisecond, 3 * time.Second, 15 * time.Second, time.Minute}[e.B/16%4],
	})
}

func (w *World) controller(i int) *manager.Manager {
	if len(w.Controllers) == 0 {
		return nil
	}
	return w.Controllers[i%len(w.Controllers)]
}

func (w *World) freeze(e schedules.Event) {
	c := w.controller(e.A)
	if c == nil {
		return
	}
	for k := kubernetes.Kind(0); k < kubernetes.Kinds; k++ {
		if e.B%8 == 7 || kubernetes.Kind(e.B%int(kubernetes.Kinds)) == k {
			c.Cache.Freeze(k, e.For)
		}
	}
}

// second starts another controller that acts at the same time, on what it knows.
func (w *World) second(e schedules.Event) {
	if len(w.Controllers) > 1 {
		return
	}
	c := w.StartManager(e.A % 40)
	if e.B%2 == 0 {
		for k := kubernetes.Kind(0); k < kubernetes.Kinds; k++ {
			c.Cache.Freeze(k, e.For/2)
		}
	}
	w.After(e.For, func() {
		if !w.Quiet {
			c.Crash()
		}
	})
}

// keepsQuorum is true if losing the data of some pods would leave a quorum, or the schedule
// is one in which it may be lost.
func (w *World) keepsQuorum(pods ...*corev1.Pod) bool {
	if w.Plan.Deadly {
		return true
	}
	lost := map[*simetcd.DataDir]bool{}
	for _, pod := range pods {
		r := w.RunOf(string(pod.UID))
		if r == nil {
			continue
		}
		if r.EmptyDir != nil {
			lost[r.EmptyDir] = true
		}
		// A PVC that was deleted goes with the pod that uses it.
		if pvc, found := kubernetes.Lookup[kubernetes.PVC](w.Store, kubernetes.KindPVC, kubernetes.PVCName(pod)); found && pvc.DeletionTimestamp != nil {
			lost[w.Etcd.PVCs[string(pvc.UID)]] = true
		}
	}
	for _, l := range w.Etcd.Lineages {
		if w.Checks.Matters(l) && !w.survives(l, lost) {
			return false
		}
	}
	return true
}

// keepsVolumes is true if losing the volumes that are tied to a node would leave a quorum.
func (w *World) keepsVolumes(n *kubernetes.Node) bool {
	lost := map[*simetcd.DataDir]bool{}
	for _, d := range w.TiedTo(n) {
		lost[d] = true
	}
	for _, l := range w.Etcd.Lineages {
		if w.Checks.Matters(l) && !w.survives(l, lost) {
			return false
		}
	}
	return true
}

func (w *World) survives(l *simetcd.Lineage, lost map[*simetcd.DataDir]bool) bool {
	kept := 0
	for i := range l.Members.Peers {
		m := &l.Members.Peers[i]
		if d := l.Dirs[m.Id]; !m.Learner && d != nil && !d.Doomed && !lost[d] && !w.mayBeEvicted(d) {
			kept++
		}
	}
	return kept >= l.Members.Quorum()
}

// mayBeEvicted is true for a member without a volume on a node that does not respond: Kubernetes will
// delete its pod, and the data goes with it.
func (w *World) mayBeEvicted(d *simetcd.DataDir) bool {
	pod, found := kubernetes.Lookup[*corev1.Pod](w.Store, kubernetes.KindPod, d.Name)
	return found && w.Plan.Evicts && !w.Plan.Volumes && w.IsNodeDown(pod.Spec.NodeName)
}

func (w *World) harmPod(kind schedules.EventKind, pod *corev1.Pod) {
	if kind != schedules.EventKillContainer && !w.keepsQuorum(pod) {
		return
	}
	uid := pod.UID
	switch kind {
	case schedules.EventKillContainer:
		if r := w.RunOf(string(uid)); r != nil && r.Process != nil {
			r.Exited()
		}
	case schedules.EventDeletePod:
		_ = w.Store.DeleteObject(kubernetes.KindPod, pod.Name, metav1.Preconditions{UID: &uid})
	case schedules.EventForceDeletePod:
		w.Forced[pod.Name] = true
		w.Store.Remove(kubernetes.KindPod, pod.Name)
	case schedules.EventEvict:
		w.Evict(pod)
	case schedules.EventPressure:
		if r := w.RunOf(string(uid)); r != nil && r.IsSevered() {
			return // the kubelet evicts pods, and reports nothing from a node that is cut off
		}
		kubernetes.Edit(w.Store, kubernetes.KindPod, pod.Name, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
			w.SetCondition(p, corev1.PodReady, corev1.ConditionFalse)
		})
	default:
	}
}

func (w *World) harmNode(e schedules.Event, n *kubernetes.Node) {
	var pods []*corev1.Pod
	w.EachPodOn(n, func(pod *corev1.Pod) { pods = append(pods, pod) })
	if !n.Up || !w.keepsQuorum(pods...) {
		return
	}
	switch e.Kind {
	case schedules.EventNodeDown:
		w.CrashNode(n, e.For+time.Duration(e.B%2)*schedules.EvictAfter)
	case schedules.EventNodeLost:
		if !w.keepsVolumes(n) {
			return
		}
		up := 0
		for _, other := range w.Nodes {
			if other.Up {
				up++
			}
		}
		if up > 6 {
			w.CrashNode(n, 0)
		}
	default:
	}
}

// isolate cuts a member off from the controllers, or from some or all of the others.
func (w *World) isolate(e schedules.Event) {
	if len(w.Runs) == 0 {
		return
	}
	name := w.Runs[e.A%len(w.Runs)].Name()
	if e.Kind == schedules.EventHideMember {
		w.Etcd.Unreachable[name] = true
		w.After(e.For, func() { delete(w.Etcd.Unreachable, name); w.Disturb() })
		return
	}
	for i, r := range w.Runs {
		if r.Name() == name || (e.B%4 == 0 && i%2 == 0) {
			continue
		}
		p := simetcd.Pair(name, r.Name())
		w.Etcd.Cut[p] = true
		w.After(e.For, func() { delete(w.Etcd.Cut, p); w.Disturb() })
	}
}
