// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

const (
	// maxRejected is how many requests a minute may be rejected while a quota is exhausted, by two
	// controllers that ask every five seconds. firstRejected is how many more at the beginning.
	maxRejected   = 26
	firstRejected = 20
)

// reject lets a quota reject pods for a while, and PVCs sometimes. The controller must not ask
// again and again.
func (w *World) reject(e schedules.Event) {
	w.Admission.Reject(w.Elapsed+e.For, kubernetes.Rejected(e.A%2))
	w.After(e.For, func() {
		w.Disturb()
		if limit := firstRejected + int(e.For.Minutes()*maxRejected); w.Admission.Rejected > limit {
			w.Violated("L2", "%d requests were rejected in %v", w.Admission.Rejected, e.For)
		}
	})
}
