// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
)

// fewestCanaries is how many canaries a report reads at least. Fewer mean that the test plants
// less than it says.
const fewestCanaries = 60

// numberedCanaries gives each canary in the responses of a server a number, so that one that
// gets into an archive names its place.
type numberedCanaries struct {
	behind http.Handler
	mu     sync.Mutex
	places []string
}

var canaries = regexp.MustCompile(canary)

func (n *numberedCanaries) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorder := httptest.NewRecorder()
	n.behind.ServeHTTP(recorder, r)
	n.mu.Lock()
	defer n.mu.Unlock()
	body, at := recorder.Body.String(), 0
	numbered := canaries.ReplaceAllStringFunc(body, func(string) string {
		at += strings.Index(body[at:], canary) + len(canary)
		n.places = append(n.places, fmt.Sprintf("%s: ...%s...", r.URL.Path, body[max(0, at-60):min(len(body), at+10)]))
		return fmt.Sprintf("%s%dx", canary, len(n.places)-1)
	})
	w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
	w.WriteHeader(recorder.Code)
	_, _ = w.Write([]byte(numbered)) // the client may have closed the connection
}

// TestReportHoldsNoSecretInAnyState plants a canary wherever a secret may be, also in the
// kubeconfig. It looks for it in the archive and on the screen, in five states of a cluster.
func TestReportHoldsNoSecretInAnyState(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			plantScene(server, s)
			numbered := &numberedCanaries{behind: server.Config.Handler}
			front := httptest.NewServer(numbered)
			t.Cleanup(front.Close)
			folder := t.TempDir()
			file := filepath.Join(folder, "main.tar.gz")
			p := newTerminal(t, server, false)
			p.Connect = func(flags *connect.Flags) (*connect.Clients, error) { return flags.Connect() }
			p.expect(p.run("report", "main", "-f", file, "-n", plugintest.Namespace, "--kubeconfig", plantedKubeconfig(t, folder, front.URL)), failure.CodeDone)
			files := readArchive(t, file)
			files["the screen"] = p.out.String() + p.err.String()
			for _, part := range []string{"cluster.yaml", "health.yaml", "members.yaml", "backups.yaml", "restores.yaml", "pods.yaml", "logs/main-f9x4/etcd.log", "manifest.yaml"} {
				if files[part] == "" {
					t.Errorf("%s is missing", part)
				}
			}
			for part, content := range files {
				for _, found := range regexp.MustCompile(canary+`\w*`).FindAllString(content, -1) {
					number, place := 0, "the kubeconfig"
					if _, err := fmt.Sscanf(found, canary+"%dx", &number); err == nil {
						place = numbered.places[number]
					}
					t.Errorf("%s holds the canary %s of %s", part, found, place)
				}
			}
			if len(numbered.places) < fewestCanaries {
				t.Errorf("the report read %d canaries, want %d or more", len(numbered.places), fewestCanaries)
			}
		})
	}
}

// plantScene serves a scene with a canary wherever a secret may be.
func plantScene(server *plugintest.Server, s *scene) {
	cluster := s.desired()
	cluster.Spec.Version = s.target
	s.reconcile(cluster)
	probe := s.probe(cluster)
	probe.Problems = []string{"the PVCs could not be read: Authorization: Bearer " + canary}
	for i := range probe.Responses {
		probe.Responses[i].Health.Errors = []string{"put key:\"" + canary + "\" value:\"" + canary + "\" failed"}
	}
	plantState(server, &plugintest.State{Cluster: cluster, Health: health.Diagnose(probe), Events: corev1.EventList{Items: s.events}})
	server.Put(clusterPath+"/members", health.DescribeMembers(probe))
	job := &v1beta2.JobPolicy{Env: []corev1.EnvVar{{Name: "AWS_SECRET_ACCESS_KEY", Value: canary}}}
	backup := v1beta2.EtcdBackup{
		ObjectMeta: planted("nightly", nil),
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "main"}, Job: job, EtcdEndpoints: []string{"https://root:" + canary + "@etcd.example.com:2379"},
			BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "backups/main", AWSSecret: "aws", Endpoint: "https://user:" + canary + "@s3.example.com"}},
		},
		Status: v1beta2.BackupStatus{Reason: "upload: PUT https://s3.example.com/x?X-Amz-Credential=" + canary + "&X-Amz-Signature=" + canary + ": access denied"},
	}
	backup.UID = "b1"
	server.Put(plugintest.Path("etcdbackups"), &v1beta2.EtcdBackupList{Items: []v1beta2.EtcdBackup{backup}})
	server.Put(plugintest.Path("etcdrestores"), &v1beta2.EtcdRestoreList{Items: []v1beta2.EtcdRestore{{
		ObjectMeta: planted("main-20260304", nil), Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "main"}, Job: job},
		Status: v1beta2.RestoreStatus{Reason: "download: password=" + canary},
	}}})
}

// plantedKubeconfig writes a kubeconfig whose credentials are canaries.
func plantedKubeconfig(t *testing.T, folder, server string) string {
	t.Helper()
	file := filepath.Join(folder, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: %sOfTheKubeconfig}}]
`, server, canary)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
