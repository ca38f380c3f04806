// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
)

// Transfer is a Job that moves data, or is about to.
type transfer struct {
	job types.NamespacedName
	// source is the cluster that it reads.
	source types.NamespacedName
}

// waiter is an EtcdBackup that is due.
type waiter struct {
	source types.NamespacedName
	slot   time.Time
}

// admission bounds how many Jobs run at once, in all and for each cluster, and lets
// those that are due longest go first. It is lost with the process: whoever waits asks
// again.
type admission struct {
	// total is how many may run at once.
	total int

	mu sync.Mutex
	// begun holds the Jobs that were made and that the cache may not show yet.
	begun   map[types.NamespacedName]transfer
	waiting map[types.NamespacedName]waiter
}

func newAdmission(total int) *admission {
	return &admission{total: total, begun: map[types.NamespacedName]transfer{}, waiting: map[types.NamespacedName]waiter{}}
}

// admit reserves a place for the backup called key, or says what it waits for. Running
// are the unfinished Jobs that the cache shows.
func (a *admission) admit(key types.NamespacedName, job, source types.NamespacedName, slot time.Time, running []transfer) *planner.Wait {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[key] = waiter{source: source, slot: slot}
	busy := a.busy(running)
	if !slices.Contains(a.next(busy), key) {
		if _, taken := busy[source]; taken {
			return &planner.Wait{Reason: "AnotherBackupRuns", Message: fmt.Sprintf("another backup of %s runs", source.Name)}
		}
		return &planner.Wait{Reason: "TooManyBackups", Message: fmt.Sprintf("%d backups run, which is as many as may at once", a.total)}
	}
	delete(a.waiting, key)
	a.begun[key] = transfer{job: job, source: source}
	return nil
}

// busy counts the Jobs of each cluster.
func (a *admission) busy(running []transfer) map[types.NamespacedName]int {
	jobs := map[types.NamespacedName]types.NamespacedName{}
	for _, t := range running {
		jobs[t.job] = t.source
	}
	for _, t := range a.begun {
		jobs[t.job] = t.source
	}
	busy := map[types.NamespacedName]int{}
	for _, source := range jobs {
		busy[source]++
	}
	return busy
}

// next returns the waiters that fit in now, those that are due longest first.
func (a *admission) next(busy map[types.NamespacedName]int) []types.NamespacedName {
	free := a.total
	for _, n := range busy {
		free -= n
	}
	keys := make([]types.NamespacedName, 0, len(a.waiting))
	for key := range a.waiting {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y types.NamespacedName) int {
		return cmp.Or(a.waiting[x].slot.Compare(a.waiting[y].slot), cmp.Compare(x.String(), y.String()))
	})
	taken := map[types.NamespacedName]bool{}
	var fit []types.NamespacedName
	for _, key := range keys {
		source := a.waiting[key].source
		if len(fit) >= free {
			break
		}
		if busy[source] == 0 && !taken[source] {
			taken[source] = true
			fit = append(fit, key)
		}
	}
	return fit
}

// settle drops the reservation of a backup whose Job the cache shows, or that has none.
func (a *admission) settle(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.begun, key)
}

// leave takes a backup out of the queue.
func (a *admission) leave(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.begun, key)
	delete(a.waiting, key)
}

// fitting returns who would be admitted now.
func (a *admission) fitting(running []transfer) []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return nil
	}
	return a.next(a.busy(running))
}
