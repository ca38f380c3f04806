// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestFlux runs the tests of the module test/flux on this Kubernetes: what Flux's own library
// makes of clusters that it applies, waits for, compares and prunes.
func TestFlux(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := start(t)
	command := exec.CommandContext(s.ctx(), "go", "test", "-count=1", "-v", ".", "-flux-kubeconfig="+env.Kubeconfig)
	command.Dir = filepath.Join(env.Root, "test", "flux")
	output, err := command.CombinedOutput()
	if err != nil || bytes.Contains(output, []byte("--- SKIP")) {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	t.Logf("%s", output)
}
