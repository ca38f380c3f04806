// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bringback

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const (
	// perMillisecond is how many revisions RevisionAt leaves room for: more writes than an etcd takes.
	perMillisecond = 10
	// replayed is more than the entries of its log that an etcd has not written to its database when it is
	// killed. Their revisions were handed out, too.
	replayed = 10_000
)

// ErrRevisionGoesBack means that the first revision would not be after those of before.
var ErrRevisionGoesBack = errors.New("the revision would go back")

// Options say what a data directory is made of.
type Options struct {
	// Snapshot is a file with the hash that etcd appends. It is compared.
	Snapshot string
	// DataDir appears when it is complete, and must not exist.
	DataDir string
	// Replaced is the data directory that DataDir will replace. It may not exist, or be damaged.
	Replaced string
	// Name is that of the member, PeerURL its own address, and Members are all of them (NAME=URL,...).
	Name, PeerURL, Members string
	// Token is part of the identity of the cluster. With one for each attempt, a member that was filled
	// and one that was not reject each other.
	Token string
	// Revision is the first one of the storage. The same for all members, whose data would differ else.
	Revision int64
}

// RevisionAt returns the first revision of a storage that is brought back now. It is after each that was
// handed out before, unless the clock went back.
func RevisionAt(now time.Time) int64 { return now.UnixMilli() * perMillisecond }

// Fill makes the data directory. What an earlier call has left half-made is removed. The error matches
// snapshot.ErrCorrupt or ErrRevisionGoesBack.
func Fill(o Options, log *zap.Logger) error {
	facts, err := inspect(o.Snapshot)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.Snapshot, err)
	}
	if err := o.requireLater(facts.Revision, "the snapshot"); err != nil {
		return err
	}
	// Data that cannot be read is a reason to bring the storage back, and says nothing.
	if before, err := snapshot.Inspect(filepath.Join(o.Replaced, "member", "snap", "db")); err == nil {
		if err := o.requireLater(before.Revision+replayed, "the storage of now"); err != nil {
			return err
		}
	}
	part := o.DataDir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("remove what an earlier attempt has left: %w", err)
	}
	if err := etcdutl.NewV3(log).Restore(etcdutl.RestoreConfig{
		SnapshotPath: o.Snapshot, OutputDataDir: part,
		Name: o.Name, PeerURLs: []string{o.PeerURL}, InitialCluster: o.Members, InitialClusterToken: o.Token,
		RevisionBump: uint64(o.Revision - facts.Revision), MarkCompacted: true,
	}); err != nil {
		return fmt.Errorf("restore %s: %w", o.Snapshot, err)
	}
	return os.Rename(part, o.DataDir)
}

// SwapIn replaces a data directory by the one that Fill has made, and keeps the replaced one beside it as
// data-before-TIME. At no moment is there no data directory: a member that started then would begin an
// empty one.
func SwapIn(restored, data string, now time.Time) error {
	before := data + "-before-" + now.UTC().Format("20060102-150405")
	if _, err := os.Stat(restored); err != nil {
		return fmt.Errorf("there is nothing to swap in: %w", err)
	}
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		return os.Rename(restored, data)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, restored, unix.AT_FDCWD, data, unix.RENAME_EXCHANGE); err == nil {
		return os.Rename(restored, before)
	} else if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("exchange %s and %s: %w", restored, data, err)
	}
	// Some network file systems cannot exchange.
	return errors.Join(os.Rename(data, before), os.Rename(restored, data))
}

// inspect compares the hash first: a database that lacks pages ends the program that opens it.
func inspect(name string) (_ snapshot.Facts, err error) {
	file, err := os.Open(name)
	if err != nil {
		return snapshot.Facts{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(io.Discard, snapshot.Encode(file, snapshot.Options{})); err != nil {
		return snapshot.Facts{}, err
	}
	return snapshot.Inspect(name)
}

func (o Options) requireLater(than int64, of string) error {
	if o.Revision > than {
		return nil
	}
	return fmt.Errorf("%w: %d is not after %d of %s, and watches would miss changes; correct the clock, or choose a later one with --revision",
		ErrRevisionGoesBack, o.Revision, than, of)
}
