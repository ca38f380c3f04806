// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

const (
	// keyTries is how many keys are tried for a snapshot: an attempt that was killed
	// may have left one without a manifest.
	keyTries = 10

	// maxAhead is how much the clocks of Kubernetes and of a store may differ.
	maxAhead = 5 * time.Minute

	manifestType = "application/json"
)

// save stores a snapshot of the best member, and its manifest after it. If a member
// fails on the way the next one is used.
func (t *run) save(ctx context.Context) error {
	save := t.request.Save
	place := manifest.Place{Layout: save.Layout, Key: t.request.Store.Key, Owner: save.Owner}
	done, err := t.findDone(ctx, place)
	if place.Layout == manifest.LayoutDirectory && errors.Is(err, objectstore.ErrDenied) {
		// Credentials that may only write and read objects. Whether they may is seen when
		// the snapshot is stored, under a key that nothing is overwritten at.
		klog.FromContext(ctx).Info("Not looking for what an earlier attempt has stored", "reason", err.Error())
		err = nil
	}
	if err != nil {
		return err
	}
	if done == nil {
		if done, err = t.saveNew(ctx, place); err != nil {
			return err
		}
	} else {
		t.result.AlreadyDone = true
	}
	if file := save.ManifestFile; file != "" {
		if err := writeStored(file, done); err != nil {
			return err
		}
	}
	t.conclude(ctx, done)
	return nil
}

// conclude says in the result what was made, and does what is to follow.
func (t *run) conclude(ctx context.Context, done *manifest.Stored) {
	t.fill(done)
	t.result.Verified = true
	t.result.VerifiedBy = cmp.Or(v1beta2.Verification(done.Manifest.VerifiedBy), v1beta2.VerificationHash)
	t.made = done
	t.tidy(ctx)
}

// tidy does what is to follow a backup; that it fails takes nothing from the backup.
func (t *run) tidy(ctx context.Context) {
	var err error
	switch {
	case t.request.Prune == nil:
	case t.made.Manifest.DataDiffers:
		err = errDataDiffers // older backups may be the only ones with the right data
	case t.made.Manifest.Unconfirmed:
		err = errUnconfirmed
	default:
		err = t.prune(ctx)
	}
	if t.request.AbortUploads != nil {
		t.Progress.Begin("AbortUploads", 0)
		err = errors.Join(err, t.abortUploads(ctx))
	}
	if err != nil {
		t.result.Warning = err.Error()
	}
}

// fill says in the result what a backup is.
func (t *run) fill(s *manifest.Stored) {
	m, r := s.Manifest, t.result
	r.Key = m.SnapshotKey(s.Key)
	r.URI = t.request.Store.URI(r.Key)
	r.Revision, r.EtcdVersion, r.StorageVersion, r.Member, r.Keys = m.Revision, m.EtcdVersion, m.StorageVersion, m.Member, m.Keys
	r.Size, r.SHA256, r.StoredSize, r.StoredSHA256 = m.Size, m.SHA256, m.StoredSize, m.StoredSHA256
	r.Encrypted, r.Unconfirmed, r.DataDiffers, r.RaftIndex = m.Encryption != "", m.Unconfirmed, m.DataDiffers, m.RaftIndex
	finished := m.FinishedAt
	r.FinishedAt = &finished
}

// saveNew stores a snapshot of one member after the other until one succeeds.
func (t *run) saveNew(ctx context.Context, place manifest.Place) (*manifest.Stored, error) {
	options := snapshot.Options{Compress: t.request.Save.Compression == v1beta2.CompressionZstd}
	var err error
	if options.Recipients, err = recipients(t.request.Save.RecipientsDir); err != nil {
		return nil, err
	}
	goal, err := target(t.request.Etcd)
	if err != nil {
		return nil, err
	}
	client := t.Pool.Client(goal)
	sources, err := client.SnapshotSources(ctx)
	if err != nil {
		return nil, err
	}
	var failures, kept error
	for _, source := range sources {
		stored, err := t.saveFrom(ctx, client, source, place, options)
		if err == nil {
			return stored, nil
		}
		if errors.Is(err, errKept) {
			kept = err // one of these says enough
		} else {
			failures = errors.Join(failures, err)
		}
		if !memberFailed(err) || ctx.Err() != nil {
			break
		}
		klog.FromContext(ctx).Info("Member failed, trying the next", "member", source.Name, "reason", err.Error())
	}
	return nil, errors.Join(failures, kept)
}

// memberFailed is true if another member may do better, such as one that is not cut off. Where a snapshot is read too slowly
// the store is to blame, and would make the next member's database grow, too.
func memberFailed(err error) bool {
	var fromEtcd *etcd.Error
	return (errors.As(err, &fromEtcd) && !errors.Is(err, etcd.ErrGrown)) || errors.Is(err, snapshot.ErrCorrupt) || errors.Is(err, errKept)
}

