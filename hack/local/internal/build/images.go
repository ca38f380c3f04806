// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/containerd"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
)

// References of the images that the cluster itself runs.
const (
	CoreDNSImage   = "registry.k8s.io/coredns/coredns:v" + CoreDNSVersion
	LocalPathImage = "docker.io/rancher/local-path-provisioner:v" + LocalPathVersion
	BusyboxImage   = "docker.io/library/busybox:" + busyboxVersion
)

const (
	etcdRepository    = "quay.io/coreos/etcd"
	kubectlRepository = "registry.k8s.io/kubectl"
)

// recipe describes one image.
type recipe struct {
	name string // of the archive, with the version
	ref  string
	// inputs are the files it is made of: it is made again when one is newer.
	inputs []string
	// tests is true for an image that only tests use: it is left out for the tour.
	tests bool
	spec  func(ctx context.Context) (image.Spec, error)
}

func (b *Builder) recipes() []recipe {
	all := []recipe{
		b.singleProgram("pause-"+pauseVersion, containerd.PauseImage, "pause-"+pauseVersion, "pause"),
		b.singleProgram(coreDNSComponent, CoreDNSImage, coreDNSComponent, "coredns"),
		b.singleProgram("local-path-provisioner-"+LocalPathVersion, LocalPathImage,
			"local-path-provisioner-"+LocalPathVersion, "local-path-provisioner"),
		b.busybox(),
		b.kubectl(),
	}
	for _, release := range etcdReleases {
		all = append(all, b.etcd(release))
	}
	return append(all, b.debianEtcd())
}

// singleProgram is an image with nothing but one static program.
func (b *Builder) singleProgram(name, ref, component, program string) recipe {
	file := filepath.Join(b.Layout.Bin(component), program)
	return recipe{name: name, ref: ref, inputs: []string{file}, spec: func(context.Context) (image.Spec, error) {
		files := append(image.Base(), image.File{Dest: "/" + program, Source: file})
		return image.Spec{Entrypoint: []string{"/" + program}, Files: files}, nil
	}}
}

// etcd is laid out like the published image: its programs, no shell, and the server as
// the command (not the entrypoint), so that a pod's args replace it.
func (b *Builder) etcd(release etcdRelease) recipe {
	r := recipe{name: "etcd-" + release.version, ref: etcdRepository + ":v" + release.version, tests: release.tests}
	for _, p := range release.programs() {
		r.inputs = append(r.inputs, p.file(b))
	}
	r.spec = func(context.Context) (image.Spec, error) { return etcdSpec(r.inputs), nil }
	return r
}

func etcdSpec(programs []string) image.Spec {
	files := image.Base()
	for _, program := range programs {
		files = append(files, image.File{Dest: "/usr/local/bin/" + filepath.Base(program), Source: program})
	}
	return image.Spec{Command: []string{"/usr/local/bin/etcd"}, Files: files}
}

// debianEtcd is the one release that no Go module offers. Debian's programs are
// linked dynamically, so the image holds the C library as well.
func (b *Builder) debianEtcd() recipe {
	r := recipe{
		name:  "etcd-" + debianEtcdVersion,
		ref:   etcdRepository + ":v" + debianEtcdVersion,
		tests: true,
		inputs: []string{
			b.debianFile("etcd-server", "usr/bin/etcd"),
			b.debianFile("etcd-client", "usr/bin/etcdctl"),
		},
	}
	r.spec = func(ctx context.Context) (image.Spec, error) {
		out, err := command{exec.CommandContext(ctx, r.inputs[0], "--version")}.output()
		if err != nil {
			return image.Spec{}, fmt.Errorf("asking Debian's etcd for its version: %w", err)
		}
		if !strings.Contains(out, "etcd Version: "+debianEtcdVersion+"\n") {
			version, _, _ := strings.Cut(out, "\n")
			return image.Spec{}, fmt.Errorf("%w: this Debian offers %q", errUnavailable, version)
		}
		spec := etcdSpec(r.inputs)
		needed, err := libraries(ctx, r.inputs[0])
		if err != nil {
			return image.Spec{}, err
		}
		for _, library := range needed {
			spec.Files = append(spec.Files, image.File{Dest: library, Source: library})
		}
		return spec, nil
	}
	return r
}

// busybox is a shell with the usual commands, for tests and for the provisioner's
// helper pods.
func (b *Builder) busybox() recipe {
	binary := b.debianFile("busybox-static", "bin/busybox")
	return recipe{name: "busybox-" + busyboxVersion, ref: BusyboxImage, inputs: []string{binary}, spec: func(ctx context.Context) (image.Spec, error) {
		out, err := command{exec.CommandContext(ctx, binary, "--list")}.output()
		if err != nil {
			return image.Spec{}, fmt.Errorf("listing busybox's commands: %w", err)
		}
		files := append(image.Base(), image.File{Dest: "/bin/busybox", Source: binary})
		for applet := range strings.FieldsSeq(out) {
			if applet != "busybox" {
				files = append(files, image.File{Dest: "/bin/" + applet, Link: "busybox"})
			}
		}
		return image.Spec{Command: []string{"/bin/sh"}, Files: files}, nil
	}}
}

// kubectl is for Jobs that ask the API server for something. The image has the newest
// release on every cluster, because manifests name it.
func (b *Builder) kubectl() recipe {
	version := "v" + kubernetes.Newest().Version
	file := filepath.Join(b.Layout.Bin(kubernetes.Newest().Component()), kubectl)
	return recipe{name: "kubectl-" + version, ref: kubectlRepository + ":" + version, inputs: []string{file}, spec: func(context.Context) (image.Spec, error) {
		return image.Spec{Entrypoint: []string{"/bin/kubectl"}, Files: append(image.Base(), image.File{Dest: "/bin/kubectl", Source: file})}, nil
	}}
}

func (b *Builder) archive(r recipe) string {
	return filepath.Join(b.Layout.Images(), r.name+".tar")
}

// isUpToDate says whether target exists and is no older than any of its inputs.
func isUpToDate(target string, inputs []string) bool {
	made, err := os.Stat(target)
	if err != nil {
		return false
	}
	for _, input := range inputs {
		if info, err := os.Stat(input); err != nil || info.ModTime().After(made.ModTime()) {
			return false
		}
	}
	return true
}
