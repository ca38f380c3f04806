// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/file"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// clientPort is that of members; here it is the port of links to them.
const clientPort = 2379

// grow writes some megabytes and returns how large a snapshot is then.
func grow(t *testing.T, m *etcdtest.Member, megabytes int) int64 {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.ClientURL}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range megabytes {
		if _, err := client.Put(t.Context(), fmt.Sprintf("large-%d", i), strings.Repeat("v", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	// The size that a member tells of its database comes later than the keys.
	body, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	size, err := io.Copy(io.Discard, body)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// When a member dies while it sends, the agent reads from another member. Without another
// member the backup fails.
func TestMemberKilledWithinSnapshot(t *testing.T) {
	cluster := etcdtest.NewVoters(t, 3)
	leader := cluster.Leader()
	size := grow(t, leader, 4)
	b := newBench(t, cluster)
	links := map[string]*etcdtest.Link{}
	for _, e := range cluster.Target().Endpoints {
		links[e.Name] = etcdtest.NewLink(t, strings.TrimPrefix(e.URL, "http://"), clientPort)
	}
	request := func(id string) *agent.Request {
		r := b.saveRequest(id, manifest.LayoutDirectory)
		for i := range r.Etcd.Endpoints {
			e := &r.Etcd.Endpoints[i]
			e.URL = fmt.Sprintf("http://%s:%d", links[e.Name].IP, clientPort)
		}
		return r
	}
	for name, link := range links {
		if name != leader.Name {
			link.CutAfter(size / 2)
		}
	}
	saved := b.mustRun(agent.CommandSave, request("id-1"))
	if saved.Member != leader.Name || len(b.objects()) != 2 {
		t.Errorf("%s served, stored are %v", saved.Member, b.objects())
	}
	b.checkSaved(saved, "", false)

	for _, link := range links {
		link.CutAfter(size / 2)
	}
	b.mustFail(agent.CommandSave, request("id-2"), agent.ClassEtcd)
	if got := b.objects(); len(got) != 2 {
		t.Errorf("left behind: %v", got)
	}
}

// smallVolume mounts a volume of this size at dir for the time of the test, and returns
// what makes it larger.
func smallVolume(t *testing.T, dir string, size int64) (enlarge func(int64)) {
	t.Helper()
	mount := func(size int64, flags uintptr) {
		t.Helper()
		err := syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%d", size))
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root can mount a small volume")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mount(size, 0)
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return func(size int64) {
		t.Helper()
		mount(size, syscall.MS_REMOUNT)
	}
}

// files returns all files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A volume that is full makes no backup and keeps nothing of it, not even out of sight;
// with more room the same attempt succeeds.
func TestDiskFull(t *testing.T) {
	cluster := etcdtest.New(t)
	size := grow(t, cluster.Member("m0"), 4)
	b := newBench(t, cluster)
	enlarge := smallVolume(t, b.dir, size/2)
	store, err := file.New(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	b.store = store
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutSeries, manifest.LayoutObject} {
		b.mustFail(agent.CommandSave, b.saveRequest("id-1", layout), agent.ClassNoSpace)
		if left := files(t, b.dir); len(left) > 0 {
			t.Errorf("%s: left behind %v", layout, left)
		}
	}
	enlarge(4 * size)
	b.checkSaved(b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory)), "", false)
}

// A disk that is full where the new bootstrap member fetches its snapshot to leaves nothing
// there, and the same attempt succeeds once there is room.
func TestDiskFullOfFetch(t *testing.T) {
	cluster := etcdtest.New(t)
	size := grow(t, cluster.Member("m0"), 4)
	b := newBench(t, cluster)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	dir := t.TempDir()
	enlarge := smallVolume(t, dir, size/2)
	for what, r := range map[string]*agent.Request{
		"from a store":  {ID: "f", Store: b.storePlace("backups/etcd"), Fetch: &agent.Fetch{}},
		"from a member": {ID: "f", Etcd: b.saveRequest("x", manifest.LayoutDirectory).Etcd, Fetch: &agent.Fetch{}},
	} {
		enlarge(size / 2)
		r.Fetch.File = filepath.Join(dir, "snapshot.db")
		b.mustFail(agent.CommandFetch, r, agent.ClassNoSpace)
		if left := files(t, dir); len(left) > 0 {
			t.Errorf("%s: left behind %v", what, left)
		}
		enlarge(2 * size)
		result := b.mustRun(agent.CommandFetch, r)
		if !result.Verified || result.AlreadyDone || result.Revision != saved.Revision {
			t.Errorf("%s: %+v", what, result)
		}
		mustHaveSum(t, r.Fetch.File, result.SHA256)
		if err := os.Remove(r.Fetch.File); err != nil {
			t.Fatal(err)
		}
	}
}

// The volume of a member that a restore does not fit has no data after it, wherever the
// room ended, and the same attempt succeeds once there is more.
func TestDiskFullOfRestore(t *testing.T) {
	withTool(t, "etcdutl")
	cluster := etcdtest.New(t)
	size := grow(t, cluster.Member("m0"), 4)
	b := newBench(t, cluster)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	_, name := b.fetch(saved.Key, nil)
	volume := t.TempDir()
	enlarge := smallVolume(t, volume, size/2)
	request := restoreRequest(name, filepath.Join(volume, "data"))
	for _, room := range []int64{size / 2, size + walSize/2} { // for half of the database; for it, and not for the log
		enlarge(room)
		b.mustFail(agent.CommandRestore, request, agent.ClassNoSpace)
		if left := files(t, volume); len(left) > 0 {
			t.Errorf("with room for %d bytes: left behind %v", room, left)
		}
		scratch := &agent.Request{ID: "s", Restore: &agent.Restore{File: name, DataDir: filepath.Join(volume, "scratch"), Scratch: true}}
		b.mustFail(agent.CommandRestore, scratch, agent.ClassNoSpace)
	}
	enlarge(2*size + 2*walSize)
	if result := b.mustRun(agent.CommandRestore, request); result.AlreadyDone || result.Revision != saved.Revision {
		t.Errorf("%+v", result)
	}
}

// A program that was killed says nothing about the backup.
func TestToolKilled(t *testing.T) {
	b := newBench(t, etcdtest.New(t))
	_, name := fetched(t, b)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcdutl"), []byte("#!/bin/sh\nkill -9 $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	b.mustFail(agent.CommandRestore, restoreRequest(name, t.TempDir()), agent.ClassInternal)
}

// TestSlowStoreDoesNotFillTheMember: a store that takes nothing while clients write ends the
// snapshot before the database of the member has grown without bound, asks no other member,
// and leaves nothing.
func TestSlowStoreDoesNotFillTheMember(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.New(t)
	member := cluster.Leader()
	grow(t, member, 24) // more than is under way before a reader is waited for
	b := newBench(t, cluster)
	stuck := &breaking{Store: b.store}
	stuck.put = func(ctx context.Context, _ string, r io.Reader) error {
		if _, err := io.ReadFull(r, make([]byte, 1<<20)); err != nil {
			return err
		}
		grow(t, member, 120)
		for range time.Tick(100 * time.Millisecond) { // it goes on, at 40 KiB a second
			if _, err := r.Read(make([]byte, 4<<10)); err != nil {
				return err
			}
		}
		return nil
	}
	b.store = stuck
	b.mustFail(agent.CommandSave, b.saveRequest("slow", manifest.LayoutDirectory), agent.ClassTooSlow)
	b.store = stuck.Store
	if left := b.objects(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