func (t *run) saveFrom(ctx context.Context, client *etcd.Client, source etcd.Endpoint, place manifest.Place, options snapshot.Options) (*manifest.Stored, error) {
	t.Progress.Begin("Save", 0)
	// The stream ends with this context, whatever waits for it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Snapshot(ctx, source, t.stall())
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	t.Progress.Begin("Save", stream.Size())
	klog.FromContext(ctx).Info("Saving", "member", source.Name, "revision", stream.Revision, "confirmed", stream.Confirmed, "dataDiffers", stream.DataDiffers, "size", stream.Size())
	if place.Layout == manifest.LayoutObject {
		next := t.describeSnapshot(stream, place, options, place.Key, snapshot.Sums{})
		if err := t.mayReplace(ctx, next); err != nil {
			return nil, err
		}
		options.OnChecked = func() error {
			if err := t.mayReplace(ctx, next); err != nil {
				return err // another transfer has stored a backup meanwhile
			}
			// The manifest of what is overwritten goes before it is.
			return t.store.Delete(ctx, place.Layout.ManifestKey(place.Key))
		}
	}
	put, err := t.putSnapshot(ctx, cancel, stream, place, options)
	if err != nil {
		return nil, err
	}
	key := put.key
	m := t.describeSnapshot(stream, place, options, key, put.sums)
	stored := &manifest.Stored{Key: place.Layout.ManifestKey(key), Manifest: m}
	if err := t.finishSnapshot(ctx, put, stored); err != nil {
		return nil, objectstore.WithCleanUp(err, t.takeBack(ctx, key, stored, err))
	}
	return stored, nil
}

