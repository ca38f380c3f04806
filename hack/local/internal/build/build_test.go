// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
)

func TestProgramsAreDistinct(t *testing.T) {
	for _, release := range kubernetes.Releases() {
		t.Run(release.Minor(), func(t *testing.T) { checkDistinct(t, release) })
	}
}

func checkDistinct(t *testing.T, release kubernetes.Release) {
	b := &Builder{Layout: layout.Layout{Cache: "/cache", State: "/state"}, Kubernetes: release}
	files, current := map[string]bool{}, map[string]bool{}
	for _, p := range programs(release) {
		if files[p.file(b)] {
			t.Errorf("two programs are built as %s", p.file(b))
		}
		files[p.file(b)] = true
		if p.current != "" && current[p.current] {
			t.Errorf("two programs are called %s", p.current)
		}
		current[p.current] = true
		if _, err := os.Stat(filepath.Join("..", "..", "build", p.module)); err != nil {
			t.Errorf("%s: no module: %v", p.name, err)
		}
	}
	for _, name := range []string{"kubectl", "kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "etcd", "etcdctl", "etcdutl", "etcd-3.5", "etcdutl-3.7", "etcdctl-3.6.11", "etcd-3.3", "etcdctl-3.3"} {
		if !current[name] {
			t.Errorf("no %s among the programs", name)
		}
	}
}

// The versions in the code and in the go.mod files must be changed together. The
// build checks it too, but only when it builds.
func TestPinsMatchModules(t *testing.T) {
	for _, release := range kubernetes.Releases() {
		t.Run(release.Minor(), func(t *testing.T) { checkPins(t, release) })
	}
}

func checkPins(t *testing.T, release kubernetes.Release) {
	for _, p := range programs(release) {
		module, version, ok := strings.Cut(p.pin, "@")
		if !ok {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("..", "..", "build", p.module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), module+" "+version) {
			t.Errorf("%s/go.mod does not select %s %s", p.module, module, version)
		}
	}
}

