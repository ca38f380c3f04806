// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	partialSuffix = ".partial"
	// The snapshot holds everything that the cluster does; the group is that of the
	// pod's volumes.
	snapshotMode = 0o640
	dirMode      = 0o750
)

// fetch writes a snapshot to a file, which has its name only when it is whole.
func (t *run) fetch(ctx context.Context) error {
	t.Progress.Begin("Connect", 0)
	if t.request.Etcd != nil {
		return t.fetchLive(ctx)
	}
	file := t.request.Fetch.File
	found, err := t.toFetch(ctx)
	if err != nil {
		return err
	}
	if err := requireEncrypted(found, t.request.Fetch.IdentitiesDir); err != nil {
		return err
	}
	if found.stored != nil {
		same, err := hasSum(file, found.stored.Manifest.SHA256)
		if err != nil {
			return err
		}
		if same {
			t.result.AlreadyDone, t.result.Verified = true, true
			return nil
		}
	}
	t.Progress.Begin("Fetch", found.object.Size)
	err = writeFile(file, func(w io.Writer) error {
		return t.decode(ctx, found, t.request.Fetch.Expected, t.request.Fetch.IdentitiesDir, w)
	})
	t.result.Verified = err == nil
	return err
}

// toFetch finds the backup to fetch, or the snapshot that becomes one when it is proved.
func (t *run) toFetch(ctx context.Context) (*located, error) {
	f := t.request.Fetch
	if f.ManifestFile == "" {
		return t.locate(ctx, f.Expected)
	}
	s, err := readStored(f.ManifestFile)
	if err != nil {
		return nil, err
	}
	found, err := t.withObject(ctx, s)
	if err != nil {
		return nil, err
	}
	return found, t.checkLocated(found, f.Expected)
}

// fetchLive takes the snapshot of a survivor, the best that there is.
func (t *run) fetchLive(ctx context.Context) error {
	goal, err := target(t.request.Etcd)
	if err != nil {
		return err
	}
	client := t.Pool.Client(goal)
	sources, err := client.SnapshotSources(ctx)
	if err != nil {
		return err
	}
	var failures error
	for _, source := range sources {
		err := t.fetchFrom(ctx, client, source)
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, err)
		if !memberFailed(err) || ctx.Err() != nil {
			break
		}
	}
	return failures
}

func (t *run) fetchFrom(ctx context.Context, client *etcd.Client, source etcd.Endpoint) error {
	stream, err := client.SurvivorSnapshot(ctx, source, t.stall())
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	if err := checkSize(stream.Size(), t.request.Fetch.MaxSize); err != nil {
		return err
	}
	t.Progress.Begin("Fetch", stream.Size())
	encoder := snapshot.Encode(t.Progress.counted(stream), snapshot.Options{})
	err = writeFile(t.request.Fetch.File, func(w io.Writer) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, encoder, make([]byte, copyBuffer))
		return err
	})
	if err != nil {
		return err
	}
	sums, _ := encoder.Sums()
	r := t.result
	r.Size, r.SHA256, r.Revision, r.Member = sums.Size, sums.SHA256, stream.Revision, source.Name
	r.EtcdVersion, r.StorageVersion, r.Verified = stream.Health.Version, sums.StorageVersion, true
	return nil
}

// writeFile gives a file its name only after write has succeeded and all of it is on
// the disk.
func writeFile(name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), dirMode); err != nil {
		return err
	}
	partial := name + partialSuffix
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, snapshotMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(partial)))
		}
	}()
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// hasSum is true if a file is there and has this SHA-256.
func hasSum(name, want string) (bool, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false, fmt.Errorf("reading what was fetched before: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == want, nil
}
