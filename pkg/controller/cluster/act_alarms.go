// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// disarmNoSpace disarms an alarm of a full database. A voter may report the alarm for a moment after
// that, and then no event repeats what is done already.
func disarmNoSpace(ctx context.Context, r *run, a planner.DisarmNoSpace) error {
	disarmed, err := r.Etcd.DisarmNoSpace(ctx, r.seen.voters, a.ID)
	mayHave := err == nil || errors.Is(err, etcd.ErrTimeout) || errors.Is(err, etcd.ErrNoQuorum)
	r.disarms.note(r.key, a.ID, r.Clock.Now(), mayHave)
	if err != nil || !disarmed {
		return err
	}
	normal(r, EventAlarmDisarmed, "Disarmed alarm NOSPACE of member %x: the database of each member that serves is below its quota", a.ID)
	return nil
}

// disarmMemory counts the attempts to disarm alarms, by cluster and member, so that they become rarer. Nothing
// else depends on it. The zero value is ready.
type disarmMemory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]map[uint64]planner.Disarms
}

// note counts an attempt. One that cannot have disarmed the alarm, as etcd was not reached or has rejected it, is only
// followed by a pause: it is no evidence that the alarm comes back.
func (d *disarmMemory) note(key types.NamespacedName, id uint64, now time.Time, mayHave bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clusters == nil {
		d.clusters = map[types.NamespacedName]map[uint64]planner.Disarms{}
	}
	if d.clusters[key] == nil {
		d.clusters[key] = map[uint64]planner.Disarms{}
	}
	made := planner.Disarms{Count: d.clusters[key][id].Count, Last: now}
	if mayHave {
		made.Count++
	}
	d.clusters[key][id] = made
}

// of returns the attempts for a cluster that still count. A clock that was set back makes them count no longer.
func (d *disarmMemory) of(key types.NamespacedName, now time.Time) map[uint64]planner.Disarms {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.clusters[key], func(_ uint64, made planner.Disarms) bool {
		return apiclock.IsOver(made.Last, now, planner.DisarmMemory)
	})
	return maps.Clone(d.clusters[key])
}

// forget drops the attempts for a cluster.
func (d *disarmMemory) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clusters, key)
}
