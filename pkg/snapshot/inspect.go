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
}

const (
	// openTimeout bounds the wait for the lock of a file that nobody else has.
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
		facts.Version = text(tx, "meta", "storageVersion")
		if facts.Version == "" {
			facts.Version = text(tx, "cluster", "clusterVersion")
		}
		return nil
	})
	return facts, err
}

func text(tx *bbolt.Tx, bucket, key string) string {
	b := tx.Bucket([]byte(bucket))
	if b == nil {
		return ""
	}
	return string(b.Get([]byte(key)))
}
