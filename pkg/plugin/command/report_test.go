// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

const (
	// canary is planted wherever a secret may be. No file of an archive may hold it.
	canary       = "Hunter2Canary"
	operatorPath = "/api/v1/namespaces/tools/pods"
)

// planted returns metadata whose annotations hold the canary.
func planted(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "prod", Labels: labels, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"a":"` + canary + `"}}`,
			"example.com/note": canary, "etcd.database.coreos.com/restarted-at": "token=" + canary,
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: canary}},
	}
}

// plantedPod returns a pod with the canary in its environment, its arguments and its messages.
func plantedPod(name, container string, labels map[string]string) corev1.Pod {
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Message: `{"msg":"slow","request":"key:\"` + canary + `\""}` + "\n-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----"}
	return corev1.Pod{
		ObjectMeta: planted(name, labels),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: container, Args: []string{"--password", canary, "--endpoint=https://user:" + canary + "@x"},
			Env: []corev1.EnvVar{{Name: "AWS_SECRET", Value: canary}, {Name: "PLAIN", Value: canary}},
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: ended},
		}}},
	}
}

// plantedLog is a log with the canary in tokens, passwords, keys of etcd and PEM blocks.
var plantedLog = "2026-03-04T12:00:00Z " + strings.Join([]string{
	`{"level":"info","msg":"serving client traffic","address":"[::]:2379"}`,
	`{"level":"warn","msg":"apply request took too long","took":"2s","request":"key:\"/registry/` + canary + `\"","response":"value:\"` + canary + `\""}`,
	`{"level":"info","msg":"trace[1] put","detail":"{key:` + canary + `; req_size:1; }"}`,
	`Authorization: Bearer ` + canary,
	`Authorization: Basic ` + canary,
	`PUT https://store.example.com/x?sv=2024&sig=` + canary + `: denied`,
	`{"level":"warn","msg":"failed to delete","keys":["` + canary + `"]}`,
	`password=` + canary + ` token: "` + canary + `"`,
	`-----BEGIN RSA PRIVATE KEY-----`,
	canary,
	`-----END RSA PRIVATE KEY-----`,
	`the last line`,
}, "\n2026-03-04T12:00:00Z ")

// plant serves a degraded cluster with everything that a report reads.
func plant(server *plugintest.Server) { plantState(server, plugintest.Degraded()) }

// plantState serves a cluster in a state with everything that a report reads.
func plantState(server *plugintest.Server, state *plugintest.State) {
	meta := planted("main", nil)
	state.Cluster.Annotations, state.Cluster.ManagedFields = meta.Annotations, meta.ManagedFields
	state.Cluster.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_X", Value: canary}}}
	for i := range state.Health.Members {
		if pod := state.Health.Members[i].Pod; pod != nil {
			pod.Message = "password: " + canary
		}
	}
	for i := range state.Events.Items {
		state.Events.Items[i].Message = "pull https://user:" + canary + "@registry failed"
		state.Events.Items[i].ManagedFields = meta.ManagedFields
	}
	server.PutState(state)
	server.Put(clusterPath+"/members", &v1beta2.EtcdClusterMembers{})
	of := v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "main"}, Job: &v1beta2.JobPolicy{Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: canary}}}}
	backup := v1beta2.EtcdBackup{ObjectMeta: planted("nightly", nil), Spec: of}
	backup.UID = "b1"
	other := v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "of-another-cluster"}, Spec: v1beta2.BackupSpec{EtcdCluster: &v1beta2.EtcdClusterRef{Name: "x"}}}
	server.Put(plugintest.Path("etcdbackups"), &v1beta2.EtcdBackupList{Items: []v1beta2.EtcdBackup{backup, other}})
	server.Put(plugintest.Path("etcdrestores"), &v1beta2.EtcdRestoreList{})
	labels := map[string]string{"etcd_cluster": "main"}
	core := "/api/v1/namespaces/prod/"
	server.Put(core+"pods", &corev1.PodList{Items: []corev1.Pod{
		plantedPod("main-f9x4", "etcd", labels), plantedPod("nightly-job", "agent", map[string]string{"etcd_backup_uid": "b1"}), plantedPod("of-another-program", "x", nil),
	}})
	server.Put(core+"persistentvolumeclaims", &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{{ObjectMeta: planted("main-f9x4", labels)}}})
	server.Put(core+"services", &corev1.ServiceList{Items: []corev1.Service{{ObjectMeta: planted("main-client", labels)}}})
	server.Put("/apis/policy/v1/namespaces/prod/poddisruptionbudgets", &policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{{ObjectMeta: planted("main", labels)}}})
	server.Put("/version", map[string]string{"gitVersion": "v1.36.3"})
	server.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", map[string]any{
		"metadata": planted("v1beta2.etcd.database.coreos.com", nil), "spec": map[string]any{"service": map[string]any{"namespace": "tools"}},
	})
	server.Put("/apis/apps/v1/namespaces/tools/deployments", &appsv1.DeploymentList{Items: []appsv1.Deployment{{
		ObjectMeta: planted("etcd-operator-controller", nil), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: plantedPod("x", "controller", nil).Spec}},
	}}})
	controller := plantedPod("controller-1", "controller", nil)
	controller.Namespace = "tools"
	server.Put(operatorPath, &corev1.PodList{Items: []corev1.Pod{controller}})
	for _, path := range []string{core + "pods/main-f9x4/log", core + "pods/nightly-job/log", operatorPath + "/controller-1/log"} {
		server.Put(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); q.Get("limitBytes") == "" || q.Get("tailLines") == "" {
				_, _ = fmt.Fprint(w, "the log has no bounds: "+canary) // the test fails by the canary
			}
			_, _ = fmt.Fprint(w, plantedLog) // the client may have closed the connection
		}))
	}
	server.Put(core+"secrets", &corev1.SecretList{Items: []corev1.Secret{{ObjectMeta: planted("main-ca-tls", labels), Data: map[string][]byte{"ca.key": []byte(canary)}}}})
}

