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

// Prunable returns the backups that the retention lets go, the oldest first. Age and
// order go by the recorded time, never by a name. The newest one always stays.
func Prunable(backups []Stored, r Retention, now time.Time) []Stored {
	sorted := slices.Clone(backups)
	slices.SortFunc(sorted, func(a, b Stored) int {
		if c := b.Manifest.FinishedAt.Compare(a.Manifest.FinishedAt); c != 0 {
			return c
		}
		return int(min(max(b.Manifest.Revision-a.Manifest.Revision, -1), 1))
	})
	var prunable []Stored
	for i, s := range sorted {
		tooMany := r.Count > 0 && i >= r.Count
		tooOld := r.MaxAge > 0 && now.Sub(s.Manifest.FinishedAt) > r.MaxAge
		if i > 0 && (tooMany || tooOld) {
			prunable = append(prunable, s)
		}
	}
	slices.Reverse(prunable)
	return prunable
}
