// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// apiBackup is what its own etcd had stored at a moment: the EtcdCluster, if
// there was one, and the EtcdRestores that had not ended.
type apiBackup struct {
	cluster clusterObject
	version int64
	// asked are the EtcdRestores that had asked the cluster already.
	asked map[string]bool
}

// bumped is by how much resource versions go on when the user has asked for that.
const bumped = 1_000_000_000

// rollBackEvents bring the objects of our API back from an earlier time, now and then:
// its own etcd was restored from a backup. Kubernetes and the managed etcd stay as they
// are. They are drawn apart from the others, so that schedules without them stay what they
// were.
func rollBackEvents(s *Schedule) {
	d := newDice(s.Seed, 13)
	if !d.chance(15) {
		return
	}
	for range 1 + d.IntN(2) {
		s.Events = append(s.Events, rollBackAt(d))
	}
}

// rollBackAt saves the objects at a moment and brings them back For later. With an odd A
// the resource versions go back, too.
func rollBackAt(d *dice) Event {
	e := Event{At: d.between(0, 4*time.Minute), Kind: EventOldAPI, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.between(time.Second, 4*time.Minute)}
	if d.chance(30) {
		e.At = d.between(0, 15*time.Second) // much happens while a cluster starts
	}
	return e
}

// saveAPI makes a backup of our API, which is brought back later.
func (w *World) saveAPI(e Event) {
	saved := &apiBackup{version: w.store.versions[kindCluster], asked: maps.Clone(w.restores)}
	saved.cluster, _ = lookup[clusterObject](w.store, kindCluster, clusterName)
	w.after(e.For, func() {
		if w.checks.found == nil {
			w.rollBack(e, saved)
		}
	})
}

// rollBack brings the objects of our API back. Garbage collection follows what is there
// now: it takes what belongs to an EtcdCluster that is not.
func (w *World) rollBack(e Event, saved *apiBackup) {
	w.disturb()
	w.trace("EVENT the API is as it was %v ago", e.For)
	w.stats.fault("the API goes back")
	s := w.store
	was, found := lookup[clusterObject](s, kindCluster, clusterName)
	if e.A%2 == 0 {
		s.versions[kindCluster] += bumped
	} else {
		s.versions[kindCluster] = saved.version
	}
	if found && (saved.cluster == nil || saved.cluster.UID != was.UID) {
		w.checks.gone[string(was.UID)] = true
		s.remove(kindCluster, clusterName)
		w.lose(string(was.UID))
	}
	if saved.cluster != nil {
		if !found || *was.Spec.Replicas != *saved.cluster.Spec.Replicas {
			w.checks.resized(*saved.cluster.Spec.Replicas)
		}
		w.checks.returned(saved.cluster)
		s.tables[kindCluster].put(saved.cluster)
		s.record(kindCluster, saved.cluster, false)
	}
	for _, id := range slices.Sorted(maps.Keys(w.restores)) {
		if !saved.asked[id] {
			// It existed already, perhaps, and had not come to the point yet.
			w.after(w.dice.between(0, time.Minute), func() { w.askOnceMore(id) })
		}
	}
}

// confirmedWithin is how long a new PVC may have its owner reference, with which garbage
// collection deletes it.
const confirmedWithin = 2 * time.Minute

// lose is for a cluster whose object vanished, and not because its owner has deleted it: no
// PVC goes by itself. After a while a person deletes what is left.
func (w *World) lose(uid string) {
	kept := map[string]types.UID{}
	for _, object := range w.store.list(kindClaim) {
		confirmed := metav1.GetControllerOf(object) == nil || w.Since(object.GetCreationTimestamp().Time) > confirmedWithin
		if object.GetDeletionTimestamp() == nil && ownerOf(object) == uid && confirmed {
			kept[object.GetName()] = object.GetUID()
		}
	}
	w.checks.left = kept
	w.after(w.dice.between(2*collectDelay, time.Minute), func() {
		w.checks.left = nil
		for _, k := range []kind{kindService, kindSecret, kindClaim, kindPod, kindBudget} {
			for _, object := range w.store.list(k) {
				if id := object.GetUID(); ownerOf(object) == uid {
					_ = w.store.deleteObject(k, object.GetName(), metav1.Preconditions{UID: &id})
				}
			}
		}
	})
}

// losing is called when a PVC is about to go.
func (c *checks) losing(claim claimObject) {
	if uid, kept := c.left[claim.Name]; kept && uid == claim.UID {
		c.violated("S5", "PVC %s goes, and its cluster was not deleted: the API lost it", claim.Name)
	}
}

// askOnceMore is the controller of EtcdRestores with one that is from before it asked: it
// follows what the cluster says of it, and if that is nothing, it asks.
func (w *World) askOnceMore(id string) {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	switch {
	case !found || w.quiet:
	case cluster.Status.Recovery != nil && cluster.Status.Recovery.ID == id:
	case cluster.Status.Recovery.InProgress():
		w.after(5*time.Second, func() { w.askOnceMore(id) })
	default:
		w.trace("EtcdRestore %s asks once more", id)
		w.ask(id, w.asked[id])
	}
}

// returned is called when the object of a cluster that may have been deleted is back,
// perhaps for the second time, with another status.
func (c *checks) returned(cluster clusterObject) {
	uid := string(cluster.UID)
	if _, before := c.unwitnessed[uid]; !before && !c.gone[uid] {
		return
	}
	phase := cluster.Status.Phase
	c.unwitnessed[uid] = phase == v1beta2.ClusterPhaseNone || phase == v1beta2.ClusterPhaseCreating
	if !c.gone[uid] {
		return
	}
	delete(c.gone, uid)
	if l := c.recorded[uid]; l != nil {
		l.lost = !c.judge(l).recoverable
	}
}

// beginsAnew forgets a cluster that its owner has deleted, with all that belonged to it,
// and whose object is back with a status from before it has served. Nothing is left that
// could tell it from a new one (ADR 2), and no data that a second seed could be a danger
// to. Nothing may be left, though.
func (c *checks) beginsAnew(uid string) {
	if !c.unwitnessed[uid] || slices.ContainsFunc(c.w.etcd.lineages, func(l *lineage) bool { return l.owner == uid && l.remains() }) {
		return
	}
	delete(c.recorded, uid)
	delete(c.served, uid)
	delete(c.w.histories, uid)
}

// restoredOnce: what replaces the data of a cluster does so once. Whatever was written since
// then would be lost.
func (c *checks) restoredOnce(owner, id, clusterID string) {
	key := [2]string{owner, id}
	if before, done := c.restored[key]; done && before != clusterID {
		c.violated("S6", "restore %s is carried out a second time, and replaces what was written since then", id)
	}
	c.restored[key] = clusterID
}
