// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

const mebibyte = 1 << 20

func TestNextCommand(t *testing.T) {
	t.Parallel()
	const gibibyte = 1 << 30
	for name, test := range map[string]struct {
		space space
		want  command
	}{
		"enough space":                    {space{free: gibibyte, quota: gibibyte}, doNothing},
		"the volume is nearly full":       {space{free: minFree - 1, quota: gibibyte}, raiseAlarm},
		"the volume is still full":        {space{free: minFree, quota: gibibyte, alarm: true}, shrinkDatabase},
		"the volume has space again":      {space{free: 2 * minFree, quota: gibibyte, alarm: true}, clearAlarm},
		"the database is at its quota":    {space{free: gibibyte, database: gibibyte, quota: gibibyte, alarm: true}, shrinkDatabase},
		"the database is below its quota": {space{free: gibibyte, database: gibibyte / 2, quota: gibibyte, alarm: true}, clearAlarm},
	} {
		if got := test.space.next(); got != test.want {
			t.Errorf("%s: command %d, want %d", name, got, test.want)
		}
	}
}

func TestQuotaFollowsVolume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		volume   volume
		database int64
		want     int64
	}{
		"2 GiB, the default":               {volume{free: 2048 * mebibyte}, 0, 768 * mebibyte},
		"what etcd has counts":             {volume{free: 1024 * mebibyte, used: 1024 * mebibyte}, 600 * mebibyte, 768 * mebibyte},
		"a small volume":                   {volume{free: 640 * mebibyte}, 0, 160 * mebibyte},
		"a large volume":                   {volume{free: 1 << 40}, 0, maxQuota},
		"a database that is larger":        {volume{free: 900 * mebibyte, used: 1148 * mebibyte}, 1000 * mebibyte, 1064 * mebibyte},
		"a database that fills the volume": {volume{used: 2048 * mebibyte}, 1500 * mebibyte, 1536 * mebibyte},
	} {
		if got := test.volume.quota(test.database); got != test.want {
			t.Errorf("%s: quota %d MiB, want %d MiB", name, got/mebibyte, test.want/mebibyte)
		}
	}
}

// smallVolume mounts a file system in memory, which the test removes.
func smallVolume(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Skipf("the test mounts a file system, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill leaves that many MiB of a volume free. It returns a function that gives the space back.
func fill(t *testing.T, dir string, leave int64) func() {
	t.Helper()
	free, err := freeBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "other")
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, int(free-leave*mebibyte)), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, client *clientv3.Client, key string) error {
	t.Helper()
	_, err := client.Put(t.Context(), key, strings.Repeat("x", mebibyte))
	return err
}

// expectFull checks whether the server reports that it is full, and whether etcd rejects a write.
func expectFull(t *testing.T, server *Server, client *clientv3.Client, when string) {
	t.Helper()
	_, err := client.Put(t.Context(), "small", "x")
	if !server.IsFull() || !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("%s: full %t, a write returned %v; want %v", when, server.IsFull(), err, rpctypes.ErrNoSpace)
	}
}

// withoutGuard ends the guard of a server, so that only guardNow takes its turns. Otherwise a slow
// machine gives it a turn between two steps of the test.
func withoutGuard(server *Server) {
	server.stopGuard()
	<-server.guarded
}

// guardNow does what the guard does at its next turn.
func guardNow(t *testing.T, server *Server) {
	t.Helper()
	if _, err := server.guardOnce(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

// TestFullVolume fills the volume with another file, while etcd runs and before it starts.
func TestFullVolume(t *testing.T) {
	dir := smallVolume(t, 640)
	server := start(t, dir)
	client := connect(t, server)
	if err := put(t, client, "before"); err != nil {
		t.Fatal(err)
	}
	empty := fill(t, dir, 100)
	guardNow(t, server)
	expectFull(t, server, client, "the volume is full")
	if response, err := client.Get(t.Context(), "before"); err != nil || len(response.Kvs) != 1 {
		t.Errorf("a read of a full volume: %v", err)
	}
	if _, err := client.Delete(t.Context(), "before"); err != nil {
		t.Errorf("a deletion on a full volume: %v", err)
	}
	client.Close()
	server.Stop()
	<-server.Stopped()

	empty()
	empty = fill(t, dir, 10)
	server = start(t, dir)
	client = connect(t, server)
	expectFull(t, server, client, "the volume was full at the start")
	empty()
	etcdtest.Eventually(t, "the server finds the space", func() error {
		if server.IsFull() {
			return rpctypes.ErrNoSpace
		}
		return nil
	})
	if err := put(t, client, "after"); err != nil {
		t.Error(err)
	}
}

// TestFullDatabase writes until the quota of a small volume. The way out is to delete.
func TestFullDatabase(t *testing.T) {
	server := start(t, smallVolume(t, 640))
	withoutGuard(server)
	client := connect(t, server)
	if server.quota > 170*mebibyte {
		t.Fatalf("the quota of a volume of 640 MiB is %d MiB", server.quota/mebibyte)
	}
	var err error
	for i := 0; i < 400 && err == nil; i++ {
		err = put(t, client, fmt.Sprintf("key-%d", i))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	guardNow(t, server)
	expectFull(t, server, client, "the database is full")
	if _, err := client.Delete(t.Context(), "key-", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	guardNow(t, server) // Shrinks the database.
	guardNow(t, server) // Clears the alarm.
	if err := put(t, client, "after"); err != nil {
		t.Errorf("a write after the deletion: %v", err)
	}
}

// TestFullDatabaseWhileASnapshotIsOpen: a snapshot that is not read delays the defragmentation, and no read.
func TestFullDatabaseWhileASnapshotIsOpen(t *testing.T) {
	server := start(t, smallVolume(t, 640))
	withoutGuard(server)
	client := connect(t, server)
	var err error
	for i := 0; i < 400 && err == nil; i++ {
		err = put(t, client, fmt.Sprintf("key-%d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), "key-", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if _, err := server.guardOnce(t.Context(), true); !errors.Is(err, errSnapshotOpen) {
		t.Fatalf("got %v, want %v", err, errSnapshotOpen)
	}
	soon, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if _, err := client.Get(soon, "key-0"); err != nil {
		t.Errorf("a read while the snapshot is open: %v", err)
	}
	cancel()
	etcdtest.Eventually(t, "the database is defragmented", func() error {
		_, err := server.guardOnce(t.Context(), true)
		return err
	})
	guardNow(t, server) // Clears the alarm.
	if err := put(t, client, "after"); err != nil {
		t.Errorf("a write afterwards: %v", err)
	}
}
