// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// history is every write that was acknowledged to a client of one EtcdCluster.
type history struct {
	lineage *lineage
	acked   []ackedWrite
}

type ackedWrite struct {
	number, index int
	term          uint64
}

// lostBy returns the first acknowledged write that a log does not hold.
func (h *history) lostBy(d *dataDir) (ackedWrite, bool) {
	for _, a := range h.acked {
		if a.index > len(d.log) || d.log[a.index-1].write != a.number || d.log[a.index-1].term != a.term {
			return a, true
		}
	}
	return ackedWrite{}, false
}

// clientEvery is how long a client waits between two writes.
const (
	clientEveryMin = 200 * time.Millisecond
	clientEveryMax = 1200 * time.Millisecond
)

// client writes again and again through the service.
func (w *World) client() {
	w.after(w.dice.between(clientEveryMin, clientEveryMax), w.client)
	p := w.endpoint()
	if p == nil {
		return
	}
	w.write(p)
}

// endpoint returns one of the processes that the service for clients leads to.
func (w *World) endpoint() *process {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return nil
	}
	service, found := lookup[*corev1.Service](w.store, kindService, resources.ClientServiceName(cluster))
	if !found || len(service.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	var ready []*process
	for _, object := range w.store.list(kindPod) {
		pod := object.(*corev1.Pod)
		if !selector.Matches(labelsOf(pod)) || !isReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if p := w.etcd.serving(pod.Status.PodIP); p != nil {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return pick(w.dice, ready...)
}

// write writes once and remembers what was acknowledged. A write that is
// acknowledged is a read too: it was ordered after everything before it.
func (w *World) write(p *process) {
	if !p.members.isVoter(p.dir.id) {
		return
	}
	leader := w.etcd.quorumLeader(p)
	if leader == nil {
		w.stats.WritesFailed++
		return
	}
	w.writes++
	if !w.etcd.append(leader, entry{kind: entryWrite, write: w.writes}) {
		w.stats.WritesFailed++
		return
	}
	w.stats.WritesAcked++
	h := w.historyOf(leader.dir.lineage.owner)
	if h.lineage == nil {
		h.lineage = leader.dir.lineage
	}
	if h.lineage != leader.dir.lineage {
		w.checks.violated("S4", "clients of cluster %s are served by a second etcd, started by %s", h.lineage.owner, leader.dir.lineage.seed)
		return
	}
	h.acked = append(h.acked, ackedWrite{number: w.writes, index: len(leader.dir.log), term: leader.dir.term})
}

func (w *World) historyOf(owner string) *history {
	h := w.histories[owner]
	if h == nil {
		h = &history{}
		w.histories[owner] = h
	}
	return h
}

// resolvable is true while members find each other by name.
func (w *World) resolvable() bool {
	service, found := lookup[*corev1.Service](w.store, kindService, clusterName)
	return found && service.Spec.Selector[resources.LabelCluster] == clusterName && service.Spec.PublishNotReadyAddresses
}

func labelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }
