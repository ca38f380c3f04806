// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// Facts are what a snapshot says of itself.
type Facts struct {
	// Revision of the key space: every write up to it is in the snapshot.
	Revision int64
	// Version of the storage, or of the cluster where the storage has none (before
	// 3.6); empty if neither is there.
	Version string
	// HasTerm is true of what etcd 3.5 or newer wrote. etcd takes a storage with a term
	// and without a version for one of 3.5.
	HasTerm bool
}

const (
	// openTimeout bounds the wait for the lock of a file that no other has.
	openTimeout = 10 * time.Second
	// readOnly is the mode of a file that is not created.
	readOnly = 0o400
	// revisionLength is how much of a key of etcd's is its main revision.
	revisionLength = 8
)

// Inspect reads a snapshot that lies in a file. The error matches ErrCorrupt if it is no
// database of etcd's.
func Inspect(name string) (facts Facts, err error) {
	db, err := bbolt.Open(name, readOnly, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return Facts{}, fmt.Errorf("%w: it cannot be opened: %w", ErrCorrupt, err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		if keys == nil {
			return fmt.Errorf("%w: it has no keys of etcd's", ErrCorrupt)
		}
		facts.Revision = 1 // where nothing was ever written
		if last, _ := keys.Cursor().Last(); len(last) >= revisionLength {
			facts.Revision = int64(binary.BigEndian.Uint64(last))
		}
		noted, err := versionsIn(tx)
		facts.Version, facts.HasTerm = noted.version(), noted.term
		return err
	})
	return facts, err
}

func versionsIn(tx *bbolt.Tx) (noted versions, err error) {
	for _, name := range []string{metaBucket, clusterBucket} {
		bucket := tx.Bucket([]byte(name))
		if bucket == nil {
			continue
		}
		if err := bucket.ForEach(func(key, value []byte) error {
			noted.add(name, string(key), value)
			return nil
		}); err != nil {
			return versions{}, fmt.Errorf("%w: its versions cannot be read: %w", ErrCorrupt, err)
		}
	}
	return noted, nil
}
