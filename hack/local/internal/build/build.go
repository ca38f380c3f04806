// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/containerd"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/image"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/layout"
	"github.com/etcd-operator/etcd-operator/hack/local/internal/progress"
)

// errUnavailable marks an image that cannot be made on this machine, and that the
// cluster does not need.
var errUnavailable = errors.New("not available here")

// Builder builds into the cache of a layout.
type Builder struct {
	Layout   layout.Layout
	Progress *progress.Printer
	// Kubernetes is the release whose programs are built.
	Kubernetes kubernetes.Release
	// Tour leaves out what only tests use, unless it was built before.
	Tour bool
	// Store is the directory of the store that nodes start with, and Archives are
	// the images in it; both are known after Run.
	Store    string
	Archives []string

	built, cached int
}

// Run builds whatever is missing.
func (b *Builder) Run(ctx context.Context) error {
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := b.installPackages(ctx); err != nil {
		return err
	}
	for _, pkg := range unpacked {
		if err := b.item(ctx, pkg, "unpacked from its Debian package", exists(b.debianFile(pkg, "")), func() error { return b.unpack(ctx, pkg) }); err != nil {
			return err
		}
	}
	if err := b.programs(ctx, b.missing()); err != nil {
		return err
	}
	if err := b.linkCurrent(); err != nil {
		return err
	}
	for _, r := range b.recipes() {
		if b.Tour && r.tests && !isUpToDate(b.archive(r), r.inputs) {
			continue
		}
		if err := b.image(ctx, r); err != nil {
			return err
		}
	}
	return b.store(ctx)
}

// missing returns the programs that are to be built.
func (b *Builder) missing() []program {
	var missing []program
	for _, p := range programs(b.Kubernetes) {
		switch {
		case exists(p.file(b)):
			b.cached++
		case p.onDemand, p.tests && b.Tour:
		default:
			missing = append(missing, p)
		}
	}
	return missing
}

// RunOnly builds the programs with these names in the flat directory, if they are
// missing, and nothing else.
func (b *Builder) RunOnly(ctx context.Context, names []string) error {
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	all := programs(b.Kubernetes)
	var missing []program
	for _, name := range names {
		i := slices.IndexFunc(all, func(p program) bool { return p.current == name })
		if i < 0 {
			return fmt.Errorf("there is no program %s to build", name)
		}
		if !exists(all[i].file(b)) {
			missing = append(missing, all[i])
		}
	}
	if err := b.programs(ctx, missing); err != nil {
		return err
	}
	for _, p := range all {
		if slices.Contains(names, p.current) {
			if err := b.link(p.current, p.file(b)); err != nil {
				return err
			}
		}
	}
	return nil
}

// programs builds programs, those of one module together.
func (b *Builder) programs(ctx context.Context, missing []program) error {
	groups := together(missing)
	if len(missing) > 1 {
		b.Progress.Step("%d programs to build, in %d steps; Kubernetes takes three to six minutes on two cores, the others up to a minute each", len(missing), len(groups))
	}
	for i, group := range groups {
		name := fmt.Sprintf("step %d of %d: %s (%s)", i+1, len(groups), group[0].component, names(group))
		if err := b.item(ctx, name, "built", false, func() error { return b.buildTogether(ctx, group) }); err != nil {
			return err
		}
	}
	return nil
}

// item runs one step unless its result is there, and reports it.
func (b *Builder) item(ctx context.Context, name, what string, done bool, step func() error) error {
	if done {
		b.cached++
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	finished := b.Progress.Working("working on %s", name)
	err := step()
	finished()
	if err != nil {
		return err
	}
	b.built++
	b.Progress.Step("%s %s (%.1f s)", name, what, time.Since(start).Seconds())
	return nil
}

func (b *Builder) image(ctx context.Context, r recipe) error {
	archive := b.archive(r)
	err := b.item(ctx, r.ref, "packed as an image", isUpToDate(archive, r.inputs), func() error {
		spec, err := r.spec(ctx)
		if err != nil {
			return err
		}
		spec.Ref = r.ref
		return image.Write(spec, archive)
	})
	if errors.Is(err, errUnavailable) {
		b.Progress.Step("%s left out: %v", r.ref, err)
		return nil
	}
	if err != nil {
		return err
	}
	b.Archives = append(b.Archives, archive)
	return nil
}

func (b *Builder) store(ctx context.Context) error {
	dir, err := containerd.StoreDir(b.Layout.NodeStores(), ContainerdVersion, b.Archives)
	if err != nil {
		return err
	}
	b.Store = dir
	what := fmt.Sprintf("made with %d images", len(b.Archives))
	return b.item(ctx, "node store", what, exists(dir), func() error {
		return containerd.BuildStore(ctx, b.Layout.Bin(containerdComponent), dir, b.Archives)
	})
}

// linkCurrent makes the flat directory with a link to every program that is built.
func (b *Builder) linkCurrent() error {
	links := map[string]string{
		"etcd-3.4":    b.debianFile("etcd-server", "usr/bin/etcd"),
		"etcdctl-3.4": b.debianFile("etcd-client", "usr/bin/etcdctl"),
		"busybox":     b.debianFile("busybox-static", "bin/busybox"),
	}
	for _, p := range programs(b.Kubernetes) {
		if p.current != "" && !p.onDemand && exists(p.file(b)) {
			links[p.current] = p.file(b)
		}
	}
	for name, target := range links {
		if err := b.link(name, target); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) link(name, target string) error {
	dir := b.Layout.Current(b.Kubernetes)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of programs: %w", err)
	}
	link := filepath.Join(dir, name)
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	return nil
}

// Summary says in one line what Run did.
func (b *Builder) Summary() string {
	return fmt.Sprintf("%d items built, %d found in the cache %s", b.built, b.cached, b.Layout.Cache)
}

// source finds the directory with the modules to build: this program is run from
// hack/local or from the root of the repository.
func (b *Builder) source() (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("the go command is not in PATH: install Go to build what the cluster needs: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{filepath.Join(dir, "build"), filepath.Join(dir, "hack", "local", "build")} {
			if exists(filepath.Join(candidate, b.Kubernetes.Module(), "go.mod")) {
				return candidate, nil
			}
		}
		if dir == "/" {
			return "", errors.New("the modules to build are not here: run this from the repository, in hack/local")
		}
	}
}

// lock keeps two builds from writing the same files.
func (b *Builder) lock(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(b.Layout.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	file, err := os.Create(filepath.Join(b.Layout.Cache, "lock"))
	if err != nil {
		return nil, fmt.Errorf("locking the cache directory: %w", err)
	}
	defer b.Progress.Working("waiting for another build to end")()
	for unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return func() { file.Close() }, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
