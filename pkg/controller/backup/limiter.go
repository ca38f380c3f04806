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

// limiter limits how many Jobs run at once, in all, for each namespace and for each cluster. The backup that has
// been due for longest starts first. A restart of the process empties the limiter; waiting
// backups then ask again.
type limiter struct {
	// total is how many Jobs may run at once, share how many of them for one namespace.
	total, share int

	mu sync.Mutex
	// started holds the Jobs that were created and that the cache may not show yet.
	started map[types.NamespacedName]activeJob
	waiting map[types.NamespacedName]waiter
}

func newLimiter(total, share int) *limiter {
	return &limiter{total: total, share: share, started: map[types.NamespacedName]activeJob{}, waiting: map[types.NamespacedName]waiter{}}
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
		if l.ofNamespaces(inFlight)[key.Namespace] >= l.share {
			return &planner.Wait{Reason: planner.ReasonTooManyBackups, Message: fmt.Sprintf("%d backups run in namespace %s, which is the limit for one namespace (half of --max-concurrent-backups)", l.share, key.Namespace)}
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

// ofNamespaces counts the Jobs of each namespace. None takes more than its share, whatever Jobs it has.
func (l *limiter) ofNamespaces(inFlight map[types.NamespacedName]int) map[string]int {
	count := map[string]int{}
	for source, n := range inFlight {
		count[source.Namespace] = min(count[source.Namespace]+n, l.share)
	}
	return count
}

// startable returns the waiting backups that may start now, those that have been due for
// longest first.
func (l *limiter) startable(inFlight map[types.NamespacedName]int) []types.NamespacedName {
	free, shares := l.total, l.ofNamespaces(inFlight)
	for _, n := range shares {
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
		if inFlight[source] == 0 && !taken[source] && shares[key.Namespace] < l.share {
			taken[source] = true
			shares[key.Namespace]++
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