// Kubernetes is built from one release: the modules that its repository publishes with it
// have the same minor and patch version.
func TestStagingModulesMatchRelease(t *testing.T) {
	for _, release := range kubernetes.Releases() {
		raw, err := os.ReadFile(filepath.Join("..", "..", "build", release.Module(), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		want := "v0." + strings.TrimPrefix(release.Version, "1.")
		found := 0
		for line := range strings.Lines(string(raw)) {
			module, replacement, ok := strings.Cut(strings.TrimSpace(line), " => ")
			if !ok {
				continue
			}
			found++
			if replacement != module+" "+want {
				t.Errorf("%s: %s is replaced by %s, want %s", release.Module(), module, replacement, want)
			}
		}
		if found == 0 {
			t.Errorf("%s/go.mod replaces no module", release.Module())
		}
	}
}

func TestKubernetesLdflags(t *testing.T) {
	got := kubernetesLdflags("1.37.2")
	for _, want := range []string{
		"-s -w ",
		"-X k8s.io/component-base/version.gitVersion=v1.37.2",
		"-X k8s.io/client-go/pkg/version.gitMajor=1",
		"-X k8s.io/client-go/pkg/version.gitMinor=37",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

func TestImagesUseBuiltPrograms(t *testing.T) {
	for _, release := range kubernetes.Releases() {
		t.Run(release.Minor(), func(t *testing.T) { checkImages(t, release) })
	}
}

func checkImages(t *testing.T, release kubernetes.Release) {
	b := &Builder{Layout: layout.Layout{Cache: "/cache", State: "/state"}, Kubernetes: release}
	built := map[string]bool{}
	for _, p := range programs(release) {
		built[p.file(b)] = true
	}
	refs := map[string]bool{}
	for _, r := range b.recipes() {
		if refs[r.ref] {
			t.Errorf("%s is there twice", r.ref)
		}
		refs[r.ref] = true
		for _, input := range r.inputs {
			if !built[input] && !strings.HasPrefix(input, b.Layout.Debian()) {
				t.Errorf("%s needs %s, which is not built", r.ref, input)
			}
		}
	}
	for _, ref := range []string{
		"quay.io/coreos/etcd:v3.5.35", "quay.io/coreos/etcd:v3.6.16", "quay.io/coreos/etcd:v3.6.11",
		"registry.k8s.io/kubectl:v1.37.2", "quay.io/coreos/etcd:v3.7.3", "quay.io/coreos/etcd:v3.3.27", "quay.io/coreos/etcd:v3.4.23", "docker.io/library/busybox:1.35",
	} {
		if !refs[ref] {
			t.Errorf("no image %s", ref)
		}
	}
}

// TestSharedModules: what the programs share with the project has its version, or a newer one, so that it is compiled
// once. etcd, and Kubernetes of older minor versions, are as they were released.
func TestSharedModules(t *testing.T) {
	root := required(t, filepath.Join("..", "..", "..", "..", "go.mod"))
	for _, module := range []string{
		kubernetes.Newest().Module(), "containerd", "coredns", "fake-gcs-server", "local-path", "network-policies", "registry", "versitygw",
		"../../../test/argocd", "../../../test/flux", "../../../test/prometheus", "../../../test/prometheus/podmonitors",
	} {
		for name, version := range required(t, filepath.Join("..", "..", "build", module, "go.mod")) {
			if ours := root[name]; ours != "" && semver.Compare(version, ours) < 0 {
				t.Errorf("%s needs %s %s, and the project %s: run hack/update-shared-modules.sh", module, name, version, ours)
			}
		}
	}
}

// required returns the versions that a go.mod requires.
func required(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(strings.TrimPrefix(line, "require ")); len(f) > 1 && strings.HasPrefix(f[1], "v") {
			versions[f[0]] = f[1]
		}
	}
	return versions
}

// The tour needs no program and no image that only tests use; what was built before stays in use.
func TestTourLeavesOutWhatOnlyTestsUse(t *testing.T) {
	b := &Builder{Layout: layout.Layout{Cache: t.TempDir(), State: "/state"}, Kubernetes: kubernetes.Newest(), Tour: true}
	built := map[string]bool{}
	for _, p := range b.missing() {
		built[p.file(b)] = true
		if p.tests {
			t.Errorf("the tour builds %s, which only tests use", p.name)
		}
	}
	for _, r := range b.recipes() {
		for _, input := range r.inputs {
			if !r.tests && !built[input] && !strings.HasPrefix(input, b.Layout.Debian()) {
				t.Errorf("the tour has the image %s, but does not build %s", r.ref, input)
			}
		}
	}
	for _, name := range []string{"kubelet", "containerd", "ctr", "etcd", "etcdctl", "coredns", "local-path-provisioner", "pause"} {
		if !slices.ContainsFunc(b.missing(), func(p program) bool { return p.name == name }) {
			t.Errorf("the tour does not build %s", name)
		}
	}
	b.Tour = false
	if all := b.missing(); len(all) <= len(built) {
		t.Errorf("tests use %d programs, the tour %d", len(all), len(built))
	}
}

// One command builds the programs of a module, and the compiler chooses the names of their files.
func TestProgramsAreBuiltTogether(t *testing.T) {
	steps := map[string]int{}
	for _, group := range together(programs(kubernetes.Newest())) {
		steps[group[0].component]++
		for _, p := range group {
			if p.module != group[0].module || p.ldflags != group[0].ldflags || p.pin != group[0].pin {
				t.Errorf("%s is built with %s, and differs from it", p.name, group[0].name)
			}
		}
	}
	for component, n := range steps {
		if n != 1 {
			t.Errorf("%s is built in %d steps", component, n)
		}
	}
	for pkg, want := range map[string]string{"go.etcd.io/etcd/server/v3": "server", "k8s.io/kubernetes/cmd/kubelet": "kubelet", ".": "pause", "github.com/x/versitygw": "versitygw"} {
		if got := (program{pkg: pkg}).builtAs("/somewhere/pause"); got != want {
			t.Errorf("%s is built as %s, want %s", pkg, got, want)
		}
	}
}

func TestParseLdd(t *testing.T) {
	const out = `	linux-vdso.so.1 (0x00007f179f835000)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f179f642000)
	/lib64/ld-linux-x86-64.so.2 (0x00007f179f837000)
`
	want := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if got := parseLdd(out); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUpToDate(t *testing.T) {
	dir := t.TempDir()
	input, target := filepath.Join(dir, "input"), filepath.Join(dir, "target")
	check := func(want bool, what string) {
		t.Helper()
		if isUpToDate(target, []string{input}) != want {
			t.Errorf("%s: up to date is not %v", what, want)
		}
	}
	check(false, "nothing there")
	for _, file := range []string{target, input} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	age := func(file string, age time.Duration) {
		if err := os.Chtimes(file, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	age(input, time.Hour)
	age(target, time.Minute)
	check(true, "made after its input")
	age(input, time.Second)
	check(false, "older than its input")
}
