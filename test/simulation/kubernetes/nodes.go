// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// nodeCount is more than the largest cluster has members, so that a few may be lost.
const nodeCount = 8

// Node is a machine that pods run on.
type Node struct {
	name string
	// Up is false while the machine is down; Lost if it will never come back.
	Up, Lost bool
	// Severed is true while it runs and is cut off from everything that is not.
	Severed bool
	// unready is since when Kubernetes calls it not ready; zero while it is ready.
	unready time.Time
	// readySince is when it became ready again, by its own clock; zero if it always was.
	readySince time.Time
	// slow nodes start their containers up to a minute after they are ready.
	slow bool
	// lease is the version of its last report that was read.
	lease string
	// collected is true once its Node object was deleted.
	collected bool
	// Cordoned nodes take no more pods.
	Cordoned bool
	// fast is by how much the clock of the machine is fast.
	fast time.Duration
}

// now is the time on the machine of a run.
func (r *Run) now() time.Time {
	if r.Node == nil {
		return r.w.Now()
	}
	return r.w.Now().Add(r.Node.fast)
}

const (
	// UnreadyAfter is when Kubernetes calls the pods of an unresponsive node not ready.
	UnreadyAfter = 40 * time.Second
	// podsCollectedAfter is when the pods of a node that was taken out of the cluster
	// are forgotten.
	podsCollectedAfter = 20 * time.Second
)

// newNodes returns machines whose clocks are at most skew off.
func newNodes(skew time.Duration, dice *timeline.Dice) []*Node {
	nodes := make([]*Node, nodeCount)
	for i := range nodes {
		nodes[i] = &Node{name: "node-" + strconv.Itoa(i), Up: true, slow: i%2 == 1}
		if skew > 0 {
			nodes[i].fast = dice.Between(-skew, skew)
		}
	}
	return nodes
}

// notReady is what Kubernetes makes of a node that has not reported for a while.
func (w *World) notReady(n *Node) {
	if n.Hears() || !n.unready.IsZero() {
		return
	}
	n.unready = w.Now()
	w.EachPodOn(n, func(pod *corev1.Pod) {
		w.SetReady(pod.Name, string(pod.UID), false, w.Now())
		w.evictLater(n, pod)
	})
}

