// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// Seal makes a snapshot of the database file of an etcd that has stopped. It checks every page, appends
// the hash that etcd appends to a snapshot, and gives the file its new name. Readers of the snapshot
// check that hash, and with it that these are the bytes that Seal has checked. The error matches
// ErrCorrupt if the file is no whole database of etcd's.
func Seal(database, name string) (Facts, Sums, error) {
	facts, err := Inspect(database)
	if err != nil {
		return Facts{}, Sums{}, err
	}
	if err := checkPages(database); err != nil {
		return Facts{}, Sums{}, err
	}
	sums, err := appendHash(database)
	if err != nil {
		return Facts{}, Sums{}, err
	}
	sums.StorageVersion = facts.Version
	return facts, sums, os.Rename(database, name)
}

// checkPages reads every page of a database.
func checkPages(name string) error {
	db, err := bbolt.Open(name, readOnly, &bbolt.Options{ReadOnly: true, Timeout: openTimeout, PreLoadFreelist: true})
	if err != nil {
		return fmt.Errorf("%w: it cannot be opened: %w", ErrCorrupt, err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		var first error
		for err := range tx.Check() { // until the channel is closed, or the check never ends
			if first == nil {
				first = fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
		}
		return first
	})
	return errors.Join(err, db.Close())
}

// appendHash appends the SHA-256 of a file to it.
func appendHash(name string) (sums Sums, err error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return Sums{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	database, whole := sha256.New(), sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(database, whole), struct{ io.Reader }{file}, make([]byte, bufferSize))
	if err != nil {
		return Sums{}, err
	}
	if n == 0 || n%sectorSize != 0 {
		return Sums{}, fmt.Errorf("%w: a database of %d bytes does not end with a page", ErrCorrupt, n)
	}
	trailer := database.Sum(nil)
	if _, err := file.Write(trailer); err != nil { // behind what was read
		return Sums{}, err
	}
	whole.Write(trailer)
	return Sums{Size: n + trailerSize, SHA256: hex.EncodeToString(whole.Sum(nil))}, file.Sync()
}
