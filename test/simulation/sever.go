// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// A node may be cut off from Kubernetes, from the controllers and from the other nodes
// while everything on it runs on, and while clients on its side of the cut go on writing.
// Kubernetes takes it for dead.

// hears is true while the kubelet of a node talks to the API server.
func (n *node) hears() bool { return n.up && !n.severed }

// severed is true while a pod is on the other side of a cut.
func (r *run) severed() bool { return r.node != nil && r.node.severed }

// hidden is true while the controllers reach no member in a pod.
func (e *etcdWorld) hidden(r *run) bool { return e.unreachable[r.name] || r.severed() }

// severEvents are drawn apart from the others. Cuts that last until Kubernetes deletes pods
// are for schedules in which data may be lost.
func severEvents(s *Schedule) {
	d := newDice(s.Seed, 15)
	if !d.chance(15) {
		return
	}
	e := Event{At: d.between(20*time.Second, 4*time.Minute), Kind: EventSever, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.between(2*time.Second, 2*time.Minute)}
	if s.Deadly && d.chance(70) {
		e.For = evictAfter + d.between(0, 4*time.Minute)
	}
	s.Events = append(s.Events, e, Event{At: e.At + e.For, Kind: EventResume}) // all faults end with the last event
}

// severSome cuts the nodes of some pods off, most often of a majority.
func (w *World) severSome(e Event) {
	pods := w.store.list(kindPod)
	count := 1 + e.B%(len(pods)+1)
	if e.B/16%4 > 0 {
		count = len(pods)/2 + 1
	}
	var side []*node
	for i := range min(count, len(pods)) {
		r := w.runOf(string(pods[(e.A+i)%len(pods)].GetUID()))
		if r != nil && r.node != nil && r.node.hears() && !slices.Contains(side, r.node) {
			side = append(side, r.node)
		}
	}
	w.sever(side, e.For)
}

// sever cuts some nodes off together for a while.
func (w *World) sever(side []*node, d time.Duration) {
	for _, n := range side {
		n.severed = true
	}
	w.after(unreadyAfter, func() {
		for _, n := range side {
			if n.severed {
				w.eachPodOn(n, func(pod *corev1.Pod) { w.setReady(pod.Name, string(pod.UID), false) })
			}
		}
	})
	w.after(evictAfter, func() {
		for _, n := range side {
			if n.severed {
				w.eachPodOn(n, w.store.deletePod)
			}
		}
	})
	known := w.published(side)
	w.after(clientEveryMin, func() { w.severedClient(side, known) })
	w.after(d, func() { w.rejoin(side) })
}

// published returns the pods on some nodes that the services have led clients to.
func (w *World) published(side []*node) []string {
	var uids []string
	for _, n := range side {
		w.eachPodOn(n, func(pod *corev1.Pod) {
			if pod.Labels[resources.LabelCluster] == clusterName && pod.Labels[resources.LabelRole] != "" {
				uids = append(uids, string(pod.UID))
			}
		})
	}
	return uids
}

// severedClient writes to the members on its side that it knows, for as long as the cut
// lasts.
func (w *World) severedClient(side []*node, known []string) {
	var serving []*process
	for _, p := range w.etcd.processes {
		if p.run.severed() && slices.Contains(known, p.run.uid) && p.serves {
			serving = append(serving, p)
		}
	}
	if !slices.ContainsFunc(side, func(n *node) bool { return n.severed }) {
		return
	}
	w.after(w.dice.between(clientEveryMin, clientEveryMax), func() { w.severedClient(side, known) })
	if len(serving) > 0 {
		w.write(pick(w.dice, serving...))
	}
}

// rejoin ends a cut. The members find each other at once, the kubelets hear of what was
// decided meanwhile a moment later.
func (w *World) rejoin(side []*node) {
	w.disturb()
	for _, n := range side {
		if !n.severed {
			continue
		}
		n.severed = false
		w.after(w.dice.between(500*time.Millisecond, 10*time.Second), func() {
			for _, r := range w.runsOn(n) {
				r.catchUp()
			}
		})
	}
}

// catchUp lets a kubelet do what it has not heard of, and say what it has not said.
func (r *run) catchUp() {
	pod, found := r.pod()
	switch {
	case !r.node.hears() || r.over || !found:
		return
	case pod.DeletionTimestamp != nil:
		r.terminate()
		return
	}
	switch {
	case r.process != nil:
		r.ready = false
		r.running()
	case !r.starting && !r.launching:
		r.startIn(r.w.dice.between(time.Second, 5*time.Second))
	}
	r.w.podChanged(pod, false)
}