// Node returns the Node object of a machine.
func (w *World) Node(name string) (*corev1.Node, error) {
	for _, n := range w.Nodes {
		if n.name != name || n.collected {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
		if n.unready.IsZero() {
			ready.LastTransitionTime = metav1.NewTime(n.readySince)
		} else {
			ready.Status, ready.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(n.unready)
		}
		node.Status.Conditions = []corev1.NodeCondition{ready}
		return node, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

// reportEvery is how often a kubelet renews the Lease of its node.
const reportEvery = 10 * time.Second

// NodeReport returns the last report of a machine. It stays the same while its kubelet does not reach the API.
func (w *World) NodeReport(name string) string {
	for _, n := range w.Nodes {
		if n.name == name && n.Hears() {
			n.lease = strconv.FormatInt(w.Now().UnixNano()/int64(reportEvery), 10)
		}
		if n.name == name {
			return n.lease
		}
	}
	return ""
}

// IsNodeDown is true for a node that does not respond to Kubernetes.
func (w *World) IsNodeDown(name string) bool {
	return slices.ContainsFunc(w.Nodes, func(n *Node) bool { return n.name == name && !n.Hears() })
}

// IsAway is true for a pod that has not been able to run for the time after which the controller
// replaces its member. The clock that measures this is fast by skew.
func (w *World) IsAway(name string, skew time.Duration) bool {
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, name)
	if !found {
		return false
	}
	var since time.Time
	for _, n := range w.Nodes {
		if n.name == pod.Spec.NodeName && !n.Hears() {
			since = n.unready
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			since = c.LastTransitionTime.Time
		}
	}
	if pod.DeletionTimestamp != nil {
		since = pod.DeletionTimestamp.Time
	}
	return !since.IsZero() && w.Since(since)+skew >= w.Plan.MemberLossTimeout()
}

// placeOf chooses a node for a pod: the one that its volume is tied to, or any.
func (w *World) placeOf(pod *corev1.Pod) *Node {
	for _, name := range pvcNames(pod) {
		if pvc, found := Lookup[PVC](w.Store, KindPVC, name); found {
			if n := w.tied[string(pvc.UID)]; n != nil {
				if !n.Hears() || n.Cordoned {
					return nil
				}
				return n
			}
		}
	}
	return w.place()
}

// tie binds the volume of a pod to its node, where volumes are local.
func (w *World) tie(pod *corev1.Pod, n *Node) {
	if pvc, found := Lookup[PVC](w.Store, KindPVC, PVCName(pod)); found && w.Plan.LocalVolumes {
		w.tied[string(pvc.UID)] = n
	}
}

// TiedTo returns the data on the volumes that are tied to a node.
func (w *World) TiedTo(n *Node) []*simetcd.DataDir {
	var dirs []*simetcd.DataDir
	for _, uid := range slices.Sorted(maps.Keys(w.tied)) {
		if w.tied[uid] == n {
			dirs = append(dirs, w.Etcd.DirOn(uid))
		}
	}
	return dirs
}

// place chooses a node that is up, and prefers one without a pod of the cluster.
func (w *World) place() *Node {
	var free, up []*Node
	for _, n := range w.Nodes {
		if !n.Hears() || n.Cordoned {
			continue
		}
		up = append(up, n)
		if len(w.runsOn(n)) == 0 {
			free = append(free, n)
		}
	}
	switch {
	case len(free) > 0:
		return timeline.Pick(w.Dice, free...)
	case len(up) > 0:
		return timeline.Pick(w.Dice, up...)
	default:
		return nil
	}
}

func (w *World) runsOn(n *Node) []*Run {
	var runs []*Run
	for _, r := range w.Runs {
		if r.Node == n {
			runs = append(runs, r)
		}
	}
	return runs
}

// CrashNode stops a machine with everything on it. With 0 it never comes back and is
// taken out of the cluster.
func (w *World) CrashNode(n *Node, backAfter time.Duration) {
	if !n.Up {
		return
	}
	n.Up, n.Lost = false, backAfter == 0
	for _, r := range w.runsOn(n) {
		r.Halt()
		if n.Lost {
			w.Etcd.Doom(r.EmptyDir)
		}
	}
	w.After(UnreadyAfter, func() { w.notReady(n) })
	if n.Lost {
		for _, d := range w.TiedTo(n) {
			w.Etcd.Doom(d)
		}
		w.EachPodOn(n, func(pod *corev1.Pod) { w.doomWithPVC(pod.Name) })
		w.After(podsCollectedAfter, func() { w.collectPods(n) })
		return
	}
	w.After(backAfter, func() { w.BootNode(n) })
}

// BootNode brings a machine back: pods that were being deleted no longer exist, the others
// start again on what is on its disk.
func (w *World) BootNode(n *Node) {
	if n.Up || n.Lost {
		return
	}
	n.Up = true
	n.report(w.Now())
	for _, r := range w.runsOn(n) {
		if pod, found := r.Pod(); !found || pod.DeletionTimestamp != nil {
			r.finish()
			continue
		}
		w.Etcd.NewSandbox(r.uid)
		delay := w.Dice.Between(time.Second, 5*time.Second)
		if n.slow {
			delay *= 12 // until its network and its volumes work
		}
		r.startIn(delay)
	}
}

// collectPods forgets the pods of a node that does not exist any more.
func (w *World) collectPods(n *Node) {
	n.collected = true
	w.EachPodOn(n, func(pod *corev1.Pod) { w.Store.Remove(KindPod, pod.Name) })
}

// EachPodOn calls do for each pod that is bound to a node.
func (w *World) EachPodOn(n *Node, do func(*corev1.Pod)) {
	for _, object := range w.Store.List(KindPod) {
		if pod := object.(*corev1.Pod); pod.Spec.NodeName == n.name {
			do(pod)
		}
	}
}
