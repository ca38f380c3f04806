// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestInspect: the last revision, and the version of the storage before that of the cluster.
func TestInspect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		buckets map[string]map[string]string
		want    Facts
		err     error
	}{
		"empty":      {map[string]map[string]string{"key": {}}, Facts{Revision: 1}, nil},
		"before 3.6": {map[string]map[string]string{"key": {revision(3): "a", revision(258): "b"}, "cluster": {"clusterVersion": "3.5.0"}}, Facts{Revision: 258, Version: "3.5.0"}, nil},
		"since":      {map[string]map[string]string{"key": {revision(3): "a"}, "cluster": {"clusterVersion": "3.7.0"}, "meta": {"storageVersion": "3.6.0"}}, Facts{Revision: 3, Version: "3.6.0"}, nil},
		"undecided":  {map[string]map[string]string{"key": {}, "cluster": {"clusterVersion": "3.0.0"}, "meta": {"term": "12345678"}}, Facts{Revision: 1, HasTerm: true}, nil},
		"upgrading":  {map[string]map[string]string{"key": {}, "cluster": {"clusterVersion": "3.6.0"}, "meta": {"term": "12345678", "storageVersion": ""}}, Facts{Revision: 1, Version: "3.6.0", HasTerm: true}, nil},
		"not owned":  {map[string]map[string]string{"other": {}}, Facts{}, ErrCorrupt},
	} {
		file := filepath.Join(t.TempDir(), "db")
		db, err := bbolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			for bucket, entries := range test.buckets {
				b, err := tx.CreateBucket([]byte(bucket))
				for key, value := range entries {
					err = errors.Join(err, b.Put([]byte(key), []byte(value)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := Inspect(file); !errors.Is(err, test.err) || got != test.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(file); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no database: %v", err)
	}
}

// revision is a key of etcd's: the main revision, a line, and the one within a transaction.
func revision(main uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, main)) + "_" + string(make([]byte, 8))
}
