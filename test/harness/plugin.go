// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// pluginBuild is the kubectl plugin of this work tree, built at most once.
type pluginBuild struct {
	mu  sync.Mutex
	dir string
}

// PluginPath returns a PATH with the plugin and kubectl before everything else. The first call
// builds the plugin, and Close removes it.
func (e *Environment) PluginPath(ctx context.Context) (string, error) {
	dir, err := e.plugin.build(ctx, e.Root)
	if err != nil {
		return "", fmt.Errorf("build the plugin: %w", err)
	}
	path := []string{dir}
	if e.Bin != "" {
		path = append(path, e.Bin)
	}
	return strings.Join(append(path, os.Getenv("PATH")), string(os.PathListSeparator)), nil
}

// build builds the plugin unless it was built, and returns its directory.
func (p *pluginBuild) build(ctx context.Context, root string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != "" {
		return p.dir, nil
	}
	dir, err := os.MkdirTemp("", "kubectl-etcd-")
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "kubectl-etcd"), "./cmd/kubectl-etcd")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("%w: %s", err, out), os.RemoveAll(dir))
	}
	p.dir = dir
	return dir, nil
}

// remove removes what was built.
func (p *pluginBuild) remove() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return nil
	}
	dir := p.dir
	p.dir = ""
	return os.RemoveAll(dir)
}
