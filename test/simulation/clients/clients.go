// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// clientEvery is how long a client waits between two writes.
const (
	ClientEveryMin = 200 * time.Millisecond
	ClientEveryMax = 1200 * time.Millisecond
)

// World is the simulated Kubernetes with what its users have: programs that write, backups,
// and requests for restores.
type World struct {
	*kubernetes.World
	writes    int
	Histories map[string]*simetcd.History
	// Recoveries counts the requests for a recovery.
	Recoveries int
	// Restores are the IDs of requested restores, and Asked has the backup that each was to
	// restore.
	Restores map[string]bool
	Asked    map[string]string
	// Uncopied are the restores without a pre-restore backup: no member responded when they were requested.
	Uncopied map[string]bool
	// Holds says what the retention keeps, and stored counts the backups that were stored.
	Holds  Held
	stored int
}

// New adds clients to a simulated Kubernetes.
func New(w *kubernetes.World) *World {
	return &World{World: w, Histories: map[string]*simetcd.History{}, Restores: map[string]bool{}, Asked: map[string]string{}, Uncopied: map[string]bool{}, Holds: backup.Held}
}

// Client writes again and again through the service.
func (w *World) Client() {
	w.After(w.Dice.Between(ClientEveryMin, ClientEveryMax), w.Client)
	p := w.endpoint()
	if p == nil {
		return
	}
	w.Write(p)
}

// endpoint returns one of the processes that the client Service leads to. Clients of an etcd that is
// taken over use its old members, too.
func (w *World) endpoint() *simetcd.Process {
	if old := w.Etcd.OldMembers(); len(old) > 0 && w.Dice.Between(0, 2) == 0 {
		return timeline.Pick(w.Dice, old...)
	}
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return nil
	}
	service, found := kubernetes.Lookup[*corev1.Service](w.Store, kubernetes.KindService, resources.ClientServiceName(cluster))
	if !found || len(service.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var ready []*simetcd.Process
	for _, object := range w.Store.List(kubernetes.KindPod) {
		pod := object.(*corev1.Pod)
		if !selector.Matches(kubernetes.LabelsOf(pod)) || !kubernetes.IsReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if p := w.Etcd.Serving(pod.Status.PodIP); p != nil {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return timeline.Pick(w.Dice, ready...)
}

// Write writes once and remembers what was acknowledged. A write that is
// acknowledged is a read too: it was ordered after everything before it.
func (w *World) Write(p *simetcd.Process) {
	if !p.Members.IsVoter(p.Dir.Id) {
		return
	}
	leader := w.Etcd.QuorumLeader(p)
	if leader == nil {
		w.Stats.WritesFailed++
		return
	}
	w.writes++
	if !w.Etcd.Append(leader, simetcd.Entry{Kind: simetcd.EntryWrite, Write: w.writes}) {
		w.Stats.WritesFailed++
		return
	}
	w.Stats.WritesAcked++
	h := w.historyOf(leader.Dir.Lineage.Owner)
	if h.Lineage == nil {
		h.Lineage = leader.Dir.Lineage
	}
	if h.Lineage != leader.Dir.Lineage {
		w.Violated("S4", "clients of cluster %s are served by a second etcd, started by %s", h.Lineage.Owner, leader.Dir.Lineage.BootstrapMember)
		return
	}
	h.Acked = append(h.Acked, simetcd.AckedWrite{Number: w.writes, Index: len(leader.Dir.Log), Term: leader.Dir.Term})
}

func (w *World) historyOf(owner string) *simetcd.History {
	h := w.Histories[owner]
	if h == nil {
		h = &simetcd.History{}
		w.Histories[owner] = h
	}
	return h
}
