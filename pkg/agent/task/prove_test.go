// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// proving is a store that returns checksums where asked is false or it was requested to, and
// counts how often a snapshot is read.
type proving struct {
	objectstore.Store

	checksum string
	failed   error
	asked    bool
	read     int
}

func (s *proving) Put(ctx context.Context, key string, r io.Reader, o objectstore.PutOptions) (objectstore.Written, error) {
	if manifest.IsManifest(key) {
		return s.Store.Put(ctx, key, r, o)
	}
	s.asked = o.Prove
	written, err := s.Store.Put(ctx, key, r, o)
	if s.failed != nil {
		return written, objectstore.Withdraw(ctx, s.Store, key, s.failed)
	}
	written.Checksum = s.checksum
	return written, err
}

func (s *proving) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if !manifest.IsManifest(key) {
		s.read++
	}
	return s.Store.Get(ctx, key, offset, length)
}

// TestHowABackupIsProved: the checksum of a store is enough only where it is requested and
// there is one, and the result and the manifest say what was done, also to a later attempt.
func TestHowABackupIsProved(t *testing.T) {
	cluster := etcdtest.New(t)
	for name, test := range map[string]struct {
		verify   v1beta2.Verification
		checksum string
		want     v1beta2.Verification
	}{
		"nothing said is read":                      {"", objectstore.ChecksumCRC32C, v1beta2.VerificationHash},
		"Hash is read":                              {v1beta2.VerificationHash, objectstore.ChecksumCRC32C, v1beta2.VerificationHash},
		"Checksum is compared":                      {v1beta2.VerificationChecksum, objectstore.ChecksumCRC32C, v1beta2.VerificationChecksum},
		"Checksum is read where there is none":      {v1beta2.VerificationChecksum, "", v1beta2.VerificationHash},
		"Hash is read where there is no checksum":   {v1beta2.VerificationHash, "", v1beta2.VerificationHash},
		"Checksum of any kind is that of the store": {v1beta2.VerificationChecksum, objectstore.ChecksumMD5, v1beta2.VerificationChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, cluster)
			store := &proving{Store: b.store, checksum: test.checksum}
			b.store = store
			request := b.saveRequest("id-1", manifest.LayoutDirectory)
			request.Save.Verify = test.verify
			saved := b.mustRun(agent.CommandSave, request)
			if !saved.Verified || saved.VerifiedBy != test.want || (store.read > 0) != (test.want == v1beta2.VerificationHash) {
				t.Errorf("verified by %q, read %d times; want %s", saved.VerifiedBy, store.read, test.want)
			}
			if store.asked != (test.verify == v1beta2.VerificationChecksum) {
				t.Errorf("asked for a proof: %t", store.asked)
			}
			if again := b.mustRun(agent.CommandSave, request); !again.AlreadyDone || again.VerifiedBy != test.want {
				t.Errorf("a later attempt says %q", again.VerifiedBy)
			}
		})
	}
}

// TestDamagedInTheStore: a store that has other bytes fails the attempt, whatever the layout;
// nothing is left, and no other member is read.
func TestDamagedInTheStore(t *testing.T) {
	cluster := etcdtest.New(t)
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutSeries, manifest.LayoutObject} {
		b := newBench(t, cluster)
		store := &proving{Store: b.store, failed: objectstore.Damaged("k", objectstore.ChecksumCRC32C, "a", "b")}
		b.store = store
		b.mustFail(agent.CommandSave, b.saveRequest("id-1", layout), agent.ClassCorrupt)
		if left := b.objects(); len(left) > 0 {
			t.Errorf("%s: left behind: %v", layout, left)
		}
		store.failed = nil
		if saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", layout)); saved.AlreadyDone {
			t.Errorf("%s: the damaged one counted as done", layout)
		}
	}
	if err := objectstore.Damaged("k", "c", "a", "b"); memberFailed(err) || !errors.Is(err, objectstore.ErrDamaged) {
		t.Errorf("%v queries another member", err)
	}
}