// takeBack deletes what did not become a backup. A manifest whose response was lost may be
// there all the same, and goes first: without its snapshot it would pass for a backup.
func (t *run) takeBack(ctx context.Context, key string, s *manifest.Stored, failed error) error {
	if errors.Is(failed, objectstore.ErrExists) {
		return nil // there is a manifest, and whose it is could not be read: its snapshot stays
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := t.store.Delete(ctx, s.Key); err != nil {
		return err
	}
	if s.Manifest.Layout == manifest.LayoutObject && !errors.Is(failed, snapshot.ErrCorrupt) {
		// It has replaced the backup before, and nothing proves that it is bad. It can be
		// restored without a manifest, because etcd's own hash is at its end.
		return nil
	}
	return t.store.Delete(ctx, key)
}

// put is a snapshot that was stored.
type put struct {
	key  string
	sums snapshot.Sums
	// checksum names the store's own checksum that proves it; empty if none does.
	checksum string
}

// putSnapshot stores the stream under a key at which there is nothing of worth yet. It
// cancels the stream if that fails.
func (t *run) putSnapshot(ctx context.Context, cancel context.CancelFunc, stream *etcd.Snapshot, place manifest.Place, options snapshot.Options) (put, error) {
	key, err := t.freeKey(ctx, stream.Revision, place, options)
	if err != nil {
		return put{}, err
	}
	encoder := snapshot.Encode(t.Progress.counted(stream), options)
	written, err := t.store.Put(ctx, key, encoder, objectstore.PutOptions{
		Overwrite: place.Layout != manifest.LayoutDirectory, Prove: t.request.Save.Verify == v1beta2.VerificationChecksum,
	})
	if err == nil {
		if sums, ok := encoder.Sums(); ok {
			return put{key, sums, written.Checksum}, encoder.Close()
		}
		err = fmt.Errorf("%w: the store did not read all of it", snapshot.ErrCorrupt)
	}
	if sums, ok := encoder.Sums(); errors.Is(err, objectstore.ErrExists) && ok {
		return t.contested(ctx, key, sums, err)
	}
	cancel()
	_ = encoder.Close()
	if place.Layout == manifest.LayoutDirectory && !errors.Is(err, objectstore.ErrExists) {
		// A store that failed may have it all the same.
		cleanupCtx, done := afterwards(ctx)
		defer done()
		err = objectstore.WithCleanUp(err, t.store.Delete(cleanupCtx, key))
	}
	return put{}, err
}

// contested finds out what is under a key that was free before: a store whose response
// was lost has it from us, and rejected it when it was sent again.
func (t *run) contested(ctx context.Context, key string, sums snapshot.Sums, rejected error) (put, error) {
	object, err := t.store.Stat(ctx, key)
	if errors.Is(err, objectstore.ErrNotFound) {
		return put{}, rejected // what is in the way is no object
	}
	if err != nil {
		return put{}, err
	}
	body := objectstore.Resume(ctx, t.store, object)
	defer body.Close()
	err = snapshot.CheckStored(body, &manifest.Manifest{StoredSize: sums.StoredSize, StoredSHA256: sums.StoredSHA256})
	if errors.Is(err, snapshot.ErrCorrupt) {
		err = &objectstore.Error{Op: "put", Key: key, Cause: errors.New("another attempt has written it meanwhile")}
	}
	return put{key: key, sums: sums}, err
}

// freeKey returns the key for a snapshot. A killed attempt may have left a snapshot without
// a manifest. In a directory the snapshot stays until uploads are aborted, because that
// attempt may still run, and deletes what it did not complete. So each attempt has keys of its own. Where the name is
// fixed, the snapshot is overwritten.
func (t *run) freeKey(ctx context.Context, revision int64, place manifest.Place, options snapshot.Options) (string, error) {
	own := t.request.ID
	if n := t.request.Save.Attempt; n > 1 {
		own += "-a" + strconv.Itoa(int(n))
	}
	id := own
	for try := 2; ; try++ {
		key := place.SnapshotKey(id, t.request.Save.Started, revision, options.Compression(), options.Encryption())
		at := key
		switch place.Layout {
		case manifest.LayoutObject:
			return key, nil
		case manifest.LayoutSeries:
			at = place.Layout.ManifestKey(key)
		case manifest.LayoutDirectory:
		}
		switch _, err := t.store.Stat(ctx, at); {
		case errors.Is(err, objectstore.ErrNotFound):
			return key, nil
		case place.Layout == manifest.LayoutDirectory && errors.Is(err, objectstore.ErrDenied):
			return key, nil // the store does not tell, and overwrites nothing
		case err != nil:
			return "", err
		case place.Layout == manifest.LayoutSeries || try > keyTries:
			return "", fmt.Errorf("a backup of another transfer has the key %s: %w", key, errInTheWay)
		}
		id = own + "-" + strconv.Itoa(try)
	}
}

func (t *run) describeSnapshot(stream *etcd.Snapshot, place manifest.Place, options snapshot.Options, key string, sums snapshot.Sums) *manifest.Manifest {
	return &manifest.Manifest{
		FormatVersion: manifest.FormatVersion, ID: t.request.ID, Object: path.Base(key), Layout: place.Layout, Owner: place.Owner,
		BackupUID: t.request.Save.BackupUID,
		ClusterID: clusterIDOf(&stream.Health), MemberID: strconv.FormatUint(stream.Health.ID, 16),
		Member: stream.Endpoint.Name, EtcdVersion: stream.Health.Version, StorageVersion: sums.StorageVersion, Revision: stream.Revision,
		Size: sums.Size, SHA256: sums.SHA256, StoredSize: sums.StoredSize, StoredSHA256: sums.StoredSHA256,
		Compression: options.Compression(), Encryption: options.Encryption(),
		Unconfirmed: !stream.Confirmed, DataDiffers: stream.DataDiffers, RaftIndex: int64(min(stream.Health.Progress(), math.MaxInt64)), PreRestoreBackup: t.request.Save.PreRestoreBackup, StartedAt: t.request.Save.Started.UTC(), WrittenBy: t.Version,
	}
}

// prove makes sure that what is stored is what was sent, and says in the manifest how that
// was found. Its size and that it can be read are checked always.
func (t *run) prove(ctx context.Context, put put, m *manifest.Manifest) error {
	object, err := t.store.Stat(ctx, put.key)
	if err != nil {
		return err
	}
	if object.Size != m.StoredSize {
		return fmt.Errorf("%w: %d bytes were sent, the store has %d", snapshot.ErrCorrupt, m.StoredSize, object.Size)
	}
	if t.request.Save.Verify == v1beta2.VerificationChecksum && put.checksum != "" {
		klog.FromContext(ctx).Info("The store has proved what it holds", "key", put.key, "checksum", put.checksum)
		m.VerifiedBy = string(v1beta2.VerificationChecksum)
		return nil
	}
	t.Progress.Begin("Verify", object.Size)
	body := objectstore.Resume(ctx, t.store, object)
	defer body.Close()
	if err := snapshot.CheckStored(t.Progress.counted(body), m); err != nil {
		return err
	}
	m.VerifiedBy = string(v1beta2.VerificationHash)
	return nil
}

// finishSnapshot proves what is stored, and then makes it a backup unless another proof
// is to follow.
func (t *run) finishSnapshot(ctx context.Context, put put, s *manifest.Stored) error {
	if err := t.prove(ctx, put, s.Manifest); err != nil {
		return err
	}
	s.Manifest.FinishedAt = t.Clock.Now().UTC().Truncate(time.Millisecond)
	if t.request.Save.ManifestFile != "" {
		return nil // CommandComplete stores it, after the proof
	}
	return t.putManifest(ctx, s)
}
