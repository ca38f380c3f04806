// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inPod is a program of a pod that fails if it is the call CUT_POD.
const inPod = `#!/bin/sh
echo "$*" >>"$ROOT/pod/calls"
[ "$(wc -l <"$ROOT/pod/calls")" != "$CUT_POD" ] || exit 1
PATH=${PATH#*:} exec "${0##*/}" "$@"
`

// volume is a file that the data of an API server is in, below the volume.
func volume(directory string) string { return filepath.Join("data", directory, "member", "snap", "db") }

// stores writes what is in a data directory.
func (i *installation) stores(directory, content string) {
	i.Helper()
	i.mkdir(filepath.Dir(volume(directory)))
	i.has(volume(directory), content)
}

// wantMoved fails if a move has not taken the content, or has lost what an earlier move has left.
func (i *installation) wantMoved(content, earlier string) {
	i.Helper()
	for _, file := range []string{"copy.db", volume("etcd-moved/etcd")} {
		if got := i.content(filepath.Join(i.root, file)); got != content {
			i.Errorf("%s has %q, want %q", file, got, content)
		}
	}
	kept, err := filepath.Glob(filepath.Join(i.root, volume("etcd-moved-before-*/etcd")))
	if err != nil || len(kept) != 1 || i.content(kept[0]) != earlier {
		i.Errorf("what the earlier move has left: %v, %v", kept, err)
	}
	if _, err := os.Stat(filepath.Join(i.root, "moved")); err == nil {
		i.Error("the mark stays")
	}
}

// TestFromSingleAgain: the PVC of a single API server that was installed again has what the first move has left. The second
// move takes the objects of now.
func TestFromSingleAgain(t *testing.T) {
	i := newInstallation(t)
	for _, objects := range []string{"first", "second"} {
		i.has("apiservers", "True "+embedded)
		i.stores("etcd", objects)
		if out, err := i.storage("", none, "from-single"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	i.wantMoved("second", "first")
}

// TestFromSingleAgainIsCut: the second move ends before each of its steps, and a single API server begins empty. The same
// command moves the objects of now, neither those of the first move nor none.
func TestFromSingleAgainIsCut(t *testing.T) {
	cuts := append([]string{"in the pod 1", "in the pod 2", "in the pod 3", "in the pod 4", "take-out -c shell -- cat"}, steps...)
	for _, cut := range cuts {
		t.Run(cut, func(t *testing.T) {
			i := newInstallation(t)
			i.has("apiservers", "True "+embedded)
			i.stores("etcd", "second")
			i.stores("etcd-moved/etcd", "first")
			i.has("data/etcd-moved/of-the-first-move", "")
			i.mkdir("pod")
			for _, program := range []string{"mv", "mkdir", "touch"} {
				i.has("pod/"+program, inPod)
				if err := os.Chmod(filepath.Join(i.root, "pod", program), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			call, inside := strings.CutPrefix(cut, "in the pod ")
			if inside {
				i.env, cut = []string{"CUT_POD=" + call}, none
			}
			if out, err := i.storage("", cut, "from-single"); err == nil {
				t.Fatalf("not cut: %s", out)
			}
			if i.hasStopped() {
				i.has("apiservers", "")
			}
			if _, err := os.Stat(filepath.Join(i.root, "data", "etcd")); err != nil {
				i.stores("etcd", "empty")
			}
			i.env = nil
			if out, err := i.storage("", none, "from-single"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			i.wantMoved("second", "first")
		})
	}
}

// TestFromSingleInstallsSingle: values of a single API server would start one that begins empty. The move does not end, and
// the same command with other values completes it.
func TestFromSingleInstallsSingle(t *testing.T) {
	i := newInstallation(t)
	i.has("apiservers", "True "+embedded)
	i.stores("etcd", "objects")
	i.has("deployment", embedded)
	i.env = []string{"APPLY=true"}
	out, err := i.storage("", none, "from-single")
	if err == nil || !strings.Contains(out, "APPLY has installed a single API server") {
		t.Fatalf("%v: %s", err, out)
	}
	if reached := i.content(filepath.Join(i.root, "moved")); !strings.HasPrefix(reached, "filled-") {
		t.Errorf("the mark is %q", reached)
	}
}
