// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Held returns the URIs of the backups that a user holds, and of those that a restore reads or may read, sorted. The
// retention of b deletes none of them: the data that a user wants back is often the oldest that is kept. Cluster is the
// one that b is of, and may be nil. A name without a revision means the newest good backup; which one that was is known
// once it was verified.
func Held(b *v1beta2.EtcdBackup, restores []*v1beta2.EtcdRestore, cluster *v1beta2.EtcdCluster) []string {
	held := slices.Clone(b.Spec.HeldSnapshots)
	if b.IsHeld() {
		for _, s := range storedBy(b) {
			held = append(held, s.uri)
		}
	}
	for _, r := range restores {
		if !isOpen(r) {
			continue
		}
		switch from := r.Spec.Backup; {
		case from == nil:
			place := uriOf(r.Spec.BackupStorageType, &r.Spec.RestoreSource)
			if place != "" {
				held = append(held, place)
				held = append(held, newestFor(b, r, place)...)
			}
		case from.Name != b.Name:
		case from.Revision != nil:
			held = append(held, ofRevision(b, *from.Revision)...)
		default:
			held = append(held, newestFor(b, r, "")...)
		}
	}
	if cluster != nil && cluster.Status.Recovery.IsInProgress() {
		if place := cluster.Status.Recovery.Source.Backup; place != nil {
			held = append(held, uriOf(place.StorageType, &place.RestoreSource))
		}
	}
	slices.Sort(held)
	return slices.DeleteFunc(slices.Compact(held), func(uri string) bool { return uri == "" })
}

// isOpen is true for a restore that has not ended.
func isOpen(r *v1beta2.EtcdRestore) bool {
	return r.Status.Phase != v1beta2.RestorePhaseSucceeded && r.Status.Phase != v1beta2.RestorePhaseFailed
}

// stored is one good backup of an EtcdBackup.
type stored struct {
	uri      string
	revision int64
	at       metav1.Time
}

// storedBy returns the good backups that the status tells of, the newest first.
func storedBy(b *v1beta2.EtcdBackup) []stored {
	var all []stored
	if s := &b.Status; s.URI != "" {
		all = append(all, stored{s.URI, s.EtcdRevision, s.LastSuccessDate})
	}
	for i := range b.Status.History {
		if r := &b.Status.History[i]; r.Succeeded && r.URI != "" {
			all = append(all, stored{r.URI, r.Revision, metav1.NewTime(madeAt(r))})
		}
	}
	slices.SortStableFunc(all, func(x, y stored) int { return y.at.Compare(x.at.Time) })
	return all
}

func ofRevision(b *v1beta2.EtcdBackup, revision int64) []string {
	var uris []string
	for _, s := range storedBy(b) {
		if s.revision == revision {
			uris = append(uris, s.uri)
		}
	}
	return uris
}

// newestFor returns what a restore may read that asks for the newest backup below a place. Once the backup was verified
// that is its revision, and the newest one in case it is verified again. Before that it is each one since the restore
// was created, and the one before it.
func newestFor(b *v1beta2.EtcdBackup, r *v1beta2.EtcdRestore, place string) []string {
	all := slices.DeleteFunc(storedBy(b), func(s stored) bool { return !strings.HasPrefix(s.uri, place) })
	if len(all) == 0 {
		return nil
	}
	if r.Status.Revision > 0 {
		return append(ofRevision(b, r.Status.Revision), all[0].uri)
	}
	var uris []string
	for _, s := range all {
		uris = append(uris, s.uri)
		if s.at.Before(&r.CreationTimestamp) {
			break
		}
	}
	return uris
}

// uriOf returns the URI of a place; empty if it cannot be used.
func uriOf(storageType v1beta2.BackupStorageType, source *v1beta2.RestoreSource) string {
	store, _, err := agent.RestoreStore(storageType, source)
	if err != nil {
		return ""
	}
	return store.URI(strings.Trim(store.Key, "/"))
}
