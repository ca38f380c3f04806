// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
)

// Observation is what a controller has looked at since it began to reconcile.
type Observation struct {
	Started time.Duration
	// Owner is the UID of the cluster that it acts for.
	Owner string
	// Disturbed is the number of disturbances then.
	Disturbed int
	Live      map[string]types.UID
	// FromQuorum is true if the member list was read through a quorum, at the time listedAt.
	// Members is that list, and Healthy the members that responded and had a leader.
	FromQuorum bool
	listedAt   time.Duration
	Members    *simetcd.Membership
	Healthy    []uint64
	leaders    map[uint64]int
	Changed    bool
	// Rejected holds the time at which no process listened at the address of a member, by the
	// name of its pod.
	Rejected map[string]time.Duration
	// Applied is how many entries each member that responded had applied, by the name of its pod.
	Applied map[string]int
}

// Saw remembers an object that was read live.
func (l *Observation) Saw(k kubernetes.Kind, object metav1.Object) {
	if l.Live == nil {
		l.Live = map[string]types.UID{}
	}
	l.Live[kubernetes.KindNames[k]+"/"+object.GetName()] = object.GetUID()
}

// asked remembers which members responded, and where nothing listened.
func (l *Observation) asked(w *World, results map[string]etcd.StatusResult) {
	l.Healthy, l.leaders, l.Rejected = nil, map[uint64]int{}, map[string]time.Duration{}
	if l.Applied == nil {
		l.Applied = map[string]int{}
	}
	for name, r := range results {
		if errors.Is(r.Err, etcd.ErrUnavailable) {
			l.Rejected[name] = w.Elapsed
		}
	}
	for _, p := range w.Etcd.Processes {
		if r, asked := results[p.Run.Name()]; asked && r.Err == nil {
			l.Applied[p.Run.Name()] = p.Applied
		}
		if p.Leader != 0 && p.Serves && !p.IsRemovedOld() && !w.Etcd.IsHidden(p.Run) {
			l.Healthy = append(l.Healthy, p.Dir.Id)
			l.leaders[p.Leader]++
		}
	}
}

// listed remembers the member list that was read.
func (l *Observation) listed(w *World, from *simetcd.Lineage) {
	l.FromQuorum, l.listedAt, l.Members, l.Changed = true, w.Elapsed, from.Members, false
}

// Leads is true if most members that responded followed a member.
func (l *Observation) Leads(id uint64) bool {
	total := 0
	for _, n := range l.leaders {
		total += n
	}
	return 2*l.leaders[id] > total
}

// Serving counts the voters that responded, leaving one out.
func (l *Observation) Serving(except uint64) int {
	n := 0
	if l.Members == nil {
		return n // no list was read since the controller has started
	}
	for i := range l.Members.Peers {
		if p := &l.Members.Peers[i]; !p.Learner && p.Id != except && slices.Contains(l.Healthy, p.Id) {
			n++
		}
	}
	return n
}

// Writing counts the voters that responded and whose disks take writes, leaving one out.
func (l *Observation) Writing(lineage *simetcd.Lineage, except uint64) int {
	n := 0
	for i := range l.Members.Peers {
		p := &l.Members.Peers[i]
		if d := lineage.Dirs[p.Id]; !p.Learner && p.Id != except && slices.Contains(l.Healthy, p.Id) && d != nil && !d.Hung {
			n++
		}
	}
	return n
}

// IsDisturbed is true if something happened since a controller began to look, or so
// shortly before that it was not noticed.
func (w *World) IsDisturbed(l *Observation) bool {
	return l.Disturbed != w.Disturbances || w.Elapsed-w.DisturbedAt < unnoticed
}

// unnoticed is how long a member may seem to serve after it was cut off.
const unnoticed = 4 * time.Second
