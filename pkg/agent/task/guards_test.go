// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestDescribe: an error has the class of its cause, however it is wrapped. The end of a
// context comes before its consequences.
func TestDescribe(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithTimeoutCause(t.Context(), 0, &timeoutError{time.Second})
	defer cancel()
	told, stop := context.WithCancel(t.Context())
	stop()
	<-late.Done()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want agent.ErrorClass
	}{
		{late, objectstore.ErrDenied, agent.ClassStalled},
		{told, objectstore.ErrDenied, agent.ClassCanceled},
		{t.Context(), agent.ErrInvalid, agent.ClassRequest},
		{t.Context(), objectstore.ErrCredentials, agent.ClassCredentials},
		{t.Context(), errSecret, agent.ClassCredentials},
		{t.Context(), snapshot.ErrEncrypted, agent.ClassCredentials},
		{t.Context(), errUnsupported, agent.ClassUnsupported},
		{t.Context(), errors.Join(manifest.ErrInvalid, manifest.ErrNewer), agent.ClassUnsupported},
		{t.Context(), errInTheWay, agent.ClassExists},
		{t.Context(), errKept, agent.ClassExists},
		{t.Context(), objectstore.ErrExists, agent.ClassExists},
		{t.Context(), objectstore.ErrNoBucket, agent.ClassNoBucket},
		{t.Context(), errNoBackup, agent.ClassNotFound},
		{t.Context(), objectstore.ErrDenied, agent.ClassStoreDenied},
		{t.Context(), objectstore.ErrNoSpace, agent.ClassNoSpace},
		{t.Context(), syscall.ENOSPC, agent.ClassNoSpace},
		{t.Context(), syscall.EDQUOT, agent.ClassNoSpace},
		{t.Context(), objectstore.ErrStalled, agent.ClassStalled},
		{t.Context(), etcd.ErrStalled, agent.ClassStalled},
		{t.Context(), etcd.ErrDenied, agent.ClassEtcdDenied},
		{t.Context(), snapshot.ErrCorrupt, agent.ClassCorrupt},
		{t.Context(), manifest.ErrInvalid, agent.ClassCorrupt},
		{t.Context(), objectstore.ErrNotFound, agent.ClassNotFound},
		{t.Context(), &objectstore.Error{Op: "put", Cause: errors.New("reset")}, agent.ClassStore},
		{t.Context(), errors.New("x"), agent.ClassInternal},
	} {
		if got := describe(test.ctx, fmt.Errorf("saving: %w", test.err)); got.Class != test.want {
			t.Errorf("%v is %s, want %s", test.err, got.Class, test.want)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to string
		want     error
	}{
		{"3.5.0", "3.5.33", nil},
		{"3.5.0", "3.6.1", nil},
		{"", "3.6.1", nil},
		{"3.5.0", "", nil},
		{"3.6.0", "3.5.33", errUnsupported},
		{"3.4.0", "3.6.1", errUnsupported},
		{"3.6.0", "4.6.0", errUnsupported},
		{"4.5.0", "3.6.0", errUnsupported},
		{"x", "3.6.0", snapshot.ErrCorrupt},
		{"3.6.0", "x", agent.ErrInvalid},
	} {
		if err := checkVersion(test.from, test.to); !errors.Is(err, test.want) {
			t.Errorf("from %q to %q: %v", test.from, test.to, err)
		}
	}
	for size, want := range map[int64]error{9: nil, 10: nil, 11: errUnsupported} {
		if err := checkSize(size, 10); !errors.Is(err, want) {
			t.Errorf("%d in 10: %v", size, err)
		}
	}
	if err := checkSize(11, 0); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// TestDoneByOthers: what another transfer has stored at the same time, or what is of another
// owner, is not the work of an earlier attempt of this transfer.
func TestDoneByOthers(t *testing.T) {
	cluster := etcdtest.New(t)
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutObject} {
		b := newBench(t, cluster)
		request := b.saveRequest("id-1", layout)
		first := b.mustRun(agent.CommandSave, request)
		if layout == manifest.LayoutDirectory { // nor does what is no manifest hinder it
			at := manifest.Place{Layout: layout, Key: "backups/etcd", Owner: owner}.AttemptPrefix(request.Save.Started)
			if err := objectstore.PutBytes(t.Context(), b.store, at+"0/manifest.json", []byte("x"), objectstore.PutOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		other := b.saveRequest("id-2", layout)
		other.Save.Started = request.Save.Started
		if result := b.mustRun(agent.CommandSave, other); result.AlreadyDone || layout == manifest.LayoutDirectory && result.Key == first.Key {
			t.Errorf("%s: another transfer gets %+v", layout, result)
		}
		if layout != manifest.LayoutDirectory {
			continue
		}
		key := layout.ManifestKey(first.Key)
		raw, err := objectstore.ReadAll(t.Context(), b.store, key, manifest.MaxSize)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		m.Owner.UID = "another"
		if raw, err = m.Encode(); err == nil {
			err = objectstore.PutBytes(t.Context(), b.store, key, raw, objectstore.PutOptions{Overwrite: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		if result := b.mustRun(agent.CommandSave, request); result.AlreadyDone {
			t.Errorf("it takes what is of %+v", m.Owner)
		}
	}
}

// TestStoreThatCuts: what a store has must be as long as what was sent.
func TestStoreThatCuts(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	whole := b.store
	b.store = &cutting{Store: whole, dir: b.dir}
	b.mustFail(agent.CommandSave, request, agent.ClassCorrupt)
	b.store = whole
	if result := b.mustRun(agent.CommandSave, request); !result.Verified || result.AlreadyDone {
		t.Errorf("it says %+v", result)
	}
}

// cutting is a store that loses the end of a snapshot.
type cutting struct {
	objectstore.Store

	dir string
}

func (c *cutting) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	object, err := c.Store.Stat(ctx, key)
	if err == nil && !manifest.IsManifest(key) {
		if err := os.Truncate(filepath.Join(c.dir, key), object.Size-1); err != nil {
			return object, err
		}
		object.Size--
	}
	return object, err
}

// TestFetchedFile: what is in the way is not taken for what is fetched, and a file has its
// name only when it is whole.
func TestFetchedFile(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	name := filepath.Join(t.TempDir(), "snapshot.db")
	request := &agent.Request{ID: "f", Store: b.storePlace("backups/etcd"), Fetch: &agent.Fetch{File: name}}
	whole, reads := b.store, 0
	b.store = &breaking{Store: whole, get: func(key string) error {
		if _, err := os.Stat(name); !manifest.IsManifest(key) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is there before it was read: %v", err)
		}
		reads++
		return nil
	}}
	b.mustRun(agent.CommandFetch, request)
	b.store = whole
	if reads < 2 {
		t.Errorf("%d reads", reads)
	}
	if result := b.mustRun(agent.CommandFetch, request); !result.AlreadyDone {
		t.Error("it is fetched twice")
	}
	if err := os.WriteFile(name, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := b.mustRun(agent.CommandFetch, request); result.AlreadyDone {
		t.Error("something else counts as fetched")
	}
	mustHaveSum(t, name, saved.SHA256)
}
