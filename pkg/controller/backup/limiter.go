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

// activeJob is a Job that moves data, or is about to.
type activeJob struct {
	name types.NamespacedName
	// source is the cluster that the Job reads.
	source types.NamespacedName
}

// waiter is an EtcdBackup that is due.
type waiter struct {
	source types.NamespacedName
	// due is the scheduled time.
	due time.Time
}

// limiter limits how many Jobs run at once, in all and for each cluster. The backup that has
// been due for longest starts first. A restart of the process empties the limiter; waiting
// backups then ask again.
type limiter struct {
	// total is how many Jobs may run at once.
	total int

	mu sync.Mutex
	// started holds the Jobs that were created and that the cache may not show yet.
	started map[types.NamespacedName]activeJob
	waiting map[types.NamespacedName]waiter
}

func newLimiter(total int) *limiter {
	return &limiter{total: total, started: map[types.NamespacedName]activeJob{}, waiting: map[types.NamespacedName]waiter{}}
}

// acquire reserves one of the Jobs for the backup called key, or says what the backup waits
// for. Running are the unfinished Jobs that the cache shows.
func (l *limiter) acquire(key, job, source types.NamespacedName, due time.Time, running []activeJob) *planner.Wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[key] = waiter{source: source, due: due}
	inFlight := l.inFlight(running)
	if !slices.Contains(l.startable(inFlight), key) {
		if _, taken := inFlight[source]; taken {
			return &planner.Wait{Reason: planner.ReasonAnotherBackupRuns, Message: fmt.Sprintf("another backup of EtcdCluster %s runs", source.Name)}
		}
		return &planner.Wait{Reason: planner.ReasonTooManyBackups, Message: fmt.Sprintf("%d backups run, which is the limit (--max-concurrent-backups)", l.total)}
	}
	delete(l.waiting, key)
	l.started[key] = activeJob{name: job, source: source}
	return nil
}

// inFlight counts the Jobs of each cluster.
func (l *limiter) inFlight(running []activeJob) map[types.NamespacedName]int {
	sources := map[types.NamespacedName]types.NamespacedName{}
	for _, j := range running {
		sources[j.name] = j.source
	}
	for _, j := range l.started {
		sources[j.name] = j.source
	}
	count := map[types.NamespacedName]int{}
	for _, source := range sources {
		count[source]++
	}
	return count
}

// startable returns the waiting backups that may start now, those that have been due for
// longest first.
func (l *limiter) startable(inFlight map[types.NamespacedName]int) []types.NamespacedName {
	free := l.total
	for _, n := range inFlight {
		free -= n
	}
	keys := make([]types.NamespacedName, 0, len(l.waiting))
	for key := range l.waiting {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y types.NamespacedName) int {
		return cmp.Or(l.waiting[x].due.Compare(l.waiting[y].due), cmp.Compare(x.String(), y.String()))
	})
	taken := map[types.NamespacedName]bool{}
	var fit []types.NamespacedName
	for _, key := range keys {
		source := l.waiting[key].source
		if len(fit) >= free {
			break
		}
		if inFlight[source] == 0 && !taken[source] {
			taken[source] = true
			fit = append(fit, key)
		}
	}
	return fit
}

// cached drops the reservation of a backup whose Job the cache shows, or that has none.
func (l *limiter) cached(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.started, key)
}

// release drops the reservation of a backup and stops it from waiting.
func (l *limiter) release(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.started, key)
	delete(l.waiting, key)
}

// next returns the waiting backups that may start now.
func (l *limiter) next(running []activeJob) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	return l.startable(l.inFlight(running))
}
