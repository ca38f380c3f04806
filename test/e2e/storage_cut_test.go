// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// killsTheScript is a kubectl that ends storage.sh in the place of the first call whose arguments contain CUT.
const killsTheScript = `#!/bin/sh
case "$*" in *"$CUT"*) kill -9 "$PPID"; exit 1 ;; esac
exec %q "$@"
`

// TestStorageCut ends storage.sh restore before each step that replaces data, and starts the programs as
// a user does after an hour. The storage has then one state, that of before or that of the
// file; and the same command completes it. It is not parallel: there is one API.
func TestStorageCut(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	harness.RequireNightly(t)
	needNodes(t, 3)
	s := startFor(t, 15*time.Minute)
	c := s.create("steady", 1, etcdVersion)
	uid := c.get().UID
	s.Cleanup(s.restoreSingle)
	s.storage("from-single")
	file := filepath.Join(s.TempDir(), "saved.db")
	s.storage("save", file)
	s.kubectl("annotate", "etcd/steady", "example.com/written=after")
	for _, cut := range []string{
		"exec etcd-operator-storage-fill-0 -c start", "exec etcd-operator-storage-fill-1 -c start", "exec etcd-operator-storage-fill-2 -c start",
		"rollout status statefulset",
	} {
		out, err := s.cutStorage(s.ctx(), cut, "restore", file)
		if err == nil || !strings.Contains(err.Error(), "killed") {
			s.Fatalf("the script was not ended before %q: %v: %s", cut, err, out)
		}
		s.must(waitFor(s.ctx(), 3*time.Second), "let the pods swap")
		s.kubectl("-n", harness.SystemNamespace, "delete", "pod", "-l", "app.kubernetes.io/component=storage-fill", "--ignore-not-found")
		s.must(install(s.ctx(), env.Artifact("ha")), "install")
		s.until(s.within(3*time.Minute), "the API to serve after a cut before "+cut, func() bool {
			now, err := env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace).Get(s.ctx(), "steady", metav1.GetOptions{})
			if err == nil && now.UID != uid {
				s.Fatalf("after a cut before %q the UID is %s, not %s", cut, now.UID, uid)
			}
			return err == nil
		})
		_, later := c.get().Annotations["example.com/written"]
		s.Logf("after a cut before %q the storage is that of before: %t", cut, later)
	}
	s.storage("restore", file)
	if _, later := c.get().Annotations["example.com/written"]; later || c.get().UID != uid {
		t.Errorf("the storage is not that of the file: %v", c.get().Annotations)
	}
	c.settle(1)
}

// cutStorage runs storage.sh until a call of kubectl.
func (s *scenario) cutStorage(ctx context.Context, cut string, args ...string) (string, error) {
	kubectl := env.KubectlCommand(ctx, harness.Command{})
	dir := s.TempDir()
	s.must(os.WriteFile(filepath.Join(dir, "kubectl"), fmt.Appendf(nil, killsTheScript, kubectl.Path), 0o700), "write a kubectl")
	command := exec.CommandContext(ctx, env.Artifact("ha", "storage.sh"), args...)
	command.Dir = dir
	command.Env = append(slices.Clone(kubectl.Env), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "INSTALLATION=", "CUT="+cut)
	out, err := command.CombinedOutput()
	return string(out), err
}
