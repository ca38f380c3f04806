// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// has writes what kubectl says of the installation.
func (i *installation) has(file, content string) {
	i.Helper()
	if err := os.WriteFile(filepath.Join(i.root, file), []byte(content), 0o600); err != nil {
		i.Fatal(err)
	}
}

// steps are the calls in which from-single stops the programs, moves the objects, and starts the programs.
var steps = []string{"from-single=begun", "deployment/etcd-operator-apiserver --replicas=0", "statefulset/etcd-operator-storage --replicas=0",
	"fill-2 --timeout=60s", "from-single=filled", "apply -k", "rollout status deployment etcd-operator-apiserver", "from-single-"}

const (
	embedded = `["--secure-port=8443","--embedded-etcd-dir=/var/lib/etcd-operator"]` + "\n"
	external = `["--secure-port=8443","--etcd-servers=$(ETCD_SERVERS)"]` + "\n"
)

// TestFromSingle: an installation that was applied over a single API server has a StatefulSet with empty members. The
// objects are moved. They are not moved again over the newer ones of API servers that use the members.
func TestFromSingle(t *testing.T) {
	for name, test := range map[string]struct {
		apiServers, moved string
		noMembers         bool
		moves             bool
		says              string
	}{
		"a single API server":                         {apiServers: "True " + embedded, noMembers: true, moves: true, says: "done;"},
		"applied over a single API server":            {apiServers: "True " + embedded + "False " + external, moves: true, says: "done;"},
		"an attempt that ended while it moved":        {moved: "begun-1", moves: true, says: "done;"},
		"an attempt that ended after it moved":        {moved: "filled-1", says: "only what an earlier attempt has left"},
		"API servers that use the members":            {apiServers: "True " + external, says: "only what an earlier attempt has left"},
		"API servers that use filled members":         {apiServers: "True " + external, moved: "filled-1", says: "only what an earlier attempt has left"},
		"API servers that use members, not filled":    {apiServers: "True " + external, moved: "begun-1", says: "did not record that it has filled the members, and nothing was changed"},
		"a single API server again, old mark":         {apiServers: "True " + embedded, moved: "filled-1", says: "nothing was changed. To complete the earlier move"},
		"API servers with an etcd of the user":        {apiServers: "True " + external, noMembers: true, says: "an etcd of your own, and nothing was changed"},
		"both are ready":                              {apiServers: "True " + external + "True " + embedded, says: "both storages are ready, and nothing was changed"},
		"members without an API server that is ready": {apiServers: "False " + external, says: "it is unknown whether"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.has("apiservers", test.apiServers)
			if test.moved != "" {
				i.has("moved", test.moved)
			}
			if test.noMembers {
				i.has("without-members", "")
			}
			i.mkdir("copy")
			i.has("copy/etcd-operator.db", "objects")
			out, _ := i.storage("", none, "from-single")
			if !strings.Contains(out, test.says) {
				t.Errorf("%q is not said: %s", test.says, out)
			}
			if i.hasStopped() != test.moves {
				t.Errorf("stopped: %t, want %t: %s", i.hasStopped(), test.moves, out)
			}
			calls := i.content(i.calls)
			for _, next := range steps {
				_, after, found := strings.Cut(calls, next)
				if test.moves && !test.noMembers && !found {
					t.Fatalf("%q does not follow:\n%s", next, i.content(i.calls))
				}
				calls = after
			}
			_, err := os.Stat(filepath.Join(i.root, "moved"))
			if stays := test.moved != "" && strings.Contains(test.says, "nothing was changed"); stays != (err == nil) {
				t.Errorf("the mark stays: %t, want %t", err == nil, stays)
			}
		})
	}
}

