// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/diskcheck"
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

// buildPlugin builds the plugin, unless another test has built it.
func (s *scenario) buildPlugin() *plugin {
	s.Helper()
	path, err := env.PluginPath(s.ctx())
	s.must(err, "find the plugin")
	return &plugin{scenario: s, path: path}
}

// run types kubectl etcd in the namespace of the test, and fails the test unless it ends with
// a code.
func (p *plugin) run(code failure.Code, args ...string) (stdout, stderr string) {
	p.Helper()
	got, stdout, stderr := p.end("", args...)
	if got != code {
		p.Fatalf("kubectl etcd %v ended with %d, want %d:\n%s\n%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// end types kubectl etcd with an input, and returns how it ended.
func (p *plugin) end(input string, args ...string) (code failure.Code, stdout, stderr string) {
	p.Helper()
	stdout, stderr, err := env.KubectlOutputs(p.ctx(), harness.Command{
		Args: append([]string{"etcd", "-n", p.namespace}, args...), Stdin: input, Env: []string{"PATH=" + p.path},
	})
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return failure.Code(exit.ExitCode()), stdout, stderr
	case err != nil:
		p.Fatalf("kubectl etcd %v: %v", args, err)
	}
	return failure.CodeDone, stdout, stderr
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

// TestPluginTools types into a session of etcdctl, and measures a disk with the rights of a user
// that may edit the namespace. The namespace admits restricted pods only.
func TestPluginTools(t *testing.T) {
	t.Parallel()
	s := startFor(t, 4*time.Minute)
	p := s.buildPlugin()
	s.kubectl("label", "namespace", s.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
	s.kubectl("create", "rolebinding", "edits", "--clusterrole=edit", "--user=plugin-editor")
	c := s.cluster("tooled")
	c.secure("tooled-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("tooled", 1, etcdVersion, withAutoTLS))
	c.settle(1)

	// shell ends with a code and prints a text.
	shell := func(code failure.Code, input, want string, args ...string) {
		t.Helper()
		got, out, said := p.end(input, append([]string{"shell", c.name}, args...)...)
		if got != code || !strings.Contains(out+said, want) {
			t.Errorf("it ended with %d, want %d and %q:\n%s\n%s", got, code, want, out, said)
		}
	}
	shell(failure.CodeDone, "put 'a key' \"a value\"\n\n# a comment\nget 'a key' --print-value-only\nexit\nget never\n", "OK\na value\n", "--as=plugin-editor")
	shell(1, "bogus\nput b c\n", "etcdctl in pod tooled-")
	shell(failure.CodeDone, "get b\n", "")
	shell(failure.CodeUsage, "member remove 1\n", "add --yes to run it")

	// An editor of the namespace may not read the operator's image, and must name it.
	_, said := p.run(failure.CodeForbidden, "diskcheck", "--as=plugin-editor")
	s.contains(said, "name it with --image", "the right to list deployments in namespace etcd-operator-system is missing")
	image := s.kubectl("-n", "etcd-operator-system", "get", "deployment", "etcd-operator-controller", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	from := time.Now()
	code, out, said := p.end("", "diskcheck", "--writes=200", "--limit=20s", "--timeout=3m", "-o", "json", "--as=plugin-editor", "--image="+image)
	disk := &diskcheck.Report{}
	s.must(json.Unmarshal([]byte(out), disk), "read the report %s, errors %s", out, said)
	if disk.Writes == 0 || disk.P99Milliseconds <= 0 || disk.P99Milliseconds > disk.MaxMilliseconds || disk.Node == "" {
		t.Errorf("unexpected %+v", disk)
	}
	// The disk of the machine may be slow: both judgements can be right.
	if fast := disk.P99Milliseconds < 10; disk.FastEnough != fast || (code == failure.CodeDone) != fast || (code == failure.CodeNotMet) == fast {
		t.Errorf("it ended with %d: %+v", code, disk)
	}
	if left := s.kubectl("get", "jobs,pods,pvc", "-o", "name"); strings.Contains(left, "diskcheck") {
		t.Errorf("the disk check left %s", left)
	}
	t.Logf("p99 of fdatasync is %.2f ms; the check took %v", disk.P99Milliseconds, time.Since(from).Round(time.Second))
}
