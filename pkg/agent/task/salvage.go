// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// etcdProgram is etcd's own program in its images.
const etcdProgram = "etcd"

// salvage makes a snapshot from the data directory of a stopped member. The log of a member may hold
// more than its database file, and only etcd can apply it. So an etcd of
// the image does that, alone, on a copy: the data directory itself is only read. The snapshot has
// the hash at its end that etcd gives to a snapshot, so every later step checks that it restores
// these bytes.
func (t *run) salvage(ctx context.Context) error {
	s := t.request.Salvage
	switch _, err := os.Stat(s.File); {
	case err == nil:
		t.result.AlreadyDone = true // it got its name when it was whole
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	program, err := findProgram(etcdProgram)
	if err != nil {
		return err
	}
	// An attempt that was killed may have left half of it.
	if err := os.RemoveAll(s.WorkDir); err != nil {
		return err
	}
	if err := t.copyMember(ctx, filepath.Join(s.DataDir, memberDir), filepath.Join(s.WorkDir, memberDir)); err != nil {
		return errors.Join(err, os.RemoveAll(s.WorkDir))
	}
	t.Progress.Begin("Replay", 0)
	index, err := snapshot.CommitLog(filepath.Join(s.WorkDir, memberDir, "wal"))
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.WorkDir))
	}
	if err := replay(ctx, program, s.WorkDir); err != nil {
		return errors.Join(fmt.Errorf("%w: etcd cannot use the data of the volume, so recover from another member or restore a backup: %w", snapshot.ErrCorrupt, err), os.RemoveAll(s.WorkDir))
	}
	facts, sums, err := snapshot.Seal(filepath.Join(s.WorkDir, memberDir, "snap", "db"), s.File)
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.WorkDir))
	}
	if err := syncDir(filepath.Dir(s.File)); err != nil {
		return err
	}
	r := t.result
	r.Size, r.SHA256, r.Revision, r.StorageVersion, r.Verified = sums.Size, sums.SHA256, facts.Revision, facts.Version, true
	klog.FromContext(ctx).Info("Salvaged", "raftIndex", index, "revision", facts.Revision, "size", sums.Size, "sha256", sums.SHA256)
	return os.RemoveAll(s.WorkDir)
}

// copyMember copies what etcd keeps of a member. It holds a shared lock on the database
// meanwhile: an etcd that runs on it has an exclusive one, and an etcd that starts waits for one.
func (t *run) copyMember(ctx context.Context, from, to string) error {
	db, err := os.Open(filepath.Join(from, "snap", "db"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the volume holds no data of a member, or its PVC was lost before the data was copied: %w", snapshot.ErrCorrupt, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // which releases the lock
	if err := syscall.Flock(int(db.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("the volume cannot be read: %w", errInUse)
	} else if err != nil {
		return fmt.Errorf("lock the database of the volume: %w", err)
	}
	info, err := db.Stat()
	if err != nil {
		return err
	}
	t.Progress.Begin("Copy", info.Size())
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		target := to + strings.TrimPrefix(name, from)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, dataMode)
		case !entry.Type().IsRegular() || strings.HasSuffix(name, ".tmp"):
			return nil // files that etcd prepares or has not finished
		default:
			return t.copyFile(name, target)
		}
	})
}

func (t *run) copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, markerMode)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{target}, t.Progress.counted(source), make([]byte, copyBuffer))
	return errors.Join(err, target.Close())
}
