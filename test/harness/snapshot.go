// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// Snapshot is what is in a file with a snapshot.
type Snapshot struct {
	Revision int64
	// Keys and their values as of Revision.
	Keys Data
}

// errNoSnapshot is what a file is that etcd did not send, or not as it is now.
var errNoSnapshot = errors.New("no whole snapshot")

const (
	// A revision in the bucket of keys ends in a mark if it deleted its key.
	revisionLength = 17
	deletedMark    = 't'
)

// ReadSnapshot checks a snapshot with etcd's own tool, and its hash, and reads the keys
// that Fill has written.
func (e *Environment) ReadSnapshot(ctx context.Context, file string) (*Snapshot, error) {
	cmd := exec.CommandContext(ctx, e.program("etcdutl"), "snapshot", "status", file, "-w", "json")
	out, _, err := run(cmd, "etcdutl")
	if err != nil {
		return nil, err
	}
	var status struct {
		Revision int64 `json:"revision"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return nil, fmt.Errorf("read what etcdutl says: %w", err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(raw) < sha256.Size {
		return nil, fmt.Errorf("%w: %d bytes", errNoSnapshot, len(raw))
	}
	content, hash := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], hash) {
		return nil, fmt.Errorf("%w: another hash", errNoSnapshot)
	}
	keys, err := keysOf(file)
	return &Snapshot{Revision: status.Revision, Keys: keys}, err
}

// keysOf reads the database, whose revisions are in the order of their keys.
func keysOf(file string) (Data, error) {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	defer db.Close()
	data := Data{}
	err = db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("key"))
		if bucket == nil {
			return fmt.Errorf("%w: no keys", errNoSnapshot)
		}
		return bucket.ForEach(func(revision, value []byte) error {
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(value, &kv); err != nil {
				return err
			}
			switch {
			case !strings.HasPrefix(string(kv.Key), dataPrefix):
			case len(revision) > revisionLength && revision[revisionLength] == deletedMark:
				delete(data, string(kv.Key))
			default:
				data[string(kv.Key)] = string(kv.Value)
			}
			return nil
		})
	})
	return data, err
}
