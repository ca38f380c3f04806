// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"time"
)

// Retention says which backups are kept; zero fields limit nothing.
type Retention struct {
	// Count of backups that are kept at most.
	Count int
	// MaxAge since a backup was finished.
	MaxAge time.Duration
}

// Stored is a backup in a store.
type Stored struct {
	// Key of the manifest.
	Key      string
	Manifest *Manifest
}

// Dated is a backup as far as a retention looks at it.
type Dated struct {
	// At is a recorded time of the backup, the same kind of time for all.
	At       time.Time
	Revision int64
	// Cluster tells apart clusters that had the same name one after the other.
	Cluster string
}

// Verdict is what a retention says of a list of backups, by their indexes.
type Verdict struct {
	// Surplus are the backups beyond Retention.Count, and Old those that are no more than
	// older than Retention.MaxAge; each the oldest first.
	Surplus, Old []int
	// Spared is the newest backup of the cluster before, which is kept beyond
	// Retention.Count; -1 if there is none.
	Spared int
}

// Judge says which backups need not be kept. The newest backup is always kept. When a
// cluster was created again under the same name, the newest backup of the earlier cluster is
// the last copy of its data. Only MaxAge deletes that backup, so that a cluster that was
// created again by mistake does not cost it.
func (r Retention) Judge(backups []Dated, now time.Time) Verdict {
	order := make([]int, len(backups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := backups[b].At.Compare(backups[a].At); c != 0 {
			return c
		}
		return int(min(max(backups[b].Revision-backups[a].Revision, -1), 1))
	})
	verdict := Verdict{Spared: -1}
	before := slices.IndexFunc(order, func(i int) bool { return backups[i].Cluster != backups[order[0]].Cluster })
	for rank, i := range order {
		tooMany := r.Count > 0 && rank >= r.Count
		tooOld := r.MaxAge > 0 && now.Sub(backups[i].At) > r.MaxAge
		switch {
		case rank == 0:
		case tooMany && rank == before && !tooOld:
			verdict.Spared = i
		case tooMany && rank != before:
			verdict.Surplus = append(verdict.Surplus, i)
		case tooOld:
			verdict.Old = append(verdict.Old, i)
		}
	}
	slices.Reverse(verdict.Surplus)
	slices.Reverse(verdict.Old)
	return verdict
}

// Prunable returns the backups that the retention lets go, the oldest first. Age and
// order go by the recorded time, never by a name. The newest one always stays.
func Prunable(backups []Stored, r Retention, now time.Time) []Stored {
	dated := make([]Dated, len(backups))
	for i, s := range backups {
		dated[i] = Dated{At: s.Manifest.FinishedAt, Revision: s.Manifest.Revision, Cluster: s.Manifest.Owner.UID}
	}
	verdict := r.Judge(dated, now)
	var prunable []Stored
	for _, i := range append(verdict.Surplus, verdict.Old...) {
		prunable = append(prunable, backups[i])
	}
	slices.SortStableFunc(prunable, func(a, b Stored) int { return a.Manifest.FinishedAt.Compare(b.Manifest.FinishedAt) })
	return prunable
}
