// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/test/servers"
)

// definition is a CustomResourceDefinition as the original etcd-operator has it.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.etcd.database.coreos.com}
spec:
  group: etcd.database.coreos.com
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions:
    - name: v1beta2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestDefinitionsForToolsAreRejected: what the release has for crd2pulumi and its like is a definition that Kubernetes
// understands, and it rejects it only for the scope that is missing.
func TestDefinitionsForToolsAreRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	generate := exec.CommandContext(t.Context(), "go", "run", "./hack/schemas", dir)
	generate.Dir = filepath.Join("..", "..")
	if output, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, plural := range []string{"etcdclusters", "etcdbackups", "etcdrestores"} {
		output, err := env.kubectl(t.Context(), "create", "--dry-run=server", "-f", filepath.Join(dir, "etcd.database.coreos.com", plural+".crd.yaml"))
		if err == nil || !strings.Contains(output, "spec.scope: Required value") || strings.Contains(output, "openAPIV3Schema") {
			t.Errorf("%s: %v", plural, err)
		}
	}
}

// TestDefinitionsKeepTheServerFromStarting installs the server beside CustomResourceDefinitions of
// its group, with the rights of its ServiceAccount. It is not parallel: other tests read the
// schemas of the group. When the definitions are deleted, the server starts.
func TestDefinitionsKeepTheServerFromStarting(t *testing.T) {
	const clusters, backups = "etcdclusters.etcd.database.coreos.com", "etcdbackups.etcd.database.coreos.com"
	remove := func(ctx context.Context) error {
		_, err := env.kubectl(ctx, "delete", "crd", clusters, backups, "--ignore-not-found", "--wait")
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := remove(ctx); err != nil {
			t.Error(err)
		}
	})
	manifest := fmt.Sprintf(definition, "etcdcluster", "EtcdCluster") + "---\n" + fmt.Sprintf(definition, "etcdbackup", "EtcdBackup")
	if _, err := env.kubectlWith(t.Context(), nil, manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	data := "--embedded-etcd-dir=" + filepath.Join(t.TempDir(), "data")
	launch := func() (*servers.Process, int) {
		port, err := servers.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		server, err := env.launch(fmt.Sprintf("beside-definitions-%d", port), port, data, "--allow-empty-storage")
		if err != nil {
			t.Fatal(err)
		}
		return server, port
	}
	rejected, _ := launch()
	select {
	case <-rejected.Done():
	case <-time.After(testPatience):
		_ = rejected.Stop(syscall.SIGKILL, testPatience)
		t.Fatalf("the server does not end:\n%s", rejected.Tail())
	}
	said := rejected.Tail()
	for _, want := range []string{backups + ", " + clusters, "would delete the pods", "kubectl etcd migrate operator"} {
		if rejected.Err() == nil || !strings.Contains(said, want) {
			t.Errorf("the server ended with %v and did not say %q:\n%s", rejected.Err(), want, said)
		}
	}

	if err := remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted, port := launch()
	defer func() {
		if err := accepted.Stop(syscall.SIGKILL, testPatience); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	if err := accepted.WaitReady(ctx, fmt.Sprintf("https://127.0.0.1:%d/readyz", port), env.serverTrust); err != nil {
		t.Fatalf("the server does not start without the definitions: %v\n%s", err, accepted.Tail())
	}
	// The registration of the running server has outlived the definitions.
	err := wait.PollUntilContextCancel(ctx, servers.PollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := env.kubectl(ctx, "get", "etcdclusters", "-A")
		return err == nil, nil // an APIService may be unavailable for a moment
	})
	if err != nil {
		t.Error(err)
	}
}
