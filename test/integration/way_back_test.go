// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/bringback"
)

// storage is an etcd that holds objects of the operator.
type storage struct {
	*testing.T

	endpoint string
}

// storageFlags are those of package embeddedetcd, and of the member that expectFilled fills.
var storageFlags = []string{
	"--name", "embedded", "--log-level", "warn", "--initial-cluster", "embedded=http://localhost:2380",
	"--initial-advertise-peer-urls", "http://localhost:2380", "--advertise-client-urls", "http://localhost:2379",
}

func (s storage) client() *clientv3.Client {
	s.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = client.Close() })
	return client
}

// expectAfterPut writes a key, and fails if there are not as many keys then.
func (s storage) expectAfterPut(key string, want int64) {
	s.Helper()
	client := s.client()
	// An etcd that does not start on its data never responds.
	ctx, cancel := context.WithTimeout(s.Context(), storagePatience)
	defer cancel()
	if _, err := client.Put(ctx, key, "value"); err != nil {
		s.Fatal(err)
	}
	got, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != want {
		s.Fatalf("%v and %v, want %d keys", got, err, want)
	}
	_ = client.Close()
}

// TestWayBackOfTheStorage: an upgrade of the operator can be taken back. The older etcd starts on the data
// directory of the embedded etcd, whose version of etcd is newer, however the older one stopped; and the
// newer one starts on the directory again.
func TestWayBackOfTheStorage(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]os.Signal{"older etcd that was stopped": os.Interrupt, "older etcd that was killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data, keys := filepath.Join(dir, "etcd"), int64(0)
			for _, key := range []string{"a", "b"} {
				older := startOlder(t, data)
				older.expectAfterPut(key+"-older", keys+1)
				older.stop(how)
				newer := startEmbedded(t, dir)
				keys += 2
				newer.expectAfterPut(key+"-newer", keys)
				newer.stop(os.Interrupt)
			}
			older := startOlder(t, data)
			older.expectAfterPut("c", keys+1)
			older.stop(how)
		})
	}
}

// TestOlderMembersAreFilled: what this release makes of a snapshot is a data directory for the older etcd
// of the storage of two API servers.
func TestOlderMembersAreFilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	older := startOlder(t, filepath.Join(dir, "before"))
	older.expectAfterPut("a", 1)
	expectFilled(older.storage)
	older.stop(os.Interrupt)
	newer := startEmbedded(t, dir)
	newer.expectAfterPut("a", 1)
	expectFilled(newer.storage)
	newer.stop(os.Interrupt)
}

// expectFilled fills a member from a snapshot of a storage with one key, and starts it with the older etcd.
func expectFilled(from storage) {
	from.Helper()
	t, dir := from.T, from.TempDir()
	snapshot := filepath.Join(dir, "snapshot.db")
	stream, err := from.client().SnapshotWithVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadFrom(stream.Snapshot); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "filled")
	if err := bringback.Fill(bringback.Options{
		Snapshot: snapshot, DataDir: data, Replaced: filepath.Join(dir, "absent"), Name: "embedded", PeerURL: "http://localhost:2380",
		Members: "embedded=http://localhost:2380", Token: "token", Revision: bringback.RevisionAt(time.Now()),
	}, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	filled := startOlder(t, data)
	filled.expectAfterPut("b", 2)
	filled.stop(os.Interrupt)
}
