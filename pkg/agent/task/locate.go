// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// located is a stored backup that was found.
type located struct {
	object objectstore.Object
	// stored is nil for a snapshot without a manifest, as older programs left them.
	stored *manifest.Stored
}

// locate finds the backup that is expected, and checks what can be checked without
// reading it.
func (t *run) locate(ctx context.Context, e agent.Expected) (*located, error) {
	key := e.Key
	if key == "" {
		key = t.request.Store.Key
	}
	found, err := t.find(ctx, strings.Trim(key, "/"), e)
	if err != nil {
		return nil, t.explainHidden(err)
	}
	if found.stored == nil {
		t.result.Key, t.result.URI = found.object.Key, t.request.Store.URI(found.object.Key)
		t.result.StoredSize = found.object.Size
		return found, nil
	}
	return found, t.checkLocated(found, e)
}

// checkLocated compares what the store and the manifest say with what is expected.
func (t *run) checkLocated(found *located, e agent.Expected) error {
	t.fill(found.stored)
	m := found.stored.Manifest
	if found.object.Size != m.StoredSize {
		return fmt.Errorf("%w: the store has %d bytes, its manifest says %d", snapshot.ErrCorrupt, found.object.Size, m.StoredSize)
	}
	if e.SHA256 != "" && e.SHA256 != m.SHA256 {
		return fmt.Errorf("%w: its manifest has another SHA-256 than is expected: it is another backup", snapshot.ErrCorrupt)
	}
	if err := checkSize(m.Size, e.MaxSize); err != nil {
		return err
	}
	return checkVersion(versionOf(m), e.TargetVersion)
}

// versionOf returns the version that a stored snapshot is of. The version of the member
// stands in for that of a snapshot that has none, such as one of a cluster's first moments.
func versionOf(m *manifest.Manifest) string {
	if m.StorageVersion != "" {
		return m.StorageVersion
	}
	return m.EtcdVersion
}

func checkSize(size, limit int64) error {
	if limit > 0 && size > limit {
		return fmt.Errorf("%w: the snapshot has %d bytes, there is room for %d: use a larger volume, a larger limit of ephemeral-storage in spec.pod.resources, or a larger spec.etcd.quotaBackendBytes", errUnsupported, size, limit)
	}
	return nil
}

// find looks for a manifest that the key may mean, then for a plain snapshot, and, if the
// key is that of the store, for the newest backup below it. If an ID is expected, only a
// backup below the key is looked for.
func (t *run) find(ctx context.Context, key string, e agent.Expected) (*located, error) {
	if e.ID != "" {
		return t.findNewest(ctx, key, e.ID)
	}
	var denied error // the first response that does not tell whether an object exists
	isAbsent := func(err error) bool {
		if t.mayHide(err) && denied == nil {
			denied = err
		}
		return t.mayHide(err) || errors.Is(err, objectstore.ErrNotFound)
	}
	if key != "" {
		for _, candidate := range manifest.Candidates(key) {
			m, err := t.readManifest(ctx, candidate)
			if err == nil {
				return t.withObject(ctx, &manifest.Stored{Key: candidate, Manifest: m})
			}
			if !isAbsent(err) {
				return nil, err
			}
		}
		object, err := t.store.Stat(ctx, key)
		if err == nil {
			return &located{object: object}, nil
		}
		if !isAbsent(err) {
			return nil, err
		}
	}
	if e.Key == "" {
		found, err := t.findNewest(ctx, key, "")
		if denied == nil || !errors.Is(err, errNoBackup) {
			return found, err
		}
	}
	if denied != nil {
		return nil, denied
	}
	return nil, fmt.Errorf("%w: %s", errNoBackup, t.request.Store.URI(key))
}

// listRights are the rights to list a bucket. Without its right a store responds that access is denied to requests for
// objects that do not exist.
var listRights = map[v1beta2.BackupStorageType]string{
	v1beta2.BackupStorageTypeS3: "s3:ListBucket", v1beta2.BackupStorageTypeGCS: "storage.objects.list", v1beta2.BackupStorageTypeOSS: "oss:ListObjects",
}