// TestBackFromSingle: after from-single has moved the data of the single API server, a failure does not tell to start that again,
// which would begin empty. It names the command that brings the data back, and that command works.
func TestBackFromSingle(t *testing.T) {
	for name, test := range map[string]struct {
		cut       string
		noMembers bool
		want      string
	}{
		"before the data moves":           {"wait --for=delete pod -l app.kubernetes.io/name in", true, "scale deployment/etcd-operator-apiserver --replicas=2"},
		"before the copy is here":         {"take-out -c shell -- cat", true, ""},
		"between the copy and the fill":   {"app.kubernetes.io/name=etcd-operator-storage --timeout=180s", true, "storage.sh restore-single"},
		"while the members are filled":    {"fill-1", true, "storage.sh restore-single"},
		"beside members that began empty": {"fill-1", false, "delete statefulset etcd-operator-storage"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.has("apiservers", "True "+embedded)
			if test.noMembers {
				i.has("without-members", "")
			}
			i.mkdir("copy")
			i.has("copy/etcd-operator.db", "objects")
			out, err := i.storage("", test.cut, "from-single")
			if err == nil || !strings.Contains(out, "type the same command again") || !strings.Contains(out, test.want) {
				t.Errorf("%v: %q is not said: %s", err, test.want, out)
			}
			if again := strings.Contains(out, "scale deployment"); again != strings.Contains(test.want, "scale deployment") {
				t.Errorf("starts the programs without their data: %t: %s", again, out)
			}
			if !strings.Contains(test.want, "restore-single") && !strings.Contains(test.want, "delete statefulset") {
				return
			}
			i.has("without-members", "")
			if out, err := i.storage("", none, "restore-single", filepath.Join(i.root, "copy.db")); err != nil || !strings.Contains(out, "done;") {
				t.Errorf("the way back: %v: %s", err, out)
			}
			if _, err := os.Stat(filepath.Join(i.root, "moved")); err == nil {
				t.Error("the mark stays")
			}
		})
	}
}

// TestNothingStopsWithoutImages: with a mirror that lacks an image, nothing is stopped, and the reason is printed.
func TestNothingStopsWithoutImages(t *testing.T) {
	for _, command := range []string{"restore", "restore-single", "from-single", "to-single"} {
		t.Run(command, func(t *testing.T) {
			i := newInstallation(t)
			i.has("waiting", "  ImagePullBackOff not in the mirror\n")
			i.has("apiservers", "True "+embedded)
			i.has("saved.db", "objects")
			i.has("sleep", "#!/bin/sh\n")
			if err := os.Chmod(filepath.Join(i.root, "sleep"), 0o700); err != nil {
				t.Fatal(err)
			}
			args := []string{command}
			if strings.HasPrefix(command, "restore") {
				args = append(args, filepath.Join(i.root, "saved.db"))
			}
			if command == "restore-single" {
				i.has("without-members", "")
			}
			out, err := i.storage("012", none, args...)
			if err == nil || i.hasStopped() || !strings.Contains(out, "ImagePullBackOff not in the mirror") || !strings.Contains(out, "REGISTRY=") {
				t.Errorf("%v: stopped %t: %s", err, i.hasStopped(), out)
			}
		})
	}
}

// TestImagesOfAMirror: every image comes from the mirror that the controller names.
func TestImagesOfAMirror(t *testing.T) {
	i := newInstallation(t)
	i.has("controller", `["--storage-service=etcd-operator-storage","--image-registry=registry.example.com/mirror"]`)
	i.has("saved.db", "objects")
	if out, err := i.storage("012", none, "to-single"); err == nil {
		t.Log(out)
	}
	if out, err := i.storage("012", none, "restore", filepath.Join(i.root, "saved.db")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, line := range strings.Split(i.content(filepath.Join(i.root, "applied")), "\n") {
		if image, found := strings.CutPrefix(strings.TrimSpace(line), "image: "); found && !strings.HasPrefix(image, "registry.example.com/mirror/") {
			t.Errorf("image %s is not in the mirror", image)
		}
	}
	applied := i.content(filepath.Join(i.root, "applied"))
	for _, image := range []string{"library/busybox:", "coreos/etcd:", "etcd-operator/etcd-operator:"} {
		if !strings.Contains(applied, "image: registry.example.com/mirror/"+image) {
			t.Errorf("no image %s of the mirror is used", image)
		}
	}
}

// TestOldBackup: backups that go elsewhere leave old files on the PVC. The newest of these is not taken for the newest backup.
func TestOldBackup(t *testing.T) {
	i := newInstallation(t)
	due := time.Now().UTC().Add(-3 * time.Hour)
	name := filepath.Join("backups", "state_v9_"+due.Format("2006-01-02-15:04:05"))
	i.mkdir("backups")
	for _, file := range []string{name, name + ".manifest.json"} {
		i.has(file, "old")
		if err := os.Chtimes(filepath.Join(i.root, file), due, due); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(i.root, "newest.db")
	out, err := i.storage("", none, "backup", file)
	if err == nil || !strings.Contains(out, due.Format("2006-01-02-15:04:05")+" UTC, stored 180 minutes ago") || !strings.Contains(out, "MAX_AGE=") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the old backup was written")
	}
	i.env = []string{"MAX_AGE=14400"}
	if out, err := i.storage("", none, "backup", file); err != nil || i.content(file) != "old" {
		t.Errorf("with MAX_AGE: %v: %s", err, out)
	}
}

func (i *installation) mkdir(name string) {
	i.Helper()
	if err := os.MkdirAll(filepath.Join(i.root, name), 0o700); err != nil {
		i.Fatal(err)
	}
}
