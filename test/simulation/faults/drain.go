// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// drain cordons a node and evicts its pods, until the node is uncordoned. A lasting drain is of
// a node with a member, and must have ended by then, or the status says why it waits.
func (w *World) drain(e schedules.Event) {
	n := w.Nodes[e.A%len(w.Nodes)]
	lasts := e.For >= schedules.LastingDrain
	if lasts {
		n = w.nodeOf(e.A)
	}
	if n == nil || !n.Up || n.Cordoned {
		return
	}
	w.Drain(n, func(pod *corev1.Pod) bool { return w.keepsQuorum(pod) })
	w.After(e.For, func() {
		if lasts {
			w.Checks.Drained(n)
		}
		w.Cordon(n, false)
	})
}

// nodeOf returns the node of a pod that is chosen by a number; nil if there is none.
func (w *World) nodeOf(i int) *kubernetes.Node {
	if len(w.Runs) == 0 {
		return nil
	}
	return w.Runs[i%len(w.Runs)].Node
}
