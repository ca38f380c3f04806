// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// verify reads a stored backup to its end.
func (t *run) verify(ctx context.Context) error {
	t.Progress.Begin("Connect", 0)
	found, err := t.locate(ctx, t.request.Verify.Expected)
	if err != nil {
		return err
	}
	if err := requireEncrypted(found, t.request.Verify.IdentitiesDir); err != nil {
		return err
	}
	t.Progress.Begin("Verify", found.object.Size)
	if m := found.stored; m != nil && m.Manifest.Encryption != "" && t.request.Verify.IdentitiesDir == "" {
		body := objectstore.Resume(ctx, t.store, found.object)
		defer body.Close()
		err = snapshot.CheckStored(t.Progress.counted(body), m.Manifest)
	} else if found.stored == nil {
		err = t.inspect(ctx, found)
	} else {
		err = t.decode(ctx, found, t.request.Verify.Expected, t.request.Verify.IdentitiesDir, io.Discard)
	}
	t.result.Verified = err == nil
	return err
}

// inspect verifies a snapshot without a manifest: what that would say it must say itself,
// so it is looked into in a file of its own.
func (t *run) inspect(ctx context.Context, found *located) error {
	dir, err := os.MkdirTemp("", "verify-")
	if err != nil {
		return fmt.Errorf("make room for the snapshot: %w", err)
	}
	file := filepath.Join(dir, "snapshot.db")
	err = writeFile(file, func(w io.Writer) error {
		return t.decode(ctx, found, t.request.Verify.Expected, t.request.Verify.IdentitiesDir, w)
	})
	if err == nil {
		err = t.checkFacts(file)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

func (t *run) checkFacts(file string) error {
	facts, err := snapshot.Inspect(file)
	if err != nil {
		return err
	}
	t.result.Revision, t.result.StorageVersion = facts.Revision, facts.Version
	if facts.Version == "" && facts.HasTerm {
		return checkNotOlder(firstWithTerm, t.request.Verify.TargetVersion)
	}
	return checkVersion(facts.Version, t.request.Verify.TargetVersion)
}

// decode writes the snapshot that is in a stored backup to w, and fails if anything
// about it is not as it should be.
func (t *run) decode(ctx context.Context, found *located, e agent.Expected, identitiesDir string, w io.Writer) error {
	keys, err := identities(identitiesDir)
	if err != nil {
		return err
	}
	body := objectstore.Resume(ctx, t.store, found.object)
	defer body.Close()
	var m *manifest.Manifest
	if found.stored != nil {
		m = found.stored.Manifest
	}
	decoder, err := snapshot.Decode(t.Progress.counted(body), m, keys)
	if errors.Is(err, snapshot.ErrNotEncrypted) {
		return notEncrypted(found)
	}
	if err != nil {
		return err
	}
	defer func() { _ = decoder.Close() }()
	if e.MaxSize > 0 {
		w = &limited{w: w, check: func(n int64) error { return checkSize(n, e.MaxSize) }}
	}
	if m != nil {
		// What is compressed may become more than fits anywhere before its hash is known.
		w = &limited{w: w, check: func(n int64) error {
			if n > m.Size {
				return fmt.Errorf("%w: it has more than the %d bytes that its manifest says", snapshot.ErrCorrupt, m.Size)
			}
			return nil
		}}
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{decoder}, make([]byte, copyBuffer)); err != nil {
		return err
	}
	sums, _ := decoder.Sums()
	t.result.Size, t.result.SHA256, t.result.StoredSize, t.result.StoredSHA256 = sums.Size, sums.SHA256, sums.StoredSize, sums.StoredSHA256
	if e.SHA256 != "" && e.SHA256 != sums.SHA256 {
		// Without a manifest this is known only now.
		return fmt.Errorf("%w: it has another SHA-256 than is expected: it is another snapshot", snapshot.ErrCorrupt)
	}
	return nil
}

const copyBuffer = 1 << 20

// requireEncrypted rejects a backup that is not encrypted where identities are given.
func requireEncrypted(found *located, identitiesDir string) error {
	if identitiesDir == "" || found.stored == nil || found.stored.Manifest.Encryption != "" {
		return nil // without a manifest its first bytes tell
	}
	return notEncrypted(found)
}

func notEncrypted(found *located) error {
	return fmt.Errorf("%w, but decryption is given: it may have been put there in place of the encrypted one; if %s is the backup you want, leave decryption out",
		snapshot.ErrNotEncrypted, found.object.Key)
}

// limited fails when more is written than check allows.
type limited struct {
	w     io.Writer
	n     int64
	check func(n int64) error
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if err := l.check(l.n + int64(len(p))); err != nil {
		return 0, err
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	return n, err
}
