// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// PreviousRelease is the release before the present work, with its own manifests and programs.
type PreviousRelease struct {
	directory string
	// Image is the reference of the image with its programs.
	Image string
}

// Artifact returns the path of a file below artifacts/ of that release.
func (p PreviousRelease) Artifact(parts ...string) string {
	return filepath.Join(append([]string{p.directory, "artifacts"}, parts...)...)
}

// LoadPrevious loads the image of the previous release into the nodes. hack/previous-release.sh builds
// the release unless it was built before.
func (e *Environment) LoadPrevious(ctx context.Context) (PreviousRelease, error) {
	build := exec.CommandContext(ctx, filepath.Join(e.Root, "hack", "previous-release.sh"))
	var said bytes.Buffer
	build.Stderr = &said
	out, err := build.Output()
	if err != nil {
		return PreviousRelease{}, fmt.Errorf("build the previous release: %w: %s", err, said.Bytes())
	}
	p := PreviousRelease{directory: strings.TrimSpace(string(out))}
	image, err := os.ReadFile(filepath.Join(p.directory, "image.txt"))
	if err != nil {
		return PreviousRelease{}, fmt.Errorf("read which image the previous release has: %w", err)
	}
	p.Image = strings.TrimSpace(string(image))
	if _, err := e.LocalTool(ctx, "load", filepath.Join(p.directory, "image.tar")); err != nil {
		return PreviousRelease{}, fmt.Errorf("load %s: %w", p.Image, err)
	}
	return p, nil
}
