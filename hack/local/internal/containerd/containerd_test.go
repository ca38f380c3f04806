// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
)

func TestParseImages(t *testing.T) {
	const table = `REF                          TYPE                                                 DIGEST        SIZE     PLATFORMS   LABELS
quay.io/coreos/etcd:v3.6.16  application/vnd.docker.distribution.manifest.v2+json sha256:d29db7 60.0 MiB linux/amd64 etcd-operator.local/id=sha256:5f0b,io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned
example.com/other:1          application/vnd.docker.distribution.manifest.v2+json sha256:aaaaaa 1.0 MiB  linux/amd64 -
`
	want := map[string]string{"quay.io/coreos/etcd:v3.6.16": "sha256:5f0b", "example.com/other:1": ""}
	if got := parseImages(table); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestConfig(t *testing.T) {
	node, err := Config{Root: "/r", State: "/s", Socket: "/sock", CNIConfig: "/cni", CNIBin: "/bin", Runc: "/runc", Bin: "/programs"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`root = "/r"`, `address = "/sock"`, `restrict_oom_score_adj = true`, `conf_dir = "/cni"`, `sandbox = "` + PauseImage + `"`, `runtime_path = "/programs/containerd-shim-runc-v2"`} {
		if !strings.Contains(string(node), want) {
			t.Errorf("a node's configuration lacks %s", want)
		}
	}
	store, err := Config{Root: "/r", State: "/s", Socket: "/sock"}.Render()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(store), PauseImage) || !strings.Contains(string(store), `"io.containerd.grpc.v1.cri"`) {
		t.Errorf("the store's configuration does not switch the Kubernetes interface off:\n%s", store)
	}
}

func TestStoreDirDependsOnContentAndContainerd(t *testing.T) {
	dir := t.TempDir()
	write := func(name, user string) string {
		file := filepath.Join(dir, name)
		if err := image.Write(image.Spec{Ref: "example.com/" + name, User: user, Files: image.Base()}, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	storeDirOf := func(version string, archives ...string) string {
		got, err := StoreDir("/stores", version, archives)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	storeDir := func(archives ...string) string { return storeDirOf("2.4.2", archives...) }
	a, b := write("a", ""), write("b", "")
	first := storeDir(a, b)
	if storeDir(b, a) != first {
		t.Error("the order of images matters")
	}
	if storeDir(a) == first {
		t.Error("a missing image does not matter")
	}
	if storeDirOf("2.4.3", a, b) == first {
		t.Error("the version of containerd does not matter")
	}
	write("b", "1")
	if storeDir(a, b) == first {
		t.Error("a changed image does not matter")
	}
}

func TestCloneStore(t *testing.T) {
	store, clone := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "clone")
	if err := os.MkdirAll(filepath.Join(store, "fs", "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(store, "fs", "tmp"), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"meta.db": "database", "fs/blob": "blob"} {
		if err := os.WriteFile(filepath.Join(store, name), []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("blob", filepath.Join(store, "fs", "link")); err != nil {
		t.Fatal(err)
	}
	// What an interrupted run left must not show up in the result.
	if err := os.MkdirAll(filepath.Join(clone+".next", "junk"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CloneStore(store, clone); err != nil {
		t.Fatal(err)
	}
	inode := func(path string) uint64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	if inode(filepath.Join(store, "meta.db")) == inode(filepath.Join(clone, "meta.db")) {
		t.Error("two nodes would write to one database")
	}
	if inode(filepath.Join(store, "fs/blob")) != inode(filepath.Join(clone, "fs/blob")) {
		t.Error("a file of an image was copied")
	}
	if target, err := os.Readlink(filepath.Join(clone, "fs/link")); err != nil || target != "blob" {
		t.Errorf("link: %q %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(clone, "fs/tmp")); err != nil || info.Mode()&os.ModeSticky == 0 || info.Mode().Perm() != 0o777 {
		t.Errorf("mode of a directory: %v %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(clone, "junk")); err == nil {
		t.Error("leftovers of an interrupted run are in the clone")
	}
	// A second call keeps what the node has made of its disk.
	if err := os.WriteFile(filepath.Join(clone, "meta.db"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CloneStore(store, clone); err != nil {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(filepath.Join(clone, "meta.db")); string(raw) != "changed" {
		t.Error("a node's disk was overwritten")
	}
}
