// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestOwnControllers runs tests beside each other whose controllers are processes of their own.
// The installed controller is away meanwhile: it would look after their clusters, too.
func TestOwnControllers(t *testing.T) {
	env.RequireLocal(t, harness.Programs)
	start(t).stopInstalledController()
	for name, test := range map[string]func(*testing.T){
		"backups through crashes": backupsThroughCrashes,
		"controller killed":       controllerKilled,
		"linearizable":            linearizable,
		"scopes":                  scopes,
		"secrets lost":            secretsLost,
		"every secret lost":       everySecretLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// stopInstalledController leaves the clusters to controllers that the test runs
// itself. The installed one comes back when the test ends.
func (s *scenario) stopInstalledController() {
	s.Helper()
	replicas, err := env.ScaleProgram(s.ctx(), harness.Controller, 0)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := env.ScaleProgram(ctx, harness.Controller, max(replicas, 1)); err != nil {
			s.Errorf("bring the installed controller back: %v", err)
		}
	})
	s.must(err, "stop the installed controller")
}

// process is a controller that the test runs on this machine, with the program that
// is installed and the rights that the installed one has.
type process struct {
	*scenario
	args   []string
	cmd    *exec.Cmd
	output *bytes.Buffer
}

// controller starts a controller with a lease of its own, unless args say otherwise.
func (s *scenario) controller(lease string, args ...string) *process {
	s.Helper()
	env.RequireLocal(s, harness.Programs)
	p := &process{scenario: s, args: append([]string{
		"--kubeconfig=" + s.controllerKubeconfig(),
		"--listen-addr=127.0.0.1:0",
		"--leader-elect-resource-namespace=" + s.namespace,
		"--leader-elect-resource-name=" + lease,
	}, args...)}
	p.launch()
	s.Cleanup(func() {
		p.kill()
		if s.Failed() {
			s.Logf("the last controller %v said:\n%s", args, tail(p.output.String(), 60))
		}
	})
	return p
}

func (p *process) launch() {
	p.Helper()
	// Every life has a log of its own; the last one is shown if the test fails.
	p.output = &bytes.Buffer{}
	p.cmd = exec.CommandContext(p.ctx(), filepath.Join(env.Root, "bin", "controller"), p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	// It is started again as a container in one pod is, and has its lease back at once.
	p.cmd.Env = append(os.Environ(), "POD_UID="+p.namespace)
	p.must(p.cmd.Start(), "start a controller (make build makes the program)")
}

// kill ends the process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // It was killed: that is the error.
}

func (p *process) restart() {
	p.Helper()
	p.kill()
	p.launch()
}

// controllerKubeconfig writes a kubeconfig with the rights of the installed
// controller, and lets it keep its lease in the namespace of the test.
func (s *scenario) controllerKubeconfig() string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "kubeconfig")
	token := s.kubectl("create", "token", harness.Controller, "-n", harness.SystemNamespace, "--duration=1h")
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	s.must(err, "read the kubeconfig")
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	}
	s.must(clientcmd.WriteToFile(*config, path), "write a kubeconfig")
	account := "--serviceaccount=" + harness.SystemNamespace + ":" + harness.Controller
	name := "lease-" + filepath.Base(filepath.Dir(path))
	s.kubectl("create", "role", name, "--verb=create,get,update", "--resource=leases.coordination.k8s.io")
	s.kubectl("create", "rolebinding", name, "--role="+name, account)
	s.must(os.Chmod(path, 0o600), "protect the kubeconfig")
	return path
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
