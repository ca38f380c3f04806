// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/command"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// original is what the original etcd-operator and its user have created, but for owner references.
const original = `apiVersion: apps/v1
kind: Deployment
metadata: {name: etcd-operator, namespace: default}
spec:
  selector: {matchLabels: {name: etcd-operator}}
  template:
    metadata: {labels: {name: etcd-operator}}
    spec: {containers: [{name: etcd-operator, image: "quay.io/coreos/etcd-operator:v0.9.4", command: [etcd-operator]}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: old, namespace: default}
spec: {size: 1, version: 3.3.27}
status: {phase: Running}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: nightly, namespace: default, finalizers: [backup-operator-periodic]}
spec: {etcdEndpoints: ["http://old-client:2379"], storageType: S3, s3: {path: bucket/old, awsSecret: aws}, backupPolicy: {backupIntervalInSecond: 3600}}
`

// dependents are the objects of the EtcdCluster with the UID.
const dependents = `apiVersion: v1
kind: Pod
metadata: {name: old-x, namespace: default, labels: {app: etcd, etcd_cluster: old}, ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: old, uid: %[1]s, controller: true}]}
spec: {automountServiceAccountToken: false, containers: [{name: etcd, image: "quay.io/coreos/etcd:v3.3.27"}]}
---
apiVersion: v1
kind: Service
metadata: {name: old-client, namespace: default, ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: old, uid: %[1]s, controller: true}]}
spec: {selector: {etcd_cluster: old}, ports: [{name: client, port: 2379}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old-x, namespace: default, ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: old, uid: %[1]s, controller: true}]}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// originalKube is a Kubernetes with the original etcd-operator.
type originalKube struct {
	*rest.Config

	t          *testing.T
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	kubeconfig string
}

// startOriginal starts another kube-apiserver, with objects of its own.
func startOriginal(t *testing.T) *originalKube {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	args := append(env.pki.KubeAPIServerArgs(env.dir, port, env.kubeEtcd.endpoint), "--profiling=false", "--etcd-prefix=/original")
	process, err := servers.Start(env.dir, "kube-apiserver-original", filepath.Join(env.bin, "kube-apiserver"), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(syscall.SIGKILL, testPatience); err != nil {
			t.Error(err)
		}
	})
	o := &originalKube{t: t, Config: rest.CopyConfig(env.admin)}
	o.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	if err := process.WaitReady(ctx, o.Host+"/readyz", func(context.Context) ([]byte, error) { return env.pki.Serving.PEM, nil }); err != nil {
		t.Fatalf("%v\n%s", err, process.Tail())
	}
	if o.kubeconfig, err = env.writeKubeconfig("original", o.Config); err != nil {
		t.Fatal(err)
	}
	if o.kube, err = kubernetes.NewForConfig(o.Config); err != nil {
		t.Fatal(err)
	}
	if o.dynamic, err = dynamic.NewForConfig(o.Config); err != nil {
		t.Fatal(err)
	}
	return o
}

// kubectl runs kubectl until it succeeds: definitions are served a moment after they were applied.
func (o *originalKube) kubectl(input string, args ...string) string {
	o.t.Helper()
	var output string
	var last error
	err := wait.PollUntilContextTimeout(o.t.Context(), servers.PollInterval, testPatience, true, func(ctx context.Context) (bool, error) {
		output, last = env.kubectlWith(ctx, []string{"KUBECONFIG=" + o.kubeconfig}, input, args...)
		return last == nil, nil
	})
	if err != nil {
		o.t.Fatal(last)
	}
	return output
}

// install creates what the original etcd-operator has.
func (o *originalKube) install() {
	o.t.Helper()
	for _, names := range [][2]string{{"etcdcluster", "EtcdCluster"}, {"etcdbackup", "EtcdBackup"}, {"etcdrestore", "EtcdRestore"}} {
		o.kubectl(fmt.Sprintf(definition, names[0], names[1]), "apply", "-f", "-")
	}
	o.kubectl(original, "apply", "-f", "-")
	uid := o.kubectl("", "get", "etcdcluster", "old", "-o", "jsonpath={.metadata.uid}")
	o.kubectl(fmt.Sprintf(dependents, uid), "apply", "-f", "-")
	pods := o.kube.CoreV1().Pods("default")
	pod, err := pods.Get(o.t.Context(), "old-x", metav1.GetOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := pods.UpdateStatus(o.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

// exec stands for etcdctl in the pod. A snapshot must be made after the original etcd-operator
// was stopped, and while the objects exist.
func (o *originalKube) exec(ctx context.Context, _ *connect.Clients, pod *corev1.Pod, command []string, _ io.Reader, out, _ io.Writer) error {
	if pod.Name != "old-x" {
		return fmt.Errorf("unexpected pod %s", pod.Name)
	}
	if strings.Contains(command[2], "endpoint status") {
		_, err := io.WriteString(out, `[{"Endpoint":"x","Status":{"header":{"revision":812},"version":"3.3.27"}}]`)
		return err
	}
	d, err := o.kube.AppsV1().Deployments("default").Get(ctx, "etcd-operator", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 0 {
		o.t.Errorf("the snapshot is made while the original etcd-operator runs: %v", err)
	}
	if pod, err = o.kube.CoreV1().Pods("default").Get(ctx, "old-x", metav1.GetOptions{}); err != nil || len(pod.OwnerReferences) != 1 {
		o.t.Errorf("the snapshot is made after the pod was released: %v", err)
	}
	database := bytes.Repeat([]byte("x"), 4096)
	hash := sha256.Sum256(database)
	_, err = out.Write(append(database, hash[:]...))
	return err
}

// TestMigrateOperator replaces the original etcd-operator: its objects are exported, what belongs
// to its cluster stays, and Kubernetes serves nothing of the group any more.
func TestMigrateOperator(t *testing.T) {
	t.Parallel()
	o := startOriginal(t)
	o.install()
	pods := o.kube.CoreV1().Pods("default")
	before, err := pods.Get(t.Context(), "old-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(t.TempDir(), "export")
	run := func(want failure.Code, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		got := command.Run(t.Context(), append([]string{"migrate", "operator", "--dir", directory, "--timeout=1m"}, args...), command.Surroundings{
			In: http.NoBody, Out: &out, Err: &errOut, Size: func() (int, int) { return 0, 0 }, Clock: clock.RealClock{}, Every: 50 * time.Millisecond,
			Connect: func(*connect.Flags) (*connect.Clients, error) { return connect.New(o.Config, "default") },
			Exec:    o.exec,
		})
		text := out.String() + errOut.String()
		if got != want {
			t.Fatalf("exit code %d, want %d:\n%s", got, want, text)
		}
		return text
	}
	said := run(failure.CodeDone)
	for _, want := range []string{"cluster default/old: etcd 3.3.27, revision 812, pods 1", "default/etcd-operator", "pods 1, services 1, persistentvolumeclaims 1", "Nothing was changed"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("the dry run has written files: %v", err)
	}
	said = run(failure.CodeDone, "--yes")
	if want := "kubectl etcd migrate snapshot NEW -n default --endpoints=http://old-client.default.svc:2379 -f " + directory + "/etcdclusters.default.old.yaml"; !strings.Contains(said, want) {
		t.Errorf("%q is missing in\n%s", want, said)
	}

	after, err := pods.Get(t.Context(), "old-x", metav1.GetOptions{})
	if err != nil || after.UID != before.UID || len(after.OwnerReferences) != 0 {
		t.Errorf("the pod was not kept: %v, %+v", err, after.ObjectMeta)
	}
	for _, resource := range []string{"services/old-client", "persistentvolumeclaims/old-x"} {
		if owners := o.kubectl("", "get", resource, "-o", "jsonpath={.metadata.ownerReferences}"); owners != "" {
			t.Errorf("%s has owners %s", resource, owners)
		}
	}
	for _, gone := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{
		{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "etcdclusters.etcd.database.coreos.com"},
		{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "etcdbackups.etcd.database.coreos.com"},
		{schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, apiServiceName},
	} {
		if _, err := o.dynamic.Resource(gone.resource).Get(t.Context(), gone.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", gone.name, err)
		}
	}
	for file, want := range map[string]string{"etcdclusters.default.old.yaml": "version: 3.3.27", "etcdbackups.default.nightly.yaml": "awsSecret: aws"} {
		text, err := os.ReadFile(filepath.Join(directory, file))
		if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "uid") || strings.Contains(string(text), "finalizers") {
			t.Errorf("unexpected export %s: %v\n%s", file, err, text)
		}
	}
	if snapshots, err := filepath.Glob(filepath.Join(directory, "default.old-*.db")); err != nil || len(snapshots) != 1 {
		t.Errorf("got snapshots %v, %v", snapshots, err)
	}
	if said := run(failure.CodeNotMet, "--yes"); !strings.Contains(said, "no CustomResourceDefinition of the group "+v1beta2.SchemeGroupVersion.Group) {
		t.Errorf("a second run says %s", said)
	}
	// This operator takes the exported objects.
	for _, file := range []string{"etcdclusters.default.old.yaml", "etcdbackups.default.nightly.yaml"} {
		if _, err := env.kubectl(t.Context(), "apply", "--dry-run=server", "-f", filepath.Join(directory, file)); err != nil {
			t.Errorf("the exported object is not accepted: %v", err)
		}
	}
}
