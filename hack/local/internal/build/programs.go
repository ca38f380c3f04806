// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/kubernetes"
)

// coreDNSComponent names the choice of plugins, too: another choice is another program.
const coreDNSComponent = "coredns-" + CoreDNSVersion + "-etcd"

// Versions, beside those of Kubernetes. The modules below hack/local/build pin the same ones: a build fails
// when they differ.
const (
	ContainerdVersion = "2.4.2"
	CoreDNSVersion    = "1.14.7"
	LocalPathVersion  = "0.0.30"
	VersitygwVersion  = "1.8.0"
	FakeGCSVersion    = "1.56.1"
	KubeRouterVersion = "1.6.1"
	RegistryVersion   = "3.1.2"
	pauseVersion      = "1"
	busyboxVersion    = "1.35"
	debianEtcdVersion = "3.4.23"
)

const (
	containerdComponent = "containerd-" + ContainerdVersion
	containerdModule    = "github.com/containerd/containerd/v2"
)

// containerdPrograms are the container runtime of the nodes, the program that keeps each pod, and the client.
func containerdPrograms() []program {
	var all []program
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		all = append(all, program{
			component: containerdComponent, name: name, module: "containerd", pkg: containerdModule + "/cmd/" + name,
			ldflags: strip + " -X " + containerdModule + "/version.Version=" + ContainerdVersion,
			pin:     containerdModule + "@v" + ContainerdVersion, current: name,
		})
	}
	return all
}

// etcdRelease is one release of etcd that is built here.
type etcdRelease struct {
	version string
	module  string // its directory below build
	suffix  string // of its programs in the flat directory; the default release has none
	single  bool   // one module for all of it, as before 3.5
	tests   bool   // only tests use it: left out for the tour
}

var etcdReleases = []etcdRelease{
	{version: "3.6.16", module: "etcd-3.6"},
	{version: "3.5.35", module: "etcd-3.5", suffix: "-3.5", tests: true},
	{version: "3.6.11", module: "etcd-3.6-previous", suffix: "-3.6.11", tests: true},
	{version: "3.7.3", module: "etcd-3.7", suffix: "-3.7", tests: true},
	{version: "3.3.27", module: "etcd-3.3", suffix: "-3.3", single: true, tests: true},
}

// etcdSingle is the module of releases that are one module.
const etcdSingle = "github.com/coreos/etcd"

// programs returns what an image of the release holds.
func (r etcdRelease) programs() []program {
	commands := []program{
		{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
		{name: "etcdctl", pkg: "go.etcd.io/etcd/etcdctl/v3"},
		{name: "etcdutl", pkg: "go.etcd.io/etcd/etcdutl/v3"},
	}
	// Every program prints the version of this module as its own.
	pin := "go.etcd.io/etcd/api/v3@v" + r.version
	if r.single {
		commands = []program{{name: "etcd", pkg: etcdSingle}, {name: "etcdctl", pkg: etcdSingle + "/etcdctl"}}
		pin = etcdSingle + "@v" + r.version + "+incompatible"
	}
	for i := range commands {
		p := &commands[i]
		p.component, p.module, p.ldflags, p.tests = "etcd-"+r.version, r.module, strip, r.tests
		p.pin, p.current = pin, p.name+r.suffix
	}
	return commands
}

// program is one program that is built from a Go module.
type program struct {
	component string // its directory in the cache: name and version
	name      string
	module    string // directory of the module below build
	pkg       string
	ldflags   string
	pin       string // module@version that the module must select; empty: not checked
	current   string // its name in the flat directory; empty: not there
	onDemand  bool   // built only when it is named
	tests     bool   // only tests use it: left out for the tour
}

const strip = "-s -w"

// programs returns what a cluster of the release needs.
func programs(release kubernetes.Release) []program {
	var all []program
	for _, name := range []string{"kube-apiserver", kubectl, "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"} {
		all = append(all, kubernetesProgram(release, name))
	}
	if release != kubernetes.Newest() {
		image := kubernetesProgram(kubernetes.Newest(), kubectl)
		image.current = ""
		all = append(all, image)
	}
	all = append(all, containerdPrograms()...)
	for _, release := range etcdReleases {
		all = append(all, release.programs()...)
	}
	return append(all,
		program{
			component: coreDNSComponent, name: "coredns", module: "coredns", pkg: ".", ldflags: strip,
			pin: "github.com/coredns/coredns@v" + CoreDNSVersion, current: "coredns",
		},
		program{
			component: "local-path-provisioner-" + LocalPathVersion, name: "local-path-provisioner", module: "local-path",
			pkg: "github.com/rancher/local-path-provisioner", ldflags: strip,
			pin: "github.com/rancher/local-path-provisioner@v" + LocalPathVersion, current: "local-path-provisioner",
		},
		program{
			component: "versitygw-" + VersitygwVersion, name: "versitygw", module: "versitygw",
			pkg: "github.com/versity/versitygw/cmd/versitygw", ldflags: strip,
			pin: "github.com/versity/versitygw@v" + VersitygwVersion, current: "versitygw", tests: true,
		},
		program{
			component: "fake-gcs-server-" + FakeGCSVersion, name: "fake-gcs-server", module: "fake-gcs-server",
			pkg: "github.com/fsouza/fake-gcs-server", ldflags: strip,
			pin: "github.com/fsouza/fake-gcs-server@v" + FakeGCSVersion, current: "fake-gcs-server", tests: true,
		},
		networkPolicies(),
		program{
			component: "registry-" + RegistryVersion, name: "registry", module: "registry",
			pkg: "github.com/distribution/distribution/v3/cmd/registry", ldflags: strip,
			pin: "github.com/distribution/distribution/v3@v" + RegistryVersion, current: "registry", tests: true,
		},
		program{component: "pause-" + pauseVersion, name: "pause", module: "pause", pkg: ".", ldflags: strip},
	)
}

// kubectl is also in an image, which always has the newest release.
const kubectl = "kubectl"

func kubernetesProgram(release kubernetes.Release, name string) program {
	return program{
		component: release.Component(),
		name:      name,
		module:    release.Module(),
		pkg:       "k8s.io/kubernetes/cmd/" + name,
		ldflags:   kubernetesLdflags(release.Version),
		pin:       "k8s.io/kubernetes@v" + release.Version,
		current:   name,
	}
}

// kubernetesLdflags stamps the version, which the modules themselves do not carry.
func kubernetesLdflags(version string) string {
	parts := strings.SplitN(version, ".", 3)
	flags := strip
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=v%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, version, parts[0], parts[1])
	}
	return flags
}

