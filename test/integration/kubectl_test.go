// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestKubectlGet(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	created := create(t, namespace, newCluster("a"))
	created.Status = v1beta2.ClusterStatus{
		Phase: v1beta2.ClusterPhaseRunning, Replicas: 3, Leader: "a-x", Tolerance: ptr.To[int32](0),
		CurrentVersion: "3.6.11", TargetVersion: "3.6.16", DBSize: 25 << 20, ServiceName: "a-client", ClientPort: 2379,
		Members:    v1beta2.MembersStatus{Ready: []string{"a-x", "a-y"}, Unready: []string{"a-z"}},
		LastBackup: &v1beta2.LastBackup{Time: metav1.NewTime(time.Now().Add(-15*time.Minute - time.Second))},
		BlockedBy:  &v1beta2.BlockedBy{Reason: "MemberUnhealthy", Message: "waiting"},
	}
	if _, err := clustersIn(namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	table := lines(mustKubectl(t, "get", "etcd", "-n", namespace))
	want := []string{"NAME", "SIZE", "READY", "TOLERANCE", "LEADER", "VERSION", "DB", "LAST-BACKUP", "PHASE", "AGE"}
	if diff := cmp.Diff(want, cells(table[0])); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	row := cells(table[1])
	if diff := cmp.Diff([]string{"a", "3", "2/3", "0", "a-x", "3.6.11→3.6.16", "25Mi", "15m", "Running"}, row[:len(row)-1]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}

	wide := lines(mustKubectl(t, "get", "etcdclusters", "-n", namespace, "-o", "wide"))
	if diff := cmp.Diff(append(want, "SERVICE", "MESSAGE"), cells(wide[0])); diff != "" {
		t.Errorf("wide columns (-want +got):\n%s", diff)
	}
	contains(t, wide[1], "a-client:2379", "waiting")

	contains(t, mustKubectl(t, "get", "etcd", "-A"), "NAMESPACE", namespace)
	if all := mustKubectl(t, "get", "all", "-n", namespace); strings.Contains(all, "etcdcluster") {
		t.Errorf("kubectl get all lists clusters, so kubectl delete all --all deletes databases: %s", all)
	}
	contains(t, mustKubectl(t, "describe", "etcd", "a", "-n", namespace), "3.6.11", "MemberUnhealthy")
}

func TestKubectlScale(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	mustKubectl(t, "scale", "etcd", "a", "-n", namespace, "--replicas=5")
	mustKubectl(t, "scale", "etcd/a", "-n", namespace, "--replicas=7", "--current-replicas=5")
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || *got.Spec.Replicas != 7 || got.Generation != 3 {
		t.Errorf("size %d, generation %d (%v)", *got.Spec.Replicas, got.Generation, err)
	}
	contains(t, rejectedKubectl(t, "", "scale", "etcd/a", "-n", namespace, "--replicas=3", "--current-replicas=5"), "Expected")
	contains(t, rejectedKubectl(t, "", "scale", "etcd/a", "-n", namespace, "--replicas=99"), "is invalid", "spec.size", "99")
	contains(t, rejectedKubectl(t, "", "scale", "etcd/a", "-n", namespace, "--replicas=0"), "is invalid", "spec.size")
	contains(t, mustKubectl(t, "get", "etcd", "a", "-n", namespace, "--subresource=scale", "-o", "jsonpath={.kind} {.spec.replicas}"), "Scale 7")
	contains(t, mustKubectl(t, "get", "etcd", "a", "-n", namespace, "--subresource=scale"), "CREATED AT")

	// The typed client's expansion speaks the same.
	scale, err := clustersIn(namespace).GetScale(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 5
	if scale, err = clustersIn(namespace).UpdateScale(t.Context(), "a", scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 5 {
		t.Errorf("scale %v %v", scale, err)
	}
}

func TestKubectlStrictDecoding(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	manifest := `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: a}
spec: {sise: 3, version: 3.6.16, pod: {lables: {a: b}}}
`
	contains(t, rejectedKubectl(t, manifest, "create", "-n", namespace, "-f", "-"), `unknown field "spec.sise"`, `unknown field "spec.pod.lables"`)
	mistyped := strings.Replace(manifest, "sise: 3, version: 3.6.16, pod: {lables: {a: b}}", "size: three", 1)
	contains(t, rejectedKubectl(t, mistyped, "create", "-n", namespace, "-f", "-"), "spec.size")
	several := strings.Replace(manifest, "version: 3.6.16,", "version: 3.6, etcd: {heartbeatInterval: 1d},", 1)
	for _, arguments := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}} {
		contains(t, rejectedKubectl(t, several, append(arguments, "-n", namespace, "-f", "-")...),
			`did you mean "spec.size"?`, "spec.version: must be a string", "spec.etcd.heartbeatInterval", `did you mean "spec.pod.labels"?`)
	}
}

func TestKubectlExplain(t *testing.T) {
	t.Parallel()
	contains(t, mustKubectl(t, "explain", "etcdcluster.spec.pod"), "PodPolicy", "persistentVolumeClaimSpec", "topologySpreadConstraints")
	contains(t, mustKubectl(t, "explain", "etcdcluster.spec"), "size", "FIELDS")
	contains(t, mustKubectl(t, "explain", "etcdbackup.spec.s3"), "forcePathStyle")
	contains(t, mustKubectl(t, "explain", "etcdrestore.spec.clusterTemplate.spec.etcd"), "quotaBackendBytes")
}

func TestKubectlEdit(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i 's/size: 3/size: 5/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	output, err := env.kubectlWith(t.Context(), []string{"EDITOR=" + editor, "KUBE_EDITOR=" + editor}, "", "edit", "etcd", "a", "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, "edited")
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || *got.Spec.Replicas != 5 {
		t.Errorf("after the edit: %v %v", got, err)
	}
}

func TestKubectlApplyAndDiff(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	manifest := filepath.Join(env.repo, "artifacts", "examples", "cluster.yaml")
	if _, err := os.Stat(manifest); err != nil {
		manifest = filepath.Join(t.TempDir(), "cluster.yaml")
		content := "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {size: 3, version: 3.6.16}\n"
		if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, mustKubectl(t, "apply", "-n", namespace, "-f", manifest), "created")
	contains(t, mustKubectl(t, "apply", "-n", namespace, "-f", manifest), "unchanged")
	contains(t, mustKubectl(t, "apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", manifest), "serverside-applied")
	mustKubectl(t, "diff", "-n", namespace, "-f", manifest)
}

// TestKubectlWatch reads the lines that "get -w" writes while a cluster changes.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	command := exec.CommandContext(t.Context(), filepath.Join(env.bin, "kubectl"), "get", "etcd", "-w", "-n", namespace)
	command.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "HOME="+env.dir)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	timeout := time.AfterFunc(testPatience, func() { _ = command.Process.Kill() })
	defer timeout.Stop()

	output := bufio.NewScanner(pipe)
	next := func(parts ...string) {
		t.Helper()
		if !output.Scan() {
			t.Fatalf("kubectl ended: %v", output.Err())
		}
		contains(t, output.Text(), parts...)
	}
	next("NAME", "SIZE")
	next("a", "3", "<unknown>")
	mustKubectl(t, "scale", "etcd", "a", "-n", namespace, "--replicas=5")
	next("a", "5", "<unknown>")
}