// readArchive returns the files of an archive, without the name of its folder.
func readArchive(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, short, _ := strings.Cut(header.Name, "/")
		files[short] = string(content)
	}
}

// TestReportHoldsNoSecret plants a canary in each place that may hold a secret, and looks for
// it in every file of the archive.
func TestReportHoldsNoSecret(t *testing.T) {
	server := plugintest.New(t)
	plant(server)
	file := filepath.Join(t.TempDir(), "main.tar.gz")
	p := newTerminal(t, server, false)
	p.expect(p.run("report", "main", "-f", file), failure.CodeDone, "Wrote "+file, "read the archive before you give it to others")
	files := readArchive(t, file)
	for name, content := range files {
		if strings.Contains(content, canary) {
			t.Errorf("%s holds the canary:\n%s", name, content)
		}
	}
	for name, want := range map[string]string{
		"manifest.yaml": "kubernetes: v1.36.3", "cluster.yaml": "version: 3.6.16", "health.yaml": "verdict: Degraded", "members.yaml": "{}",
		"backups.yaml": "name: nightly", "restores.yaml": "kind: List", "pods.yaml": "kind: Pod", "pvcs.yaml": "kind: PersistentVolumeClaim",
		"services.yaml": "name: main-client", "pdbs.yaml": "apiVersion: policy/v1", "events.yaml": "reason: BackOff",
		"operator/apiservice.yaml": "namespace: tools", "operator/deployments.yaml": "name: AWS_SECRET", "operator/pods.yaml": "value: REDACTED",
		"logs/main-f9x4/etcd.log": `"msg":"serving client traffic"`, "logs/main-f9x4/etcd.previous.log": `"took":"2s","request":"REDACTED"`,
		"logs/nightly-job/agent.log": "the last line", "operator/logs/controller-1/controller.log": "the last line",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not hold %q:\n%s", name, want, files[name])
		}
	}
	for name, content := range files {
		if strings.Contains(content, "of-another-") {
			t.Errorf("%s holds objects of others:\n%s", name, content)
		}
	}
	if strings.Contains(files["manifest.yaml"], "missing:") {
		t.Errorf("something is missing:\n%s", files["manifest.yaml"])
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: others may read the archive: %v", err, info.Mode())
	}
	p = newTerminal(t, server, false)
	p.expect(p.run("report", "main", "-f", file), failure.CodeFailed, "the file exists: "+file)
}

// TestReportWithFewRights: what the user may not read, or does not respond, is in the list of
// what is missing.
func TestReportWithFewRights(t *testing.T) {
	server := plugintest.New(t)
	plant(server)
	server.Put(clusterPath+"/health", plugintest.Forbidden("etcdclusters/health", "main"))
	server.Put(plugintest.Path("etcdbackups"), plugintest.Forbidden("etcdbackups", ""))
	server.Put("/api/v1/namespaces/prod/pods/main-f9x4/log", apierrors.NewInternalError(errors.New("the kubelet does not respond, password="+canary)))
	server.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", plugintest.Forbidden("apiservices", ""))
	file := filepath.Join(t.TempDir(), "main.tar.gz")
	p := newTerminal(t, server, false)
	p.expect(p.run("report", "main", "-f", file), failure.CodeDone,
		"missing: health of the members: the right to get etcdclusters/health in namespace prod is missing",
		"missing: log of main-f9x4/etcd: ", "missing: APIService: ", "missing: pods of the operator: ")
	manifest := readArchive(t, file)["manifest.yaml"]
	for _, want := range []string{"part: health of the members", "part: EtcdBackups", "part: log of main-f9x4/etcd before its last restart", "ClusterRole etcd-operator:view gives the right"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the manifest does not hold %q:\n%s", want, manifest)
		}
	}
	if strings.Contains(manifest, canary) {
		t.Errorf("the manifest holds the canary:\n%s", manifest)
	}
}

// TestReportOfNothing: a wrong name, and a Kubernetes that does not respond, leave no file.
func TestReportOfNothing(t *testing.T) {
	for name, code := range map[string]failure.Code{"a wrong name": failure.CodeNotFound, "no Kubernetes": failure.CodeFailed} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			if code == failure.CodeFailed {
				server.Close()
			}
			folder := t.TempDir()
			p := newTerminal(t, server, false)
			p.expect(p.run("report", "main", "-f", filepath.Join(folder, "main.tar.gz")), code, "error: ")
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("%v: %v is left", err, left)
			}
		})
	}
}
