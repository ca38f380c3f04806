// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
)

// Standing says whether an etcd can serve, now and after the members that are down came back.
type Standing struct{ Recoverable, Live bool }

// Standing returns how an etcd stands.
func (w *World) Standing(l *simetcd.Lineage) Standing {
	return Standing{Recoverable: w.IsRecoverable(l), Live: w.Etcd.QuorumServes(l)}
}

// IsRecoverable is true if a member could win an election once all members with data are back.
// Each member counts by the list that it has applied itself.
func (w *World) IsRecoverable(l *simetcd.Lineage) bool {
	return w.isRecoverable(l, w.mayStart, func(d *simetcd.DataDir) bool { return true })
}

// ResumesUntouched is IsRecoverable without what no controller may do: admit a pod while there is no
// quorum, and delete a pod that cannot start while its PVC is being deleted.
func (w *World) ResumesUntouched(l *simetcd.Lineage) bool {
	return w.isRecoverable(l, w.mayStartAdmitted, w.mayReturn)
}

func (w *World) isRecoverable(l *simetcd.Lineage, mayStart func(*simetcd.Peer) bool, mayReturn func(*simetcd.DataDir) bool) bool {
	for i := range l.Members.Peers {
		d := l.Dirs[l.Members.Peers[i].Id]
		if d == nil || d.Doomed || d.Destroyed || !d.Members.IsVoter(d.Id) || !mayReturn(d) {
			continue
		}
		kept := 0
		for j := range d.Members.Peers {
			m := &d.Members.Peers[j]
			other := l.Dirs[m.Id]
			if !m.Learner && (other == nil && mayStart(m) || other != nil && !other.Doomed && !other.Destroyed && mayReturn(other) && d.IsNewer(other)) {
				kept++
			}
		}
		if kept >= d.Members.Quorum() {
			return true
		}
	}
	return false
}

// mayStart is true if a member that has never run has a pod that will run it, or a
// volume for which a pod will be made.
func (w *World) mayStart(m *simetcd.Peer) bool {
	name := nameOf(m)
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, name)
	pvc, kept := Lookup[PVC](w.Store, KindPVC, name)
	return found && pod.DeletionTimestamp == nil && !HasFinished(pod) || kept && pvc.DeletionTimestamp == nil
}

func (w *World) mayStartAdmitted(m *simetcd.Peer) bool {
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, nameOf(m))
	return w.mayStart(m) && !(found && resources.IsPrepared(pod.Annotations))
}

// mayReturn is false for a member whose pod cannot start, and whose PVC ends with that pod.
func (w *World) mayReturn(d *simetcd.DataDir) bool {
	pod, found := Lookup[*corev1.Pod](w.Store, KindPod, d.Name)
	pvc, kept := Lookup[PVC](w.Store, KindPVC, d.Name)
	return !found || !simetcd.CannotStart(pod) || !kept || pvc.DeletionTimestamp == nil
}

// nameOf returns the name of the pod of a member, by its URL.
func nameOf(m *simetcd.Peer) string {
	name, _, _ := strings.Cut(m.Url[strings.LastIndexByte(m.Url, '/')+1:], ".")
	return name
}
