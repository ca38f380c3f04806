// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

const (
	// parallelCalls is how many small objects are read or deleted at once. It is as many
	// connections as a store keeps open.
	parallelCalls = 8
	// maxNamedPlaces is how many places with backups of others the result names.
	maxNamedPlaces = 3
)

// prune deletes what the retention lets go: of the backups of the owner, and of those that
// the same EtcdBackup has made of earlier clusters of the owner's name. The newest good
// backup always stays. A backup that the store does not return or delete stays, and the error names it.
func (t *run) prune(ctx context.Context) error {
	t.Progress.Begin("Prune", 0)
	p := t.request.Prune
	place := manifest.Place{Layout: p.Layout, Key: t.request.Store.Key, Owner: p.Owner}
	expired := t.expiredBySeries
	if place.Layout == manifest.LayoutDirectory {
		expired = t.expiredByName
	}
	backups, err := expired(ctx, place)
	if err != nil {
		return err
	}
	err = t.deleteBackups(ctx, slices.DeleteFunc(backups, func(s manifest.Stored) bool { return t.request.Keeps(s.Key) }))
	return errors.Join(err, t.unread.err(manifestsUnread))
}

func (t *run) retention() manifest.Retention {
	p := t.request.Prune
	return manifest.Retention{Count: int(p.Count), MaxAge: time.Duration(p.MaxAgeSeconds) * time.Second}
}

// expiredBySeries reads every manifest: several EtcdBackups may store under the same key, and
// only the manifests tell them apart.
func (t *run) expiredBySeries(ctx context.Context, place manifest.Place) ([]manifest.Stored, error) {
	all, _, err := t.list(ctx, place.Prefix(), func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(all, func(s manifest.Stored) bool { return !place.IsInPlace(s.Key, s.Manifest) })
	now, present, err := t.clocks(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(manifest.Prunable(ours, t.retention(), now, present), func(s manifest.Stored) bool {
		return t.isLater(s, present)
	}), nil
}

// isLater is true of what this run does not delete, whatever its age and its rank: what it has made, and what was due after that.
// An attempt on a node that was lost may end long after newer backups were made. If a clock was ahead instead, a later
// run deletes what it has dated.
func (t *run) isLater(s manifest.Stored, present time.Time) bool {
	return s.Manifest.SnapshotKey(s.Key) == t.result.Key || t.made != nil && s.Manifest.StartedAt.After(present)
}

// entry is a backup as a listing shows it: its manifest and its snapshot are there.
type entry struct {
	manifest.Name
	manifest    objectstore.Object
	snapshotKey string
}

func (e entry) at(present time.Time) time.Time {
	return manifest.DueAt(e.Started, e.manifest.Modified, present)
}

// expiredByName goes by the times that the names of directories hold. They are in the order
// of the recorded times, since an EtcdBackup makes one backup after the other. What is to be
// deleted is read first: it must be what its name says, and as old.
func (t *run) expiredByName(ctx context.Context, place manifest.Place) ([]manifest.Stored, error) {
	now, present, err := t.clocks(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := t.entries(ctx, place, present)
	if err != nil {
		return nil, err
	}
	if entries, err = t.proved(ctx, place, entries); err != nil {
		return nil, err
	}
	entries, newest, err := t.fromNewestGood(ctx, entries)
	if err != nil || newest.IsZero() {
		return nil, err
	}
	dated := make([]manifest.Dated, len(entries))
	for i, e := range entries {
		dated[i] = manifest.Dated{At: e.at(present), Revision: e.Revision, Cluster: e.UID}
	}
	retention := t.retention()
	verdict := retention.Judge(dated, now)
	if verdict.Spared >= 0 {
		t.result.Spared = t.request.Store.URI(entries[verdict.Spared].snapshotKey)
	}
	surplus, err := t.readEntries(ctx, entries, verdict.Surplus)
	if err != nil {
		return nil, err
	}
	old, err := t.readEntries(ctx, entries, verdict.Old)
	if err != nil {
		return nil, err
	}
	// The name tells when a backup was due. It may have been made much later.
	old = slices.DeleteFunc(old, func(s manifest.Stored) bool { return now.Sub(s.MadeAt()) <= retention.MaxAge })
	return slices.DeleteFunc(append(surplus, old...), func(s manifest.Stored) bool {
		return !s.MadeAt().Before(newest) || t.isLater(s, present)
	}), nil
}

// entries returns the whole backups of all clusters of the owner's name, the newest first.
func (t *run) entries(ctx context.Context, place manifest.Place, present time.Time) ([]entry, error) {
	objects, err := t.below(ctx, place.NamePrefix())
	if err != nil {
		return nil, err
	}
	manifests := map[string]objectstore.Object{}
	var entries []entry
	for _, object := range objects {
		name, ok := place.NameOf(object.Key)
		switch {
		case !ok || object.Size == 0:
		case manifest.IsManifest(object.Key):
			manifests[name.Dir] = object
		case manifest.IsSnapshot(object.Key):
			entries = append(entries, entry{Name: name, snapshotKey: object.Key})
		}
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return manifests[e.Dir].Key == "" })
	for i := range entries {
		entries[i].manifest = manifests[entries[i].Dir]
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		if c := b.at(present).Compare(a.at(present)); c != 0 {
			return c
		}
		return strings.Compare(b.Dir, a.Dir)
	})
	return entries, nil
}

// proved returns the entries that are this EtcdBackup's. The UID of the cluster that is backed
// up proves it. A backup of another UID is of an earlier cluster of that name, or of a
// cluster in another Kubernetes cluster that shares the location. It belongs to this
// EtcdBackup if the newest backup of that UID whose manifest can be read says so: all backups of one UID are of one
// Kubernetes cluster. Newer ones of that UID are left out, as by fromNewestGood: one that is damaged is no last copy of that data.
func (t *run) proved(ctx context.Context, place manifest.Place, entries []entry) ([]entry, error) {
	count, unread := map[string]int{}, map[string][]entry{}
	for _, e := range entries {
		if e.UID != place.Owner.UID {
			unread[e.UID] = append(unread[e.UID], e)
			count[e.UID]++
		}
	}
	ours, unreadable, others := map[string]bool{place.Owner.UID: true}, map[string]bool{}, []string{}
	t.result.Unproved = 0
	for len(unread) > 0 {
		var newest []objectstore.Object
		for _, uid := range slices.Sorted(maps.Keys(unread)) {
			newest = append(newest, unread[uid][0].manifest)
		}
		read, err := t.readManifests(ctx, newest)
		if err != nil {
			return nil, err
		}
		for _, s := range read {
			name, _ := place.NameOf(s.Key)
			delete(unread, name.UID)
			m := s.Manifest
			switch owner := m.Owner; {
			case owner.Namespace != place.Owner.Namespace || owner.Name != place.Owner.Name || owner.UID != name.UID:
				// A cluster with a longer name.
			case t.request.Prune.BackupUID != "" && m.BackupUID == t.request.Prune.BackupUID:
				ours[name.UID] = true
			default:
				t.result.Unproved += count[name.UID]
				others = append(others, t.request.Store.URI(manifest.ClusterDir(m.SnapshotKey(s.Key)))+"/")
			}
		}
		for uid, of := range unread {
			unreadable[of[0].manifest.Key] = true
			if unread[uid] = of[1:]; len(of) == 1 {
				delete(unread, uid)
			}
		}
	}
	if more := len(others) - maxNamedPlaces; more > 0 {
		others = append(others[:maxNamedPlaces], fmt.Sprintf("%d more", more))
	}
	t.result.UnprovedAt = strings.Join(others, ", ")
	return slices.DeleteFunc(entries, func(e entry) bool { return !ours[e.UID] || unreadable[e.manifest.Key] }), nil
}

// fromNewestGood leaves out what is newer than the newest backup whose manifest can be read,
// and returns when that was finished; no time if there is none.
func (t *run) fromNewestGood(ctx context.Context, entries []entry) ([]entry, time.Time, error) {
	for i, e := range entries {
		if e.snapshotKey == t.result.Key && t.result.FinishedAt != nil {
			return entries[i:], manifest.Earlier(*t.result.FinishedAt, e.manifest.Modified), nil // it was made a moment ago
		}
		read, err := t.readManifests(ctx, []objectstore.Object{e.manifest})
		if err != nil {
			return nil, time.Time{}, err
		}
		if len(read) > 0 {
			return entries[i:], read[0].MadeAt(), nil
		}
	}
	return nil, time.Time{}, nil
}

// readEntries reads the manifests of some entries, and returns those that belong to what their
// names say.
func (t *run) readEntries(ctx context.Context, entries []entry, indexes []int) ([]manifest.Stored, error) {
	objects, uids := make([]objectstore.Object, len(indexes)), map[string]string{}
	for i, index := range indexes {
		e := entries[index]
		objects[i], uids[e.manifest.Key] = e.manifest, e.UID
	}
	read, err := t.readManifests(ctx, objects)
	if err != nil {
		return nil, err
	}
	p := t.request.Prune
	return slices.DeleteFunc(read, func(s manifest.Stored) bool {
		place := manifest.Place{Layout: p.Layout, Key: t.request.Store.Key, Owner: p.Owner}
		place.Owner.UID = uids[s.Key]
		return !place.IsInPlace(s.Key, s.Manifest)
	}), nil
}

// deleteBackups deletes several backups at once. It goes on after one that the store does not delete, such as one under a
// legal hold.
func (t *run) deleteBackups(ctx context.Context, backups []manifest.Stored) error {
	failures := make([]error, len(backups))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelCalls)
	for i, s := range backups {
		group.Go(func() error {
			failures[i] = t.deleteBackup(groupCtx, s)
			if objectstore.IsOfObject(failures[i]) {
				return nil
			}
			return failures[i]
		})
	}
	err := group.Wait()
	var left skipped
	for i, s := range backups {
		if failures[i] == nil {
			t.result.Pruned++
			klog.FromContext(ctx).Info("Pruned", "key", s.Key, "revision", s.Manifest.Revision, "finishedAt", s.Manifest.FinishedAt)
		} else {
			left.add(s.Key, failures[i])
		}
	}
	if err != nil {
		return err
	}
	return left.err("the store does not delete these backups")
}

// deleteBackup deletes the manifest first: without it the rest is no backup any more, whatever happens then. If the store
// rejects to delete the snapshot, such as one under a hold, the manifest is stored again: the backup is kept, and a restore
// finds it.
func (t *run) deleteBackup(ctx context.Context, s manifest.Stored) error {
	if err := t.store.Delete(ctx, s.Key); err != nil {
		return err
	}
	err := t.store.Delete(ctx, s.Manifest.SnapshotKey(s.Key))
	if objectstore.IsOfObject(err) {
		ctx, cancel := afterwards(ctx)
		defer cancel()
		return objectstore.WithCleanUp(err, objectstore.PutBytes(ctx, t.store, s.Key, s.Raw, objectstore.PutOptions{ContentType: manifestType}))
	}
	return err
}

// listing is what a store has below a prefix.
type listing struct {
	prefix  string
	objects []objectstore.Object
}

// below lists the objects whose keys begin with prefix. What was listed once is not listed
// again by the same run.
func (t *run) below(ctx context.Context, prefix string) ([]objectstore.Object, error) {
	if t.listed == nil || !strings.HasPrefix(prefix, t.listed.prefix) {
		fresh := &listing{prefix: prefix}
		for object, err := range t.store.List(ctx, prefix) {
			if err != nil {
				return nil, err
			}
			fresh.objects = append(fresh.objects, object)
		}
		t.listed = fresh
	}
	return slices.DeleteFunc(slices.Clone(t.listed.objects), func(o objectstore.Object) bool { return !strings.HasPrefix(o.Key, prefix) }), nil
}
