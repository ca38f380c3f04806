// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToSingle: the members are deleted only if a single API server has what was written to them. An attempt that was cut
// after it has filled the PVC is completed, unless the members have served again since.
func TestToSingle(t *testing.T) {
	const (
		managed        = `["--etcd-servers=https://etcd-operator-storage-0.etcd-operator-storage.etcd-operator-system.svc:2379"]`
		installsSingle = `cp "$ROOT/single" "$ROOT/deployment"`
		serves         = `; echo 6 >"$ROOT/revision"`
	)
	for name, test := range map[string]struct {
		deployment, filled, apply, moved, cut, revision string
		noMembers                                       bool
		says, mark                                      string
	}{
		"members":                              {deployment: managed, apply: installsSingle, says: "done;"},
		"members that were filled by a move":   {deployment: managed, apply: installsSingle, moved: "filled-1", says: "done;"},
		"an attempt that ended after the fill": {deployment: embedded, filled: "filled-5", says: "done;"},
		"the StatefulSet is deleted":           {deployment: embedded, filled: "filled-5", noMembers: true, says: "done;"},
		"members again, and a new attempt":     {deployment: managed, filled: "filled-4", apply: installsSingle, says: "done;"},
		"APPLY fails":                          {deployment: managed, apply: "false", says: "type the same command again", mark: "filled-5"},
		"members have served since":            {deployment: embedded, filled: "filled-4", says: "were written after an earlier to-single has taken their objects", mark: "filled-4"},
		"members serve while it runs":          {deployment: managed, apply: installsSingle + serves, says: "were written after an earlier to-single has taken their objects", mark: "filled-5"},
		"members without a quorum":             {deployment: embedded, filled: "filled-5", cut: "etcdctl", says: "no member of the storage reads through a quorum, so it is unknown", mark: "filled-5"},
		"a response without a revision":        {deployment: embedded, filled: "filled-", revision: "none", says: "no member of the storage reads through a quorum, so it is unknown", mark: "filled-"},
		"single beside members, never moved":   {deployment: embedded, says: "was installed before its objects were moved"},
		"members of a move that has begun":     {deployment: managed, apply: installsSingle, moved: "begun-1", says: "did not record that it has filled the members, and nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			for file, content := range map[string]string{"single": embedded, "deployment": test.deployment, "filled": test.filled, "moved": test.moved, "revision": test.revision} {
				if content != "" {
					i.has(file, content)
				}
			}
			if test.noMembers {
				i.has("without-members", "")
			}
			if test.cut == "" {
				test.cut = none
			}
			i.env = []string{"APPLY=" + test.apply}
			out, err := i.storage("012", test.cut, "to-single")
			done := test.says == "done;"
			if done != (err == nil) || !strings.Contains(out, test.says) {
				t.Errorf("%v: %q is not said: %s", err, test.says, out)
			}
			if deleted := strings.Contains(i.content(i.calls), "delete statefulset,"); deleted != done {
				t.Errorf("the members are deleted: %t, want %t", deleted, done)
			}
			if mark, _ := os.ReadFile(filepath.Join(i.root, "filled")); strings.TrimSpace(string(mark)) != test.mark {
				t.Errorf("the mark is %q, want %q", mark, test.mark)
			}
			if moved, _ := os.ReadFile(filepath.Join(i.root, "moved")); (len(moved) > 0) != strings.HasPrefix(test.moved, "begun") {
				t.Errorf("the mark of from-single is %q", moved)
			}
		})
	}
}

// TestToSingleAfterMembersServedAgain: an attempt fills the PVC and fails, artifacts/ha serves again without a command of the
// script, and a single API server is installed by mistake. Its objects are older than those of the members, which stay.
func TestToSingleAfterMembersServedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		revision string
		deletes  bool
	}{"nothing was written": {"5", true}, "objects were written": {"6", false}} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			if out, err := i.storage("012", "apply -k", "to-single"); err == nil || !i.hasStopped() {
				t.Fatalf("not cut: %s", out)
			}
			i.has("revision", test.revision)
			i.has("deployment", embedded)
			out, err := i.storage("012", none, "to-single")
			if deleted := strings.Contains(i.content(i.calls), "delete statefulset,"); deleted != test.deletes || deleted != (err == nil) {
				t.Errorf("the members are deleted: %t, want %t: %v: %s", deleted, test.deletes, err, out)
			}
		})
	}
}
