// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// plant writes a file of a store that was modified then.
func (b *bench) plant(key string, modified time.Time) string {
	b.t.Helper()
	name := filepath.Join(b.dir, key)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, modified, modified)); err != nil {
		b.t.Fatal(err)
	}
	return key
}

// files has a 1 for each file of a store that is there, also for one that no list of objects shows.
func (b *bench) files(keys []string) string {
	var text strings.Builder
	for _, key := range keys {
		if _, err := os.Stat(filepath.Join(b.dir, key)); err == nil {
			text.WriteByte('1')
		} else {
			text.WriteByte('0')
		}
	}
	return text.String()
}

// TestCleanupTouchesOnlyOwnNames: a copy that a user has put beside the backups has no manifest,
// either.
func TestCleanupTouchesOnlyOwnNames(t *testing.T) {
	b := newBench(t, nil)
	old := time.Now().Add(-48 * time.Hour)
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: owner}
	leftover := place.SnapshotKey("0123456789", old, 7, manifest.CompressionZstd, manifest.EncryptionAge)
	keys := []string{
		b.plant(leftover, old),
		b.plant(place.Prefix()+"snapshot.db", old),
		b.plant(place.Prefix()+"before-the-upgrade/snapshot.db", old),
		b.plant(filepath.Dir(leftover)+"-copy/snapshot.db", old),
		b.plant(leftover+".bak", old),
		b.plant(filepath.Dir(leftover)+"/README", old),
		b.plant(".etcd-operator-partial/ABCDEFGHIJKLMNOPQRSTUVWXYZ", old),
		b.plant(".etcd-operator-partial/notes.txt", old),
	}
	result := b.mustRun(agent.CommandAbortUploads, &agent.Request{ID: "s", Store: b.storePlace("backups/etcd"), AbortUploads: &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}})
	if got := b.files(keys); got != "01111101" || result.AbortedUploads != 2 {
		t.Errorf("left are %s, aborted %d", b.files(keys), result.AbortedUploads)
	}
}

// TestCleanupByAClockThatIsAhead keeps what a transfer that runs has sent.
func TestCleanupByAClockThatIsAhead(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: owner}
	young := b.plant(place.SnapshotKey("0123456789", time.Now(), 7, "", ""), time.Now().Add(-time.Hour))
	b.runner.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(10 * 24 * time.Hour))
	request := b.saveRequest("id-1", manifest.LayoutDirectory)
	request.AbortUploads = &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}
	if result := b.mustRun(agent.CommandSave, request); result.AbortedUploads != 0 || b.left([]string{young}) != "1" {
		t.Errorf("aborted %d", result.AbortedUploads)
	}
}

// TestFullVolumeIsCleaned: on a volume that interrupted transfers have filled, the next attempt has room. It deletes no
// backup, and by no clock what a transfer that runs has sent.
func TestFullVolumeIsCleaned(t *testing.T) {
	cluster := etcdtest.New(t)
	place := manifest.Place{Layout: manifest.LayoutDirectory, Key: "backups/etcd", Owner: owner}
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		node, due time.Duration // how far the clocks of the node and of Kubernetes are ahead
		left      string
	}{
		"right clocks":                     {left: "001"},
		"the clock of the node is ahead":   {node: 10 * day, left: "001"},
		"the clock of Kubernetes is ahead": {due: 10 * day, left: "001"},
		"the clock of the node is behind":  {node: -10 * day, left: "111"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, cluster)
			old, young := time.Now().Add(-2*day), time.Now().Add(-time.Hour)
			kept := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
			leftovers := []string{
				b.plant(".etcd-operator-partial/ABCDEFGHIJKLMNOPQRSTUVWXYZ", old),
				b.plant(place.SnapshotKey("0123456789", old, 7, "", ""), old),
				b.plant(place.SnapshotKey("0123456788", young, 7, "", ""), young),
			}
			b.runner.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(test.node))
			whole := b.store
			b.store = &breaking{Store: whole, put: func(_ context.Context, key string, _ io.Reader) error {
				if b.files(leftovers[:2]) == "00" {
					return nil
				}
				return &objectstore.Error{Op: "put", Key: key, Kind: objectstore.ErrNoSpace, Cause: syscall.ENOSPC}
			}}
			request := b.saveRequest("id-2", manifest.LayoutDirectory)
			request.Save.Started = request.Save.Started.Add(test.due)
			request.AbortUploads = &agent.AbortUploads{Layout: manifest.LayoutDirectory, Owner: owner}
			request.Prune = &agent.Prune{Layout: manifest.LayoutDirectory, Owner: owner, Count: 1}
			b.mustFail(agent.CommandSave, request, agent.ClassNoSpace)
			if left := b.files(leftovers); left != test.left {
				t.Errorf("left are %s, want %s", left, test.left)
			}
			if b.files([]string{kept.Key}) != "1" {
				t.Error("a backup is deleted")
			}
			if test.left == "001" {
				b.mustRun(agent.CommandSave, request)
			}
		})
	}
}

// TestFixedPathKeepsABackup: a store that fails for a moment costs neither the backup that is
// at the path nor the one that has just taken its place.
func TestFixedPathKeepsABackup(t *testing.T) {
	cluster := etcdtest.New(t)
	passing := &objectstore.Error{Op: "get", Key: "k", Kind: objectstore.ErrDenied, Cause: errors.New("503")}
	for name, fault := range map[string]breaking{
		"while it is proved":  {get: func(key string) error { return unlessManifest(key, passing) }},
		"before the manifest": {put: func(_ context.Context, key string, _ io.Reader) error { return onlyManifest(key, passing) }},
	} {
		b := newBench(t, cluster)
		whole := b.store
		b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutObject))
		cluster.Member("m0").Put(10)
		fault.Store = whole
		b.store = &fault
		if result := b.run(agent.CommandSave, b.saveRequest("id-2", manifest.LayoutObject)); result.Error == nil {
			t.Errorf("%s: it succeeded", name)
		}
		b.store = whole
		if found := b.run(agent.CommandVerify, &agent.Request{ID: "v", Store: b.storePlace("backups/etcd"), Verify: &agent.Verify{}}); found.Error != nil {
			t.Errorf("%s: nothing is left to restore: %v", name, found.Error)
		}
	}
}

func unlessManifest(key string, err error) error {
	if manifest.IsManifest(key) {
		return nil
	}
	return err
}

func onlyManifest(key string, err error) error {
	if manifest.IsManifest(key) {
		return err
	}
	return nil
}
