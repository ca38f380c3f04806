// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"io"

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
	t.Progress.Begin("Verify", found.object.Size)
	if m := found.stored; m != nil && m.Manifest.Encryption != "" && t.request.Verify.IdentitiesDir == "" {
		body := objectstore.Resume(ctx, t.store, found.object)
		defer body.Close()
		err = snapshot.CheckStored(t.Progress.counted(body), m.Manifest)
	} else {
		err = t.decode(ctx, found, t.request.Verify.Expected, t.request.Verify.IdentitiesDir, io.Discard)
	}
	t.result.Verified = err == nil
	return err
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
	if err != nil {
		return err
	}
	defer func() { _ = decoder.Close() }()
	if e.MaxSize > 0 {
		w = &limited{w: w, limit: e.MaxSize}
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

// limited fails when more is written than there is room for, which a snapshot without
// a manifest shows only then.
type limited struct {
	w     io.Writer
	n     int64
	limit int64
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if err := checkSize(l.n+int64(len(p)), l.limit); err != nil {
		return 0, err
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	return n, err
}
