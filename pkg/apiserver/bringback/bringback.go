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

	"go.etcd.io/bbolt"
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
	// openTimeout bounds the wait for the lock of a database that was just made.
	openTimeout = 10 * time.Second
)

// ErrRevisionGoesBack means that the first revision would not be after those of before.
var ErrRevisionGoesBack = errors.New("the revision would go back")

// ErrInUse means that the data is not replaced now.
var ErrInUse = errors.New("an etcd runs on this data, and would go on with the replaced files; stop what starts it, such as a GitOps tool, and run the command again")

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
	if err := dropAlarms(filepath.Join(part, "member", "snap", "db")); err != nil {
		return fmt.Errorf("drop the alarms of the members of before: %w", err)
	}
	return os.Rename(part, o.DataDir)
}

// dropAlarms removes what a snapshot says of the space of the members of before. etcd would reject writes for ever,
// because no member of the new cluster has raised it. A member that is full raises its own alarm.
func dropAlarms(database string) (err error) {
	db, err := bbolt.Open(database, 0o600, &bbolt.Options{Timeout: openTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("alarm"))
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(key, _ []byte) error { return bucket.Delete(key) })
	})
}

// lockDatabase takes the lock that etcd holds while it runs. Data without a database has none.
func lockDatabase(name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrInUse, name, err)
	}
	return func() { _ = file.Close() }, nil
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
	return fmt.Errorf("%w: %d is not after %d of %s, and watches would miss changes; correct the clock, or choose a later one: --revision, or the variable REVISION of storage.sh",
		ErrRevisionGoesBack, o.Revision, than, of)
}
