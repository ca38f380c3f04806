// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"go.etcd.io/bbolt"
)

// databaseFile is a database that a test writes as etcd does.
type databaseFile struct {
	t    *testing.T
	db   *bbolt.DB
	name string
}

func newDatabaseFile(t *testing.T, pageSize int) *databaseFile {
	t.Helper()
	name := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{PageSize: pageSize, NoSync: true, NoGrowSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &databaseFile{t: t, db: db, name: name}
}

// put writes one entry in a transaction of its own.
func (f *databaseFile) put(bucket, key, value string) {
	f.t.Helper()
	err := f.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		return b.Put([]byte(key), []byte(value))
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// snapshot returns what etcd sends for the database.
func (f *databaseFile) snapshot() []byte {
	f.t.Helper()
	var data bytes.Buffer
	if err := f.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&data)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return withTrailer(data.Bytes())
}

func withTrailer(data []byte) []byte {
	sum := sha256.Sum256(data)
	return slices.Concat(data, sum[:])
}

// streamed returns the version that an encoder finds.
func streamed(t *testing.T, source io.Reader, options Options) string {
	t.Helper()
	encoder := Encode(source, options)
	defer encoder.Close()
	if _, err := io.Copy(io.Discard, encoder); err != nil {
		t.Fatal(err)
	}
	sums, ok := encoder.Sums()
	if !ok {
		t.Fatal("the stream did not end well")
	}
	return sums.StorageVersion
}

// TestStorageVersionOfStream: the version that is found while a database streams past is the
// one that bbolt finds in the file, wherever its pages are, and however often they were
// written before.
func TestStorageVersionOfStream(t *testing.T) {
	t.Parallel()
	for _, pageSize := range []int{4096, 16384, 65536} {
		for name, fill := range map[string]func(f *databaseFile){
			"nothing noted": func(f *databaseFile) { f.put("meta", "consistent_index", "12345678") },
			"undecided":     func(f *databaseFile) { f.put("cluster", "clusterVersion", "3.0.0") },
			"cluster":       func(f *databaseFile) { f.put("cluster", "clusterVersion", "3.5.0") },
			"storage": func(f *databaseFile) {
				f.put("cluster", "clusterVersion", "3.7.0")
				f.put("meta", "storageVersion", "3.6.0")
			},
			"more buckets than a page has room for": func(f *databaseFile) {
				f.put("cluster", "clusterVersion", "3.5.0")
				f.put("meta", "storageVersion", "3.6.0")
				for i := range 100 {
					f.put(fmt.Sprintf("bucket%02d", i), "key", strings.Repeat("x", 900))
				}
			},
			"buckets with pages of their own": func(f *databaseFile) {
				f.put("meta", "confState", strings.Repeat("x", pageSize/2))
				f.put("cluster", "downgrade", strings.Repeat("x", pageSize/2))
				f.put("cluster", "clusterVersion", "3.6.0")
				f.put("meta", "storageVersion", "3.7.0")
			},
			"cluster with a page of its own": func(f *databaseFile) {
				f.put("cluster", "downgrade", strings.Repeat("x", pageSize/2))
				f.put("cluster", "clusterVersion", "3.6.0")
			},
			"a user with a telling name": func(f *databaseFile) {
				f.put("authUsers", "storageVersion", strings.Repeat("9", pageSize/2))
				f.put("authUsers", "clusterVersion", "9.9.9")
				f.put("cluster", "clusterVersion", "3.5.0")
			},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, pageSize), func(t *testing.T) {
				t.Parallel()
				f := newDatabaseFile(t, pageSize)
				// What was true before lies in free pages.
				f.put("meta", "storageVersion", "3.8.0")
				f.put("cluster", "clusterVersion", "3.9.0")
				f.put("meta", "storageVersion", "")
				f.put("cluster", "clusterVersion", "")
				f.put("key", revision(1), "value")
				fill(f)
				for i := range 50 { // the pages move about
					f.put("key", revision(uint64(i+2)), strings.Repeat("value", 300*i%7))
					f.put("meta", "consistent_index", fmt.Sprintf("%08d", i))
					mustAgree(t, f)
				}
			})
		}
	}
}

// mustAgree compares what the stream and the file say.
func mustAgree(t *testing.T, f *databaseFile) {
	t.Helper()
	facts := Facts{}
	if err := f.db.View(func(tx *bbolt.Tx) error {
		noted, err := versionsIn(tx)
		facts.Version = noted.version()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	data := f.snapshot()
	for _, options := range []Options{{}, {Compress: true}} {
		if got := streamed(t, iotest.HalfReader(bytes.NewReader(data)), options); got != facts.Version {
			t.Fatalf("the stream says %q, the file %q", got, facts.Version)
		}
	}
}

// TestStorageVersionOfNoDatabase: bytes that are no database, or one that is damaged, have no
// version and do no harm.
func TestStorageVersionOfNoDatabase(t *testing.T) {
	t.Parallel()
	f := newDatabaseFile(t, 4096)
	f.put("key", revision(1), "value")
	f.put("meta", "storageVersion", "3.6.0")
	snapshot := f.snapshot()
	good := snapshot[:len(snapshot)-trailerSize]
	if got := streamed(t, bytes.NewReader(withTrailer(good)), Options{}); got != "3.6.0" {
		t.Fatalf("the version of the good one is %q", got)
	}
	for name, change := range map[string]func(data []byte) []byte{
		"nothing":          func([]byte) []byte { return nil },
		"zeroes":           func([]byte) []byte { return make([]byte, 8192) },
		"meta flipped":     func(data []byte) []byte { data[40] ^= 1; return data },
		"page size":        func(data []byte) []byte { binary.LittleEndian.PutUint32(data[24:], 1<<30); return sealed(data) },
		"root elsewhere":   func(data []byte) []byte { binary.LittleEndian.PutUint64(data[32:], 1<<40); return sealed(data) },
		"cut after a page": func(data []byte) []byte { return data[:4096] },
	} {
		if got := streamed(t, bytes.NewReader(withTrailer(change(bytes.Clone(good)))), Options{}); got != "" {
			t.Errorf("%s: version %q", name, got)
		}
	}
	for at := range good { // no byte of a page makes it panic
		data := bytes.Clone(good)
		data[at] ^= 0xff
		r := newPageReader()
		r.add(data)
		r.versions()
	}
}

// sealed makes the checksum of a first meta page right.
func sealed(data []byte) []byte {
	sum := fnv.New64a()
	sum.Write(data[pageHeader : pageHeader+metaSize-8])
	binary.LittleEndian.PutUint64(data[pageHeader+metaSize-8:], sum.Sum64())
	return data
}
