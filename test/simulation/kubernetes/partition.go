// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"time"
)

// Hears is true while the kubelet of a node talks to the API server.
func (n *Node) Hears() bool { return n.Up && !n.Severed }

// report lets Kubernetes call a node ready whose kubelet talks to the API server again. A node that is
// down stays not ready when a cut ends, and one that is cut off when it boots.
func (n *Node) report(now time.Time) {
	if n.Hears() && !n.unready.IsZero() {
		n.unready, n.readySince = time.Time{}, now.Add(n.fast)
	}
}

// IsSevered is true while a pod is on the other side of a cut.
func (r *Run) IsSevered() bool { return r.Node != nil && r.Node.Severed }

// Sever cuts some nodes off together.
func (w *World) Sever(side []*Node) {
	for _, n := range side {
		n.Severed = true
		w.After(UnreadyAfter, func() { w.notReady(n) })
	}
}

// Rejoin ends a cut. The members find each other at once, the kubelets hear of what was
// decided meanwhile a moment later.
func (w *World) Rejoin(side []*Node) {
	w.Disturb()
	for _, n := range side {
		if !n.Severed {
			continue
		}
		n.Severed = false
		n.report(w.Now())
		w.After(w.Dice.Between(500*time.Millisecond, 10*time.Second), func() {
			for _, r := range w.runsOn(n) {
				r.catchUp()
			}
		})
	}
}

// catchUp lets a kubelet act on the changes that it has missed, and report what it has not reported.
func (r *Run) catchUp() {
	pod, found := r.Pod()
	switch {
	case !r.Node.Hears() || r.Over || !found:
		return
	case pod.DeletionTimestamp != nil:
		r.terminate()
		return
	}
	switch {
	case r.Process != nil:
		r.ready = false
		r.running()
	case !r.starting && !r.launching:
		r.startIn(r.w.Dice.Between(time.Second, 5*time.Second))
	}
	r.w.podChanged(pod, false)
}