// mayHide is true of a response that does not tell whether the object exists.
func (t *run) mayHide(err error) bool {
	return errors.Is(err, objectstore.ErrDenied) && listRights[t.request.Store.Type] != ""
}

// explainHidden says why a response may not tell whether the object exists.
func (t *run) explainHidden(err error) error {
	if !t.mayHide(err) {
		return err
	}
	return fmt.Errorf("%w; or there is no such object, and the credentials may not list the bucket (%s)", err, listRights[t.request.Store.Type])
}

func (t *run) withObject(ctx context.Context, s *manifest.Stored) (*located, error) {
	object, err := t.store.Stat(ctx, s.Manifest.SnapshotKey(s.Key))
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil, fmt.Errorf("%w: the manifest %s exists, its snapshot does not: %w", snapshot.ErrCorrupt, s.Key, err)
	}
	if err != nil {
		return nil, err
	}
	return &located{object: object, stored: s}, nil
}

// findNewest takes the newest of all backups below a key, by manifest.Newest. They must be of one owner. Pre-restore
// backups count only where there is nothing else, as do manifests without their snapshots, which half a copy has. With an
// ID only backups of that transfer count.
func (t *run) findNewest(ctx context.Context, key, id string) (*located, error) {
	backups, keys, err := t.list(ctx, key, func(manifestKey string) bool { return manifest.IsBelow(key, manifestKey) })
	if err != nil {
		return nil, err
	}
	if id != "" {
		backups = slices.DeleteFunc(backups, func(s manifest.Stored) bool { return s.Manifest.ID != id })
	}
	backups = preferred(backups, func(s manifest.Stored) bool { return keys[s.Manifest.SnapshotKey(s.Key)] })
	backups = preferred(backups, func(s manifest.Stored) bool { return !s.Manifest.PreRestoreBackup })
	candidates := make([]manifest.Candidate, len(backups))
	for i, s := range backups {
		if s.Manifest.Owner != backups[0].Manifest.Owner {
			return nil, t.severalOwners(key, backups)
		}
		candidates[i] = s.AsCandidate()
	}
	newest := manifest.Newest(candidates)
	if newest >= 0 {
		return t.withObject(ctx, &backups[newest])
	}
	if err := t.unread.err(manifestsUnread); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s", errNoBackup, t.request.Store.URI(key))
}

// preferred returns the backups that are good, or all of them if none is.
func preferred(backups []manifest.Stored, isGood func(manifest.Stored) bool) []manifest.Stored {
	good := slices.DeleteFunc(slices.Clone(backups), func(s manifest.Stored) bool { return !isGood(s) })
	if len(good) == 0 {
		return backups
	}
	return good
}

// severalOwners tells apart what backups below a key are of. A cluster that was created again has its name and another
// UID.
func (t *run) severalOwners(key string, backups []manifest.Stored) error {
	newest, count := map[manifest.Owner]manifest.Stored{}, map[manifest.Owner]int{}
	for _, s := range backups {
		owner := s.Manifest.Owner
		if known, found := newest[owner]; !found || s.Manifest.FinishedAt.After(known.Manifest.FinishedAt) {
			newest[owner] = s
		}
		count[owner]++
	}
	owners := slices.SortedFunc(maps.Keys(newest), func(a, b manifest.Owner) int {
		return newest[b].Manifest.FinishedAt.Compare(newest[a].Manifest.FinishedAt)
	})
	var places []string
	for _, owner := range owners[:min(len(owners), maxNamedPlaces)] {
		s := newest[owner]
		snapshot := s.Manifest.SnapshotKey(s.Key)
		places = append(places, fmt.Sprintf("%d of %s with UID %s, the newest of %s, at %s", count[owner], owner.Name, cmp.Or(owner.UID, "unknown"),
			s.Manifest.FinishedAt.UTC().Format(time.RFC3339), t.pathOf(cmp.Or(manifest.ClusterDir(snapshot), snapshot))))
	}
	if more := len(owners) - len(places); more > 0 {
		places = append(places, fmt.Sprintf("and of %d more", more))
	}
	return fmt.Errorf("%s holds backups of several sources: %s: set %s of the EtcdRestore to one of these paths, or name an EtcdBackup and a revision in spec.backup: %w",
		t.request.Store.URI(key), strings.Join(places, "; "), pathFields[t.request.Store.Type], errNoBackup)
}

// pathFields are the fields of an EtcdRestore that select a place in a store.
var pathFields = map[v1beta2.BackupStorageType]string{
	v1beta2.BackupStorageTypeS3: "spec.s3.path", v1beta2.BackupStorageTypeABS: "spec.abs.path", v1beta2.BackupStorageTypeGCS: "spec.gcs.path",
	v1beta2.BackupStorageTypeOSS: "spec.oss.path", v1beta2.BackupStorageTypePersistentVolumeClaim: "spec.persistentVolumeClaim.path",
}

// pathOf returns a key as such a field has it.
func (t *run) pathOf(key string) string {
	if t.request.Store.Type == v1beta2.BackupStorageTypePersistentVolumeClaim {
		return key
	}
	return t.request.Store.Bucket + "/" + key
}

// list returns all backups whose manifests have a key with this prefix and are wanted, and the keys of all objects with
// this prefix. Backups that cannot be read are not counted: they are neither restored nor deleted.
func (t *run) list(ctx context.Context, prefix string, desired func(manifestKey string) bool) ([]manifest.Stored, map[string]bool, error) {
	var manifests []objectstore.Object
	keys := map[string]bool{}
	for object, err := range t.store.List(ctx, prefix) {
		if err != nil {
			return nil, nil, err
		}
		keys[object.Key] = true
		if manifest.IsManifest(object.Key) && desired(object.Key) {
			manifests = append(manifests, object)
		}
	}
	backups, err := t.readManifests(ctx, manifests)
	return backups, keys, err
}

// readManifests reads several at once and returns those that can be read, in the order of
// the objects. Those that the store does not return are in t.unread.
func (t *run) readManifests(ctx context.Context, objects []objectstore.Object) ([]manifest.Stored, error) {
	read, kept := make([]manifest.Stored, len(objects)), make([]error, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelCalls)
	for i, object := range objects {
		group.Go(func() error {
			s, err := t.readStored(ctx, object)
			if errors.Is(err, objectstore.ErrUnreadable) {
				kept[i] = err
			}
			if isNoManifest(err) {
				return nil
			}
			read[i] = s
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var backups []manifest.Stored
	for i, s := range read {
		t.unread.add(objects[i].Key, kept[i])
		if s.Manifest != nil {
			backups = append(backups, s)
		}
	}
	return backups, nil
}

// firstWithTerm is the first version whose snapshots have the term of the raft log. A
// snapshot with a term and without a version is of this version or of a newer version.
const firstWithTerm = "3.5.0"

// checkVersion rejects a snapshot that the target does not start with.
func checkVersion(from, targetVersion string) error {
	return checkVersions(from, targetVersion, manifest.CheckVersion)
}

// checkNotOlder rejects a snapshot that is newer than the target.
func checkNotOlder(from, targetVersion string) error {
	return checkVersions(from, targetVersion, manifest.CheckNotOlder)
}

// checkVersions compares versions that are both known, and says which of them is no version.
func checkVersions(from, targetVersion string, check func(from, target string) error) error {
	if targetVersion == "" || from == "" {
		return nil
	}
	if _, err := semver.NewVersion(targetVersion); err != nil {
		return fmt.Errorf("%w request: targetVersion %q is no version", agent.ErrInvalid, targetVersion)
	}
	if _, err := semver.NewVersion(from); err != nil {
		return fmt.Errorf("%w: it has the version %q", snapshot.ErrCorrupt, from)
	}
	if err := check(from, targetVersion); err != nil {
		return fmt.Errorf("%w: %w", errUnsupported, err)
	}
	return nil
}
