// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

// A member that dies while it sends is no loss while another one is there, and is a
// failure, and nothing else, if there is none.
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

// A volume that is full makes no backup and keeps nothing of it, not even out of sight;
// with more room the same attempt succeeds.
func TestDiskFull(t *testing.T) {
	cluster := etcdtest.New(t)
	size := grow(t, cluster.Member("m0"), 4)
	b := newBench(t, cluster)
	volume := func(bytes int64, flags uintptr) {
		t.Helper()
		err := syscall.Mount("tmpfs", b.dir, "tmpfs", flags, fmt.Sprintf("size=%d", bytes))
		if errors.Is(err, syscall.EPERM) {
			t.Skip("only root can mount a small volume")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	volume(size/2, 0)
	t.Cleanup(func() {
		if err := syscall.Unmount(b.dir, 0); err != nil {
			t.Error(err)
		}
	})
	store, err := file.New(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	b.store = store
	for _, layout := range []manifest.Layout{manifest.LayoutDirectory, manifest.LayoutSeries, manifest.LayoutObject} {
		b.mustFail(agent.CommandSave, b.saveRequest("id-1", layout), agent.ClassNoSpace)
		err := filepath.WalkDir(b.dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				t.Errorf("%s: %s is left", layout, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	volume(4*size, syscall.MS_REMOUNT)
	b.checkSaved(b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory)), "", false)
}
