// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bringback

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	pkgsnapshot "github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

const key = "key"

func connect(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func put(t *testing.T, client *clientv3.Client, value string) int64 {
	t.Helper()
	response, err := client.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func save(t *testing.T, endpoint string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "etcd-operator.db")
	if _, err := snapshot.SaveWithVersion(t.Context(), zap.NewNop(), clientv3.Config{Endpoints: []string{endpoint}}, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// single is the storage of an API server that keeps its data below a directory.
type single struct {
	*testing.T

	dir string
}

func (s single) fill(file string, at time.Time) {
	s.Helper()
	data, restored := filepath.Join(s.dir, "etcd"), filepath.Join(s.dir, "etcd.restored")
	if err := Fill(Options{
		Snapshot: file, DataDir: restored, Replaced: data, Name: "embedded", PeerURL: "http://localhost:2380",
		Members: "embedded=http://localhost:2380", Token: "t", Revision: RevisionAt(at),
	}, zap.NewNop()); err != nil {
		s.Fatal(err)
	}
	if err := SwapIn(restored, data, at); err != nil {
		s.Fatal(err)
	}
}

// run starts the storage, writes values, and returns a snapshot that was taken before and the last revision.
func (s single) run(values ...string) (file string, last int64) {
	s.Helper()
	server, err := embeddedetcd.Start(s.Context(), s.dir)
	if err != nil {
		s.Fatal(err)
	}
	defer server.Stop()
	client := connect(s.T, server.Endpoint())
	defer func() { _ = client.Close() }()
	file = save(s.T, server.Endpoint())
	for _, value := range values {
		last = put(s.T, client, value)
	}
	return file, last
}

// TestRevisionsNeverGoBack: one snapshot is brought back again and again, also after one of a later
// lineage. A watch from each revision that was handed out before fails at once.
func TestRevisionsNeverGoBack(t *testing.T) {
	t.Parallel()
	s := single{t, t.TempDir()}
	now := time.Now()
	_, handedOut := s.run("first")
	first, _ := s.run("second", "third")
	file := first
	for i := range 4 {
		if i%2 == 1 {
			file = first
		}
		s.fill(file, now.Add(time.Duration(i)*time.Minute))
		server, err := embeddedetcd.Start(t.Context(), s.dir)
		if err != nil {
			t.Fatal(err)
		}
		client := connect(t, server.Endpoint())
		watch := <-client.Watch(t.Context(), key, clientv3.WithRev(handedOut))
		if !errors.Is(watch.Err(), rpctypes.ErrCompacted) {
			t.Errorf("attempt %d: a watch from revision %d got %v", i, handedOut, watch.Err())
		}
		if rev := put(t, client, "again"); rev <= handedOut {
			t.Errorf("attempt %d: revision %d after %d", i, rev, handedOut)
		}
		_ = client.Close()
		server.Stop()
		file, handedOut = s.run("more", "and more")
	}
}

// TestAlarmStaysBehind: a snapshot that was taken while the storage was full takes writes where it is brought back.
func TestAlarmStaysBehind(t *testing.T) {
	t.Parallel()
	c := etcdtest.NewVoters(t, 3)
	members := []*etcdtest.Member{c.Member("m0"), c.Member("m1"), c.Member("m2")}
	put(t, connect(t, members[0].ClientURL), "full")
	members[0].RaiseNoSpace()
	file := save(t, members[0].ClientURL)
	bringBack(t, members, len(members), file, "first", RevisionAt(time.Now()))
	if value, ok := read(t, members[0]); !ok || value != "full" {
		t.Fatalf("reads %q, %t", value, ok)
	}
	put(t, connect(t, members[0].ClientURL), "again")
}

// TestNotUnderARunningEtcd: an etcd would go on with the files that were moved away.
func TestNotUnderARunningEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.New(t)
	data := filepath.Dir(filepath.Dir(filepath.Dir(c.Member("m0").Database())))
	restored := filepath.Join(t.TempDir(), "restored")
	if err := os.Mkdir(restored, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SwapIn(restored, data, time.Now()); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want %v", err, ErrInUse)
	}
	put(t, connect(t, c.Member("m0").ClientURL), "on")
}

// TestFillRejects: what cannot be brought back leaves no directory behind.
func TestFillRejects(t *testing.T) {
	t.Parallel()
	s := single{t, t.TempDir()}
	file, _ := s.run("value")
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1]++
	if err := os.WriteFile(damaged, content, 0o600); err != nil {
		t.Fatal(err)
	}
	tooOld := filepath.Join(t.TempDir(), "cut.db")
	if err := os.WriteFile(tooOld, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	now := RevisionAt(time.Now())
	for name, c := range map[string]struct {
		file     string
		revision int64
		want     string
	}{
		"a revision before those of the volume":   {file, replayed, ErrRevisionGoesBack.Error()},
		"a revision before that of the snapshot":  {file, 1, ErrRevisionGoesBack.Error()},
		"a hash that does not fit":                {damaged, now, pkgsnapshot.ErrCorrupt.Error()},
		"the first half of a file":                {tooOld, now, pkgsnapshot.ErrCorrupt.Error()},
		"no file":                                 {filepath.Join(t.TempDir(), "none"), now, "none"},
		"a revision after both, with a good file": {file, now, ""},
	} {
		into := filepath.Join(t.TempDir(), "restored")
		err := Fill(Options{
			Snapshot: c.file, DataDir: into, Replaced: filepath.Join(s.dir, "etcd"), Name: "a", PeerURL: "http://localhost:1",
			Members: "a=http://localhost:1", Token: "t", Revision: c.revision,
		}, zap.NewNop())
		_, there := os.Stat(into)
		if c.want == "" {
			if err != nil || there != nil {
				t.Errorf("%s: %v, %v", name, err, there)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !os.IsNotExist(there) {
			t.Errorf("%s: %v, want %q; the directory: %v", name, err, c.want, there)
		}
	}
}

// TestCutAtEachMember: bringing back three members ends after each of them. Those that start
// afterwards serve one state, the old or the new one, and never both. Another attempt completes it.
func TestCutAtEachMember(t *testing.T) {
	t.Parallel()
	for filled := range 4 {
		t.Run(fmt.Sprint(filled), func(t *testing.T) {
			t.Parallel()
			c := etcdtest.NewVoters(t, 3)
			members := []*etcdtest.Member{c.Member("m0"), c.Member("m1"), c.Member("m2")}
			client := connect(t, members[0].ClientURL)
			put(t, client, "new")
			file := save(t, members[0].ClientURL)
			put(t, client, "old")

			now := RevisionAt(time.Now())
			bringBack(t, members, filled, file, "first", now)
			want := map[bool]string{true: "new", false: "old"}[filled >= 2]
			served := 0
			for _, m := range members {
				if value, ok := read(t, m); ok {
					served++
					if value != want {
						t.Errorf("%s serves %q, not %q", m.Name, value, want)
					}
				}
			}
			if quorum := max(filled, len(members)-filled); served != quorum {
				t.Errorf("%d members serve, not %d", served, quorum)
			}
			bringBack(t, members, len(members), file, "second", now+2*replayed)
			for _, m := range members {
				if value, ok := read(t, m); !ok || value != "new" {
					t.Errorf("%s serves %q, %t after another attempt", m.Name, value, ok)
				}
			}
		})
	}
}

// bringBack stops all members, replaces the data of the first ones, and starts all.
func bringBack(t *testing.T, members []*etcdtest.Member, first int, file, token string, revision int64) {
	t.Helper()
	var entries []string
	for _, m := range members {
		m.Kill()
		entries = append(entries, m.Name+"="+m.PeerURL)
	}
	for _, m := range members[:first] {
		data := filepath.Dir(filepath.Dir(filepath.Dir(m.Database())))
		restored := data + ".restored"
		if err := Fill(Options{
			Snapshot: file, DataDir: restored, Replaced: data, Name: m.Name, PeerURL: m.PeerURL,
			Members: strings.Join(entries, ","), Token: token, Revision: revision,
		}, zap.NewNop()); err != nil {
			t.Fatal(err)
		}
		if err := SwapIn(restored, data, time.UnixMilli(revision/perMillisecond)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range members {
		m.StartOnly()
	}
}

// read returns what a member serves, with a quorum.
func read(t *testing.T, m *etcdtest.Member) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	response, err := connect(t, m.ClientURL).Get(ctx, key)
	if err != nil || len(response.Kvs) != 1 {
		return "", false
	}
	return string(response.Kvs[0].Value), true
}
