// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

// ofMembers ends the names of the programs of the minor version that package etcdtest embeds. An older etcd
// does not start on the data of its members.
const ofMembers = "-3.7"

// withPrograms makes real programs of one version of etcd the only ones in PATH.
func withPrograms(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "etcdutl"} {
		if err := os.Symlink(storetest.Program(t, name+ofMembers), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// survivor returns a voter of three whose other two no longer exist and that was killed, and how many
// writes were acknowledged.
func survivor(t *testing.T, c *etcdtest.Cluster) (*etcdtest.Member, int) {
	t.Helper()
	const writes = 50
	c.Leader().Put(writes)
	members := []*etcdtest.Member{c.Member("m0"), c.Member("m1"), c.Member("m2")}
	left := members[1]
	etcdtest.Eventually(t, "the survivor has applied what the leader has", func() error {
		at := map[string]uint64{}
		for name, status := range c.Client().Statuses(t.Context()) {
			at[name] = status.Health.RaftApplied
		}
		if at["m1"] < at["m0"] || at["m1"] < at["m2"] {
			return fmt.Errorf("applied: %v", at)
		}
		return nil
	})
	for _, m := range members {
		m.Kill()
	}
	return left, writes
}

// startAgain runs a member as a process of its own, which the returned function kills. It waits until it
// takes connections, long after it has read its data.
func startAgain(t *testing.T, m *etcdtest.Member) func() {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), storetest.Program(t, "etcd"+ofMembers), "--data-dir="+dataDirOf(m), "--name="+m.Name, "--listen-client-urls="+m.ClientURL,
		"--advertise-client-urls="+m.ClientURL, "--listen-peer-urls="+m.PeerURL, "--initial-advertise-peer-urls="+m.PeerURL, "--initial-cluster="+m.Name+"="+m.PeerURL)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	t.Cleanup(kill)
	etcdtest.Eventually(t, "it takes connections", func() error {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(m.ClientURL, "http://"))
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	return kill
}

func salvageRequest(t *testing.T, dataDir string) *agent.Request {
	t.Helper()
	dir := t.TempDir()
	return &agent.Request{ID: "restore-1", Salvage: &agent.Salvage{DataDir: dataDir, WorkDir: filepath.Join(dir, "copy"), File: filepath.Join(dir, "snapshot.db")}}
}

func dataDirOf(m *etcdtest.Member) string {
	return filepath.Dir(filepath.Dir(filepath.Dir(m.Database())))
}

// TestSalvage: a member that was restarted without a quorum does not respond. What it had
// committed is restored from its data directory once it has stopped, and not before.
func TestSalvage(t *testing.T) {
	withPrograms(t)
	c := etcdtest.NewVoters(t, 3)
	b := newBench(t, c)
	left, writes := survivor(t, c)
	kill := startAgain(t, left)
	request := salvageRequest(t, dataDirOf(left))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if status := c.ClientOf(left).Statuses(ctx)[left.Name]; status.Err == nil {
		t.Errorf("a member without a quorum responds: %+v", status)
	}
	b.mustFail(agent.CommandSalvage, request, agent.ClassExists)
	kill()
	before := treeOf(t, dataDirOf(left))

	result := b.mustRun(agent.CommandSalvage, request)
	if !result.Verified || result.Revision <= int64(writes) || result.SHA256 == "" {
		t.Errorf("%+v", result)
	}
	if after := treeOf(t, dataDirOf(left)); after != before {
		t.Errorf("the data directory was changed:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := os.Stat(request.Salvage.WorkDir); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
	if again := b.mustRun(agent.CommandSalvage, request); !again.AlreadyDone {
		t.Errorf("another attempt: %+v", again)
	}
	restore := restoreRequest(request.Salvage.File, filepath.Join(t.TempDir(), "data"))
	restore.Restore.RevisionBump = 1_000_000
	if restored := b.mustRun(agent.CommandRestore, restore); restored.Keys != int64(writes) || restored.Revision != result.Revision+1_000_000 || restored.SHA256 != result.SHA256 {
		t.Errorf("restored %+v, salvaged %+v", restored, result)
	}
}

// TestSalvageAppliesTheLog: what was committed after the last write to the database file is in the
// log only, as after a power failure.
func TestSalvageAppliesTheLog(t *testing.T) {
	withPrograms(t)
	c := etcdtest.NewVoters(t, 3)
	b := newBench(t, c)
	m := c.Member("m1")
	early, err := os.ReadFile(m.Database())
	if err != nil {
		t.Fatal(err)
	}
	left, writes := survivor(t, c)
	if err := os.WriteFile(left.Database(), early, 0o600); err != nil {
		t.Fatal(err)
	}
	request := salvageRequest(t, dataDirOf(left))
	b.mustRun(agent.CommandSalvage, request)
	if restored := b.mustRun(agent.CommandRestore, restoreRequest(request.Salvage.File, filepath.Join(t.TempDir(), "data"))); restored.Keys != int64(writes) {
		t.Errorf("restored %d keys of %d", restored.Keys, writes)
	}
}

// TestSalvageOfDamagedData: damage is reported, and leaves no snapshot.
func TestSalvageOfDamagedData(t *testing.T) {
	withPrograms(t)
	c := etcdtest.NewVoters(t, 3)
	b := newBench(t, c)
	left, _ := survivor(t, c)
	logs, err := filepath.Glob(filepath.Join(dataDirOf(left), "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	file, err := os.OpenFile(logs[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("damage"), 2000); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	request := salvageRequest(t, dataDirOf(left))
	b.mustFail(agent.CommandSalvage, request, agent.ClassCorrupt)
	b.mustFail(agent.CommandSalvage, salvageRequest(t, t.TempDir()), agent.ClassCorrupt)
	for _, name := range []string{request.Salvage.File, request.Salvage.WorkDir} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// treeOf describes the files of a directory.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	if err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&text, strings.TrimPrefix(name, dir), info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestSalvageOfEachVersion: versions of etcd replay, respond when they have, and stop in good order. etcd
// 3.4 is a package of Debian that only the local Kubernetes has; the versions before and after it are here.
func TestSalvageOfEachVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs two etcds of each version")
	}
	for _, version := range []string{"-3.3", "-3.5", "", "-3.7"} {
		t.Run("etcd"+version, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(storetest.Program(t, "etcd"+version), filepath.Join(dir, "etcd")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			urls, err := loopbackURLs()
			if err != nil {
				t.Fatal(err)
			}
			dataDir := filepath.Join(t.TempDir(), "data")
			cmd := exec.CommandContext(t.Context(), storetest.Program(t, "etcd"+version), "--data-dir="+dataDir, "--name=m", "--listen-client-urls="+urls[0], "--advertise-client-urls="+urls[0],
				"--listen-peer-urls="+urls[1], "--initial-advertise-peer-urls="+urls[1], "--initial-cluster=m="+urls[1])
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kill := sync.OnceFunc(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
			t.Cleanup(kill)
			client, err := clientv3.New(clientv3.Config{Endpoints: urls[:1], DialTimeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const writes = 20
			for i := range writes {
				if _, err := client.Put(ctx, fmt.Sprint("key-", i), "value"); err != nil {
					t.Fatal(err)
				}
			}
			kill() // right after the last write, which its database may lack
			b := &bench{t: t, runner: &Runner{Clock: clock.RealClock{}, Progress: &Progress{}}}
			if result := b.mustRun(agent.CommandSalvage, salvageRequest(t, dataDir)); result.Revision != writes+1 {
				t.Errorf("revision %d after %d writes", result.Revision, writes)
			}
		})
	}
}
