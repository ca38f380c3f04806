// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// withBackupOnVolume gives a cluster a backup location on the volume of the test.
const withBackupOnVolume = `
  backup:
    storageType: PersistentVolumeClaim
    persistentVolumeClaim: {claimName: backups}`

// plugin is kubectl with the plugin of this work tree on its PATH.
type plugin struct {
	*scenario
	path string
}

// buildPlugin builds the plugin into a directory of the test.
func (s *scenario) buildPlugin() *plugin {
	s.Helper()
	dir := s.TempDir()
	build := exec.CommandContext(s.ctx(), "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "kubectl-etcd"), "./cmd/kubectl-etcd")
	build.Dir = env.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	s.must(err, "build the plugin: %s", out)
	return &plugin{scenario: s, path: dir + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// run types kubectl etcd in the namespace of the test, and fails the test unless it ends with
// a code.
func (p *plugin) run(code failure.Code, args ...string) (stdout, stderr string) {
	p.Helper()
	stdout, stderr, err := env.KubectlOutputs(p.ctx(), harness.Command{
		Args: append([]string{"etcd", "-n", p.namespace}, args...), Env: []string{"PATH=" + p.path},
	})
	got := failure.CodeDone
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = failure.Code(exit.ExitCode())
	case err != nil:
		p.Fatalf("kubectl etcd %v: %v", args, err)
	}
	if got != code {
		p.Fatalf("kubectl etcd %v ended with %d, want %d:\n%s\n%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// TestPlugin types what a user on call types: look, back up, copy, change, connect.
func TestPlugin(t *testing.T) {
	t.Parallel()
	s := startFor(t, 5*time.Minute)
	p := s.buildPlugin()
	s.volume()
	c := s.cluster("plugged")
	c.secure("plugged-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("plugged", 3, etcdVersion, withAutoTLS, withBackupOnVolume))
	c.settle(3)
	data := c.fill()
	from := time.Now()

	p.run(failure.CodeDone, "check", "api")
	p.run(failure.CodeDone, "check", "healthy", c.name, "--timeout=60s")
	p.run(failure.CodeDone, "check", "upgraded", c.name, "--timeout=60s")
	p.run(failure.CodeNotFound, "status", "absent")
	leader := c.leader().Pod.Name
	out, _ := p.run(failure.CodeDone, "status", c.name)
	s.contains(out, s.namespace+"/plugged  Healthy", "3 of 3 serve, fault tolerance 1, leader plugged-", "etcd          "+etcdVersion)
	out, _ = p.run(failure.CodeDone, "status", c.name, "-o", "json")
	status := &report.Status{}
	s.must(json.Unmarshal([]byte(out), status), "read the report %s", out)
	if !status.Live || status.Verdict != v1beta2.VerdictHealthy || len(status.Health.Members) != 3 {
		t.Errorf("unexpected %+v", status)
	}
	out, _ = p.run(failure.CodeDone, "why", c.name)
	s.contains(out, s.namespace+"/plugged is Healthy")

	_, said := p.run(failure.CodeNotMet, "check", "backed-up", c.name)
	s.contains(said, "has no backup")
	out, _ = p.run(failure.CodeDone, "backup", c.name, "--yes", "--timeout=2m")
	s.contains(out, "Backup plugged-", "is done: revision", "verified by")
	p.run(failure.CodeDone, "check", "backed-up", c.name, "--timeout=60s")

	file := filepath.Join(t.TempDir(), "plugged.db")
	out, _ = p.run(failure.CodeDone, "snapshot", "save", c.name, file)
	s.contains(out, "Saved "+file, "hash checked")
	s.hasSnapshot(file, data)
	p.run(failure.CodeFailed, "snapshot", "save", c.name, file)

	p.changes(c, leader)

	out, _ = p.run(failure.CodeDone, "conn", c.name, "-o", "env")
	s.contains(out, "ETCDCTL_ENDPOINTS=https://plugged-client."+s.namespace+".svc:2379")
	out, _ = p.run(failure.CodeDone, "ctl", c.name, "--", "endpoint", "status")
	for _, pod := range c.members.Live() {
		s.contains(out, pod.Name)
	}
	out, _ = p.run(failure.CodeDone, "logs", c.name, "--tail=1")
	s.contains(out, "[plugged-")
	c.holds(data)
	t.Logf("the plugin took %v", time.Since(from).Round(time.Second))
}

// changes moves the leader, restarts the members, and looks at a replacement without doing it. A
// user that may only look is rejected, and reads which role is missing.
func (p *plugin) changes(c *cluster, leader string) {
	p.Helper()
	ids, uids := c.ids(), c.uids()
	out, _ := p.run(failure.CodeDone, "replace", c.name, leader, "--dry-run")
	p.contains(out, "member "+leader, "Nothing was changed")
	_, said := p.run(failure.CodeUsage, "replace", c.name, leader)
	p.contains(said, "add --yes")
	c.same(ids, uids, true)

	out, _ = p.run(failure.CodeDone, "move-leader", c.name, "--yes")
	p.contains(out, "leads "+p.namespace+"/plugged in term")
	out, _ = p.run(failure.CodeDone, "restart", c.name, "--yes", "--timeout=3m")
	p.contains(out, "Restart of "+p.namespace+"/plugged is done: members that are done: 3.")
	c.settle(3)

	p.kubectl("create", "rolebinding", "looks", "--clusterrole=view", "--user=plugin-viewer")
	p.run(failure.CodeDone, "status", c.name, "--as=plugin-viewer")
	_, said = p.run(failure.CodeForbidden, "restart", c.name, "--as=plugin-viewer", "--yes")
	p.contains(said, "the right to create etcdclusters/restart in namespace "+p.namespace+" is missing", "ClusterRole etcd-operator:edit")
}
