// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Retention says which backups of a periodic one are kept.
type Retention struct {
	// Count of good backups that are kept at most; 0: no limit.
	Count int32
	// Age up to which they are kept; 0: no limit.
	Age time.Duration
}

func (r Retention) isUnlimited() bool { return r.Count <= 0 && r.Age <= 0 }

// retention is what the Job has applied: the spec may have changed since the Job was created.
func (j *Job) retention() Retention {
	if j == nil || j.Pruner == nil {
		return Retention{}
	}
	p := j.Pruner.Request.Prune
	return Retention{Count: p.Count, Age: time.Duration(p.MaxAgeSeconds) * time.Second}
}

// Expired returns the good backups in a history that need not be kept at now, oldest
// first. It goes by the time at which each was made, never by a name or a revision.
// It never returns the newest good backup or the newest backup that was verified. It
// returns none while the newest attempt has failed. So a store with a problem, or a
// cluster that was deleted, never costs a backup.
func Expired(history []v1beta2.BackupRecord, keep Retention, now time.Time) []v1beta2.BackupRecord {
	if keep.isUnlimited() {
		return nil
	}
	newestFirst := slices.Clone(history)
	slices.SortStableFunc(newestFirst, func(a, b v1beta2.BackupRecord) int { return b.StartTime.Compare(a.StartTime.Time) })
	if len(newestFirst) == 0 || !newestFirst[0].Succeeded {
		return nil
	}
	var expired []v1beta2.BackupRecord
	kept := int32(0)
	verified, before := false, lastOfEarlier(newestFirst)
	for i := range newestFirst {
		record := &newestFirst[i]
		if !record.Succeeded {
			continue
		}
		precious := kept == 0 || (record.Verified && !verified)
		verified = verified || record.Verified
		tooMany := keep.Count > 0 && kept >= keep.Count && i != before
		tooOld := keep.Age > 0 && now.Sub(madeAt(record)) > keep.Age
		if !precious && (tooMany || tooOld) {
			expired = append(expired, *record)
			continue
		}
		kept++
	}
	slices.Reverse(expired)
	return expired
}

// lastOfEarlier returns the index of the newest good backup of the cluster that had the same
// name before; -1 if there is none. As in the store, a count does not let it go.
func lastOfEarlier(newestFirst []v1beta2.BackupRecord) int {
	current := manifest.ClusterDir(newestFirst[0].URI)
	return slices.IndexFunc(newestFirst, func(r v1beta2.BackupRecord) bool {
		return r.Succeeded && manifest.ClusterDir(r.URI) != current
	})
}

func madeAt(record *v1beta2.BackupRecord) time.Time {
	if record.CompletionTime != nil {
		return record.CompletionTime.Time
	}
	return record.StartTime.Time
}
