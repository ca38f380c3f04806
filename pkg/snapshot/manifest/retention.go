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
	// Raw is the manifest as the store has it, which may have fields that this program does not know. It is set where the
	// manifest was listed and read.
	Raw []byte
	// Modified is when the manifest was stored, by the clock of the store; zero if that was not
	// requested.
	Modified time.Time
}

// MadeAt is when the backup was finished, which was before its manifest was stored. So a
// clock that was ahead does not make a backup newer than it is.
func (s Stored) MadeAt() time.Time { return Earlier(s.Manifest.FinishedAt, s.Modified) }

// dueAt is when the backup was due.
func (s Stored) dueAt(present time.Time) time.Time {
	if s.Manifest.StartedAt.IsZero() {
		return s.MadeAt()
	}
	return DueAt(s.Manifest.StartedAt, s.Modified, present)
}

// DueAt is when a backup was due whose transfer began then, by the clock of Kubernetes. For one
// from the future, which a clock that was ahead has dated, it is when the store dated the manifest.
// So it is neither the newest for ever, nor does it make others old.
func DueAt(started, modified, present time.Time) time.Time {
	if started.After(present) {
		return Earlier(started, modified)
	}
	return started
}

// Earlier returns the earlier of two times; one that is zero is not known.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// Dated is a backup as far as a retention looks at it.
type Dated struct {
	// At is a recorded time of the backup, the same kind of time for all.
	At time.Time
	// Finished is when it was finished, if that is known by then: a backup is as young as the
	// younger of both times.
	Finished time.Time
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
		tooOld := r.MaxAge > 0 && now.Sub(backups[i].At) > r.MaxAge && now.Sub(backups[i].Finished) > r.MaxAge
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
// order go by recorded times, never by a name. The newest one always stays. What was due after
// present is from the future.
func Prunable(backups []Stored, r Retention, now, present time.Time) []Stored {
	dated := make([]Dated, len(backups))
	for i, s := range backups {
		dated[i] = Dated{At: s.dueAt(present), Finished: s.MadeAt(), Revision: s.Manifest.Revision, Cluster: s.Manifest.Owner.UID}
	}
	verdict := r.Judge(dated, now)
	var prunable []Stored
	for _, i := range append(verdict.Surplus, verdict.Old...) {
		prunable = append(prunable, backups[i])
	}
	slices.SortStableFunc(prunable, func(a, b Stored) int { return a.dueAt(present).Compare(b.dueAt(present)) })
	return prunable
}
