// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// hostPrograms are the programs that must be installed on the machine, and the
// Debian packages that have them.
var hostPrograms = []struct{ path, pkg string }{
	{"runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"/usr/lib/cni/portmap", "containernetworking-plugins"},
	{"ip", "iproute2"},
	{"nft", "nftables"},
	{"iptables", "iptables"}, // the portmap plugin wants it
	{"nsenter", "util-linux"},
}

// unpacked are the packages whose programs only go into images. They are not
// installed: etcd-server would bring up a service.
var unpacked = []string{"busybox-static", "etcd-server", "etcd-client"}

// lookPath finds a program whatever the caller's PATH is.
func lookPath(name string) (string, bool) {
	if filepath.IsAbs(name) {
		_, err := os.Stat(name)
		return name, err == nil
	}
	for _, dir := range filepath.SplitList(process.Path) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// missingPackages returns the packages to install.
func missingPackages() []string {
	var missing []string
	for _, host := range hostPrograms {
		if _, ok := lookPath(host.path); !ok && !slices.Contains(missing, host.pkg) {
			missing = append(missing, host.pkg)
		}
	}
	return missing
}

func (b *Builder) installPackages(ctx context.Context) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	if _, ok := lookPath("apt-get"); !ok {
		return fmt.Errorf("this machine has no apt-get: install what Debian calls %s by hand", strings.Join(missing, ", "))
	}
	b.Progress.Step("installing the Debian packages %s", strings.Join(missing, " "))
	defer b.Progress.Working("installing packages")()
	err := b.aptGet(ctx, "", append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
	if err != nil {
		return fmt.Errorf("installing Debian packages: %w", err)
	}
	if still := missingPackages(); len(still) > 0 {
		return fmt.Errorf("the Debian packages %s are installed, but their programs are not where they are expected", strings.Join(still, ", "))
	}
	return nil
}

// aptGet runs apt-get, after refreshing its lists if it fails without.
func (b *Builder) aptGet(ctx context.Context, dir string, args ...string) error {
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet=2"}, args...)...)
		cmd.Dir = dir
		// SYSTEMD_OFFLINE: packages must not start the services that they bring.
		cmd.Env = append(os.Environ(), "PATH="+process.Path, "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_OFFLINE=1")
		return command{cmd}.run()
	}
	err := run(args...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.Progress.Step("refreshing apt's lists of packages")
	if err := run("update"); err != nil {
		return err
	}
	return run(args...)
}

// debianFile is a file of an unpacked package.
func (b *Builder) debianFile(pkg, path string) string {
	return filepath.Join(b.Layout.Debian(), pkg, path)
}

// unpack downloads a package and unpacks it in the cache, without installing it.
func (b *Builder) unpack(ctx context.Context, pkg string) error {
	dir := b.debianFile(pkg, "")
	next := dir + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.MkdirAll(next, 0o755); err != nil {
		return err
	}
	// apt wants to write as a user of its own; the warning that it cannot is harmless.
	if err := b.aptGet(ctx, next, "download", pkg); err != nil {
		return fmt.Errorf("downloading the Debian package %s: %w", pkg, err)
	}
	archives, err := filepath.Glob(filepath.Join(next, pkg+"_*.deb"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("downloading the Debian package %s gave %d files", pkg, len(archives))
	}
	if err := (command{exec.CommandContext(ctx, "dpkg-deb", "--extract", archives[0], next)}).run(); err != nil {
		return fmt.Errorf("unpacking the Debian package %s: %w", pkg, err)
	}
	if err := os.Remove(archives[0]); err != nil {
		return err
	}
	return os.Rename(next, dir)
}

// libraries returns the shared libraries that a program needs, by the path at
// which it looks for them.
func libraries(ctx context.Context, file string) ([]string, error) {
	out, err := command{exec.CommandContext(ctx, "ldd", file)}.output()
	if err != nil {
		return nil, fmt.Errorf("listing the libraries of %s: %w", file, err)
	}
	return parseLdd(out), nil
}

// parseLdd reads lines such as "libc.so.6 => /lib/libc.so.6 (0x7f...)" and
// "/lib64/ld-linux-x86-64.so.2 (0x7f...)".
func parseLdd(out string) []string {
	var files []string
	for line := range strings.Lines(out) {
		for field := range strings.FieldsSeq(line) {
			if strings.HasPrefix(field, "/") {
				files = append(files, field)
			}
		}
	}
	return files
}
