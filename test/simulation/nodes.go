// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeCount is more than the largest cluster has members, so that a few may be lost.
const nodeCount = 8

// node is a machine that pods run on.
type node struct {
	name string
	// up is false while the machine is down; lost if it will never come back.
	up, lost bool
	// severed is true while it runs and is cut off from everything that is not.
	severed bool
}

const (
	// unreadyAfter is when Kubernetes calls the pods of a silent node not ready, and
	// evictAfter when it deletes them; podsCollectedAfter is when the pods of a node
	// that was taken out of the cluster are forgotten.
	unreadyAfter       = 40 * time.Second
	evictAfter         = 5 * time.Minute
	podsCollectedAfter = 20 * time.Second
)

func newNodes() []*node {
	nodes := make([]*node, nodeCount)
	for i := range nodes {
		nodes[i] = &node{name: "node-" + strconv.Itoa(i), up: true}
	}
	return nodes
}

// place chooses a node that is up, and prefers one without a pod of the cluster.
func (w *World) place() *node {
	var free, up []*node
	for _, n := range w.nodes {
		if !n.hears() {
			continue
		}
		up = append(up, n)
		if len(w.runsOn(n)) == 0 {
			free = append(free, n)
		}
	}
	switch {
	case len(free) > 0:
		return pick(w.dice, free...)
	case len(up) > 0:
		return pick(w.dice, up...)
	default:
		return nil
	}
}

func (w *World) runsOn(n *node) []*run {
	var runs []*run
	for _, r := range w.runs {
		if r.node == n {
			runs = append(runs, r)
		}
	}
	return runs
}

// crashNode stops a machine with everything on it. For 0 it never comes back and is
// taken out of the cluster.
func (w *World) crashNode(n *node, backAfter time.Duration) {
	if !n.up {
		return
	}
	n.up, n.lost = false, backAfter == 0
	for _, r := range w.runsOn(n) {
		r.halt()
		if n.lost {
			w.etcd.doom(r.emptyDir)
		}
	}
	w.after(unreadyAfter, func() {
		if !n.up {
			w.eachPodOn(n, func(pod *corev1.Pod) { w.setReady(pod.Name, string(pod.UID), false) })
		}
	})
	if n.lost {
		w.after(podsCollectedAfter, func() { w.collectPods(n) })
		return
	}
	w.after(evictAfter, func() {
		if !n.up {
			w.eachPodOn(n, w.store.deletePod)
		}
	})
	w.after(backAfter, func() { w.bootNode(n) })
}

// bootNode brings a machine back: pods that were asked to go are gone, the others
// start again on what is on its disk.
func (w *World) bootNode(n *node) {
	if n.up || n.lost {
		return
	}
	n.up = true
	for _, r := range w.runsOn(n) {
		if pod, found := r.pod(); !found || pod.DeletionTimestamp != nil {
			r.finish()
			continue
		}
		r.startIn(w.dice.between(time.Second, 5*time.Second))
	}
}

// collectPods forgets the pods of a node that does not exist any more.
func (w *World) collectPods(n *node) {
	w.eachPodOn(n, func(pod *corev1.Pod) { w.store.remove(kindPod, pod.Name) })
}

func (w *World) eachPodOn(n *node, do func(*corev1.Pod)) {
	for _, object := range w.store.list(kindPod) {
		if pod := object.(*corev1.Pod); pod.Spec.NodeName == n.name {
			do(pod)
		}
	}
}

// setReady writes the ready condition of a pod.
func (w *World) setReady(name, uid string, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	edit(w.store, kindPod, name, func(pod *corev1.Pod) {
		if string(pod.UID) == uid {
			setCondition(pod, corev1.PodReady, status)
		}
	})
}

func setCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			pod.Status.Conditions[i].Status = status
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: status})
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// evict is the eviction API: it asks the disruption budget. It returns whether the
// pod was let go.
func (w *World) evict(pod *corev1.Pod) bool {
	budget, found := lookup[budgetObject](w.store, kindBudget, clusterName)
	if found && !w.budgetAllows(budget, pod) {
		return false
	}
	w.checks.beforeEviction(pod, found)
	return w.store.deleteObject(kindPod, pod.Name, metav1.Preconditions{UID: &pod.UID}) == nil
}

func (w *World) budgetAllows(budget budgetObject, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil || !selector.Matches(labelsOf(pod)) {
		return true
	}
	healthy := 0
	for _, object := range w.store.list(kindPod) {
		if p := object.(*corev1.Pod); selector.Matches(labelsOf(p)) && isReady(p) && p.DeletionTimestamp == nil {
			healthy++
		}
	}
	need := budget.Spec.MinAvailable.IntValue()
	if !isReady(pod) {
		return healthy >= need
	}
	return healthy-1 >= need
}
