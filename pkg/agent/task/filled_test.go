// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// away lets the store of a bench no longer exist, and returns how often it was opened.
func (b *bench) away() *int {
	opened := 0
	b.runner.Open = func(context.Context, *agent.Store, time.Duration) (objectstore.Store, error) {
		opened++
		return nil, errors.New("the store no longer exists")
	}
	return &opened
}

// TestInitContainersRunAgain: Kubernetes runs the init containers of a pod again with a new sandbox. What they
// filled the data directory from may no longer exist then, and the snapshot is no longer in the pod.
func TestInitContainersRunAgain(t *testing.T) {
	withTool(t, "etcdutl")
	cluster := etcdtest.New(t)
	b := newBench(t, cluster)
	cluster.Member("m0").Put(10)
	saved := b.mustRun(agent.CommandSave, b.saveRequest("id-1", manifest.LayoutDirectory))
	dataDir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "snapshot.db")
	pod := t.TempDir()
	fetch := &agent.Request{ID: "restore-1", FilledDir: dataDir, Store: b.storePlace("backups/etcd"), Fetch: &agent.Fetch{Expected: agent.Expected{Key: saved.Key}, File: file, InstallDir: pod}}
	installed := func() {
		t.Helper()
		if list, err := os.ReadDir(pod); err != nil || len(list) != 1 || os.RemoveAll(filepath.Join(pod, list[0].Name())) != nil {
			t.Errorf("the next container finds %v in place of the agent: %v", list, err)
		}
	}
	live := &agent.Request{ID: "restore-1", FilledDir: dataDir, Etcd: b.saveRequest("x", manifest.LayoutDirectory).Etcd, Fetch: &agent.Fetch{File: file}}
	salvage := salvageRequest(t, filepath.Join(t.TempDir(), "none"))
	salvage.FilledDir = dataDir
	restore := restoreRequest(file, dataDir)
	if first := b.mustRun(agent.CommandFetch, fetch); first.AlreadyDone || first.Bytes == 0 {
		t.Errorf("fetched %+v", first)
	}
	installed()
	b.mustRun(agent.CommandRestore, restore)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the snapshot stays in the pod: %v", err)
	}

	opened := b.away()
	cluster.Member("m0").Kill()
	for command, request := range map[agent.Command]*agent.Request{agent.CommandFetch: fetch, agent.CommandSalvage: salvage, agent.CommandRestore: restore} {
		if again := b.mustRun(command, request); !again.AlreadyDone {
			t.Errorf("%s again: %+v", command, again)
		}
	}
	installed() // in a new pod on the volume that is filled
	if again := b.mustRun(agent.CommandFetch, live); !again.AlreadyDone || *opened > 0 {
		t.Errorf("from a member again: %+v; the store was opened %d times", again, *opened)
	}
}

// TestOnlyItsOwnDataCounts: data of another recovery, and data that is not complete, never count as filled.
func TestOnlyItsOwnDataCounts(t *testing.T) {
	b := newBench(t, nil)
	for name, test := range map[string]struct {
		member, marker string
		want           agent.ErrorClass
	}{
		"an empty directory":                            {"", "", agent.ClassInternal},
		"the marker of a transfer that did not get far": {workDir, "restore-1", agent.ClassInternal},
		"half of the data":                              {workDir, "", agent.ClassInternal},
		"data of another recovery":                      {memberDir, "restore-2", agent.ClassExists},
		"data without a marker":                         {memberDir, "", agent.ClassExists},
	} {
		dataDir := t.TempDir()
		if test.member != "" {
			if err := os.Mkdir(filepath.Join(dataDir, test.member), dataMode); err != nil {
				t.Fatal(err)
			}
		}
		if test.marker != "" {
			if err := os.WriteFile(filepath.Join(dataDir, markerFile), []byte(test.marker), markerMode); err != nil {
				t.Fatal(err)
			}
		}
		opened := b.away()
		result := b.run(agent.CommandFetch, &agent.Request{ID: "restore-1", FilledDir: dataDir, Store: b.storePlace("k"), Fetch: &agent.Fetch{File: filepath.Join(dataDir, "s")}})
		if result.Error == nil || result.Error.Class != test.want || (*opened == 0) != (test.want == agent.ClassExists) {
			t.Errorf("%s: %+v, the store was opened %d times", name, result.Error, *opened)
		}
	}
}
