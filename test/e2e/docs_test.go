// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/pages"
)

// docsTimeout bounds the commands of one page.
const docsTimeout = 5 * time.Minute

// needs skip pages whose commands need more than every Kubernetes has.
var needs = map[string]func(t *testing.T){
	"drain-nodes":    func(t *testing.T) { t.Helper(); needNodes(t, 3) },
	"dual-stack":     func(t *testing.T) { t.Helper(); needFamilies(t, corev1.IPv4Protocol, corev1.IPv6Protocol) },
	"operator-state": needSavePod,
}

// alone are pages whose commands disturb other pages: they cordon nodes.
var alone = []string{"drain-nodes"}

// TestDocs runs the commands that pages mark as tests, each page in a namespace of its own.
// docs/contributing/README.md says how a page marks them.
func TestDocs(t *testing.T) {
	folders, err := pages.ReadAll(filepath.Join(env.Root, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := env.PluginPath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, page := range folders[folder] {
			if err := page.Check(); err != nil && folder == "how-to" {
				t.Error(err)
			}
			if len(page.Steps) == 0 {
				continue
			}
			names[page.Name] = true
			t.Run(page.Name, func(t *testing.T) { testPage(t, page, path) })
		}
	}
	for _, name := range append(slices.Collect(maps.Keys(needs)), alone...) {
		if !names[name] {
			t.Errorf("no page %s marks a block of commands as a test", name)
		}
	}
}

// testPage runs the commands of a page, beside the other pages if they do not disturb these.
func testPage(t *testing.T, page *pages.Page, path string) {
	t.Helper()
	if need := needs[page.Name]; need != nil {
		need(t)
	}
	isAlone := slices.Contains(alone, page.Name)
	if !isAlone {
		t.Parallel()
	}
	s := startFor(t, docsTimeout)
	if isAlone {
		nodes, err := env.ReadyNodes(s.ctx())
		s.must(err, "list nodes")
		s.uncordonLater(nodes...)
	}
	from := time.Now()
	newShell(s, path).runSteps(page)
	t.Logf("the page took %v", time.Since(from).Round(time.Second))
}

// needSavePod skips a test unless artifacts/install is installed. It removes the pod that saves
// the state, also after a failure.
func needSavePod(t *testing.T) {
	t.Helper()
	_, err := env.Kube.CoreV1().PersistentVolumeClaims(harness.SystemNamespace).Get(t.Context(), "etcd-operator-apiserver-data", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Skip("the API server does not keep its objects on a PVC: install artifacts/install")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"-n", harness.SystemNamespace, "delete", "pod", savePod, "--ignore-not-found"}}); err != nil {
			t.Errorf("delete pod %s: %v", savePod, err)
		}
	})
}

// shell runs blocks of commands as one session of a shell does.
type shell struct {
	*scenario
	// dir is the current directory. It has the files of the repository that pages name.
	dir string
	// env are variables of the environment.
	env []string
	// variables and values are files: what a block sets and the next ones read, and what the
	// placeholders of pages stand for.
	variables, values string
}

func newShell(s *scenario, path string) *shell {
	s.Helper()
	dir := s.TempDir()
	sh := &shell{scenario: s, dir: filepath.Join(dir, "work"), variables: filepath.Join(dir, "variables"), values: filepath.Join(dir, "values")}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	s.must(errors.Join(
		os.Mkdir(sh.dir, 0o700),
		os.Symlink(filepath.Join(env.Root, "artifacts"), filepath.Join(sh.dir, "artifacts")),
		kubeconfigFor(kubeconfig, s.namespace),
		os.WriteFile(sh.variables, []byte("NS="+s.namespace+"\n"), 0o600),
		os.WriteFile(sh.values, []byte("NS="+s.namespace+"\n"), 0o600),
	), "prepare the shell")
	sh.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+path)
	return sh
}

// runSteps runs the blocks of a page one after the other. Variables of one are there in the next.
func (s *shell) runSteps(page *pages.Page) {
	s.Helper()
	for _, step := range page.Steps {
		commands := pages.Fill(step.Commands, s.placeholders())
		out, err := s.run(s.ctx(), commands)
		if err != nil {
			s.Fatalf("line %d of page %s: %v\n%s\n%s", step.Line, page.Name, err, commands, out)
		}
		if missing := pages.Missing(step.Output, out); len(missing) > 0 {
			s.Errorf("line %d of page %s printed no line with %q:\n%s", step.Line, page.Name, missing, out)
		}
	}
}

// run runs a block and returns what it printed.
func (s *shell) run(ctx context.Context, commands string) (string, error) {
	script := "set -aeuo pipefail\n. " + s.variables + "\n" + commands + "\nset +eu\nexport -p >" + s.variables + "\n{\n"
	for _, name := range pages.Placeholders() {
		script += fmt.Sprintf("echo %[1]s=\"$%[1]s\"\n", name)
	}
	command := exec.CommandContext(ctx, "bash", "-c", script+"} >"+s.values+"\n")
	command.Dir, command.Env, command.WaitDelay = s.dir, s.env, time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}

// placeholders returns the values that placeholders stand for.
func (s *shell) placeholders() map[string]string {
	s.Helper()
	text, err := os.ReadFile(s.values)
	s.must(err, "read the values of the placeholders")
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	return values
}

// kubeconfigFor writes the kubeconfig of the tests with another current namespace.
func kubeconfigFor(path, namespace string) error {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.WriteToFile(*config, path)
}
