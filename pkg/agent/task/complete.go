// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// complete makes a backup of a snapshot that a restore has proved: it stores the manifest, and
// only then deletes what the retention lets go. A snapshot that fails the proof never
// gets a manifest. So it pushes out no older backup, no restore takes it for the newest one, and it
// is deleted as what an interrupted transfer has left.
func (t *run) complete(ctx context.Context) error {
	c := t.request.Complete
	s, err := readStored(c.ManifestFile)
	if err != nil {
		return err
	}
	place := manifest.Place{Layout: c.Layout, Key: t.request.Store.Key, Owner: c.Owner}
	if s.Manifest.ID != t.request.ID || !place.IsInPlace(s.Key, s.Manifest) {
		return fmt.Errorf("%w request: complete.manifestFile: %s is of another transfer or of another owner", agent.ErrInvalid, c.ManifestFile)
	}
	object, err := t.store.Stat(ctx, s.Manifest.SnapshotKey(s.Key))
	if err != nil {
		return err
	}
	if object.Size != s.Manifest.StoredSize {
		return fmt.Errorf("%w: the store has %d bytes, its manifest says %d", snapshot.ErrCorrupt, object.Size, s.Manifest.StoredSize)
	}
	s.Manifest.VerifiedBy = string(v1beta2.VerificationRestore)
	if err := t.putManifest(ctx, s); err != nil {
		return err
	}
	t.conclude(ctx, s)
	return nil
}

// storedFile is how containers of one pod pass on what is stored and is no backup yet.
type storedFile struct {
	Key      string          `json:"key"`
	Manifest json.RawMessage `json:"manifest"`
}

func writeStored(file string, s *manifest.Stored) error {
	raw, err := s.Manifest.Encode()
	if err != nil {
		return err
	}
	return writeFile(file, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(storedFile{Key: s.Key, Manifest: raw})
	})
}

func readStored(file string) (*manifest.Stored, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w request: manifestFile: %w", agent.ErrInvalid, err)
	}
	var content storedFile
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("%w request: manifestFile: %w", agent.ErrInvalid, err)
	}
	m, err := manifest.Decode(content.Manifest)
	return &manifest.Stored{Key: content.Key, Manifest: m}, err
}

// putManifest stores a manifest, which makes a backup of the snapshot beside it.
func (t *run) putManifest(ctx context.Context, s *manifest.Stored) error {
	raw, err := s.Manifest.Encode()
	if err != nil {
		return err
	}
	overwrite := s.Manifest.Layout == manifest.LayoutObject
	err = objectstore.PutBytes(ctx, t.store, s.Key, raw, objectstore.PutOptions{Overwrite: overwrite, ContentType: manifestType})
	if errors.Is(err, objectstore.ErrExists) {
		// A store whose response was lost rejects it when it is sent again.
		if m, readErr := t.readManifest(ctx, s.Key); readErr == nil && m.ID == s.Manifest.ID && m.StoredSHA256 == s.Manifest.StoredSHA256 {
			return nil
		}
	}
	return err
}