func (p program) file(b *Builder) string {
	return filepath.Join(b.Layout.Bin(p.component), p.name)
}

// together returns the programs in groups that one command builds: a compiler that links one
// program compiles the next one meanwhile, and reads the module once.
func together(all []program) [][]program {
	var groups [][]program
	for _, p := range all {
		last := len(groups) - 1
		if last >= 0 && groups[last][0].component == p.component && groups[last][0].module == p.module && groups[last][0].ldflags == p.ldflags {
			groups[last] = append(groups[last], p)
			continue
		}
		groups = append(groups, []program{p})
	}
	return groups
}

// names lists the programs of a group.
func names(group []program) string {
	list := make([]string, 0, len(group))
	for _, p := range group {
		list = append(list, p.name)
	}
	return strings.Join(list, ", ")
}

// buildTogether builds programs of one group.
func (b *Builder) buildTogether(ctx context.Context, group []program) error {
	source, err := b.source()
	if err != nil {
		return err
	}
	dir := filepath.Join(source, group[0].module)
	if err := group[0].checkPin(ctx, dir); err != nil {
		return err
	}
	out := filepath.Dir(group[0].file(b))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(out, "next-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	args := []string{"build", "-trimpath", "-ldflags", group[0].ldflags, "-o", next + string(filepath.Separator)}
	for _, p := range group {
		args = append(args, p.pkg)
	}
	if err := goCommand(ctx, dir, args...).run(); err != nil {
		return fmt.Errorf("building %s: %w", names(group), err)
	}
	for _, p := range group {
		if err := os.Rename(filepath.Join(next, p.builtAs(dir)), p.file(b)); err != nil {
			return fmt.Errorf("building %s: %w", p.name, err)
		}
	}
	return nil
}

// builtAs is the name that the compiler gives the program of a package: the last element of its
// path that is no major version, or the directory for the package in it.
func (p program) builtAs(dir string) string {
	if p.pkg == "." {
		return filepath.Base(dir)
	}
	name := path.Base(p.pkg)
	if major, ok := strings.CutPrefix(name, "v"); ok && strings.Trim(major, "0123456789") == "" {
		name = path.Base(path.Dir(p.pkg))
	}
	return name
}

// checkPin makes sure that what is about to be built has the version which the
// cache will file it under.
func (p program) checkPin(ctx context.Context, dir string) error {
	module, version, ok := strings.Cut(p.pin, "@")
	if !ok {
		return nil
	}
	cmd := goCommand(ctx, dir, "list", "-m", "-f", "{{.Version}}", module)
	out, err := cmd.output()
	if err != nil {
		return fmt.Errorf("asking for the version of %s: %w", module, err)
	}
	if got := strings.TrimSpace(out); got != version {
		return fmt.Errorf("%s selects %s %s, but %s is wanted: change both or neither", filepath.Join(dir, "go.mod"), module, got, version)
	}
	return nil
}

// command is an external command whose output matters only if it fails.
type command struct{ *exec.Cmd }

func goCommand(ctx context.Context, dir string, args ...string) command {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return command{cmd}
}

func (c command) run() error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (c command) output() (string, error) {
	out, err := c.Output()
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(failure.Stderr)))
	}
	return string(out), err
}
