// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// snapshotKeys are written, with this many bytes each.
	snapshotKeys  = 200
	snapshotValue = 5000
	// requestTimeout is how long both servers let an ordinary request take.
	requestTimeout = time.Minute
)

// source is a cluster whose only member is a real etcd, behind a link to the address of
// a pod that no kubelet runs.
type source struct {
	namespace string
	link      *etcdtest.Link
	// size of the database in bytes; revision of the last key.
	size, revision int64
}

func newSource(t *testing.T) *source {
	t.Helper()
	etcd := etcdtest.New(t)
	s := &source{namespace: newNamespace(t)}
	url := etcd.Member("m0").ClientURL
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range snapshotKeys {
		put, err := client.Put(t.Context(), fmt.Sprintf("key-%03d", i), strings.Repeat("v", snapshotValue))
		if err != nil {
			t.Fatal(err)
		}
		s.revision = put.Header.Revision
	}
	// The size that a member tells of its database comes later than the keys.
	body, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if s.size, err = io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	s.link = etcdtest.NewLink(t, strings.TrimPrefix(url, "http://"), resources.ClientPort)
	s.run(t, create(t, s.namespace, newCluster("a")))
	return s
}

// run makes the pod of the member, as if it ran.
func (s *source) run(t *testing.T, cluster *v1beta2.EtcdCluster) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := env.client.CoreV1().ServiceAccounts(s.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := env.client.CoreV1().Pods(s.namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a-x", Labels: resources.Labels("a"), OwnerReferences: []metav1.OwnerReference{resources.Owner(cluster)}},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, s.link.IP, []corev1.PodIP{{IP: s.link.IP}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// get is what a user types: kubectl get --raw … > file.
func (s *source) get(t *testing.T, args ...string) (file string, said string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "snapshot.db")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(env.bin, "kubectl"), append([]string{"get", "--raw", raw(s.namespace, "a", "proxy/snapshot")}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "HOME="+env.dir)
	var stderr bytes.Buffer
	command.Stdout, command.Stderr = out, &stderr
	err = command.Run()
	return file, stderr.String(), err
}

// mustBeWhole lets etcd's own tool look at the file.
func (s *source) mustBeWhole(t *testing.T, file string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), storetest.Program(t, "etcdutl"), "snapshot", "status", file, "-w", "json").CombinedOutput()
	if err != nil {
		t.Fatalf("etcdutl: %v: %s", err, out)
	}
	var status struct {
		Revision  int64 `json:"revision"`
		TotalKey  int64 `json:"totalKey"`
		TotalSize int64 `json:"totalSize"`
	}
	if err := json.Unmarshal(out, &status); err != nil || status.Revision != s.revision || status.TotalKey != snapshotKeys {
		t.Errorf("%s (%v), want revision %d and %d keys", out, err, s.revision, snapshotKeys)
	}
}

// TestSnapshotThatTakesLongerThanAnyRequest is sent more slowly than both servers let an
// ordinary request take, and arrives whole.
func TestSnapshotThatTakesLongerThanAnyRequest(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.link.Limit(s.size / int64((requestTimeout + 8*time.Second).Seconds()))
	begun := time.Now()
	file, said, err := s.get(t)
	if took := time.Since(begun); took <= requestTimeout+time.Second {
		t.Errorf("it took only %s: nothing was tested", took)
	} else {
		t.Logf("%d bytes took %s", s.size, took.Round(time.Millisecond))
	}
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, said, env.server.Tail())
	}
	s.mustBeWhole(t, file)
}

// TestSnapshotWhoseSourceDies checks that the client notices that the snapshot is incomplete.
func TestSnapshotWhoseSourceDies(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	if file, said, err := s.get(t); err != nil {
		t.Fatalf("before: %v: %s", err, said)
	} else {
		s.mustBeWhole(t, file)
	}
	s.link.Limit(s.size / 2) // so that the first half has left when the second does not come
	s.link.CutAfter(s.size / 2)
	file, said, err := s.get(t)
	got, statErr := os.Stat(file)
	if statErr != nil {
		t.Fatal(statErr)
	}
	if err == nil || said == "" || got.Size() == 0 || got.Size() >= s.size {
		t.Errorf("kubectl left %d of %d bytes and said %q: %v", got.Size(), s.size, said, err)
	}
	t.Logf("kubectl left %d of %d bytes and said: %s", got.Size(), s.size, strings.TrimSpace(said))

	// A stream that is cut before the first byte ends with an error in words.
	s.link.CutAfter(1)
	if _, said, err := s.get(t); err == nil || !strings.Contains(said, "snapshot") {
		t.Errorf("%v: %s", err, said)
	}
}

// TestSnapshotNeedsTwoVerbs: the right to get what is below proxy is not enough.
func TestSnapshotNeedsTwoVerbs(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	for user, verbs := range map[string][]string{"looks": {"get"}, "makes": {"create"}, "may": {"get", "create"}} {
		user += "-" + s.namespace
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, Resources: []string{"etcdclusters/proxy"}, Verbs: verbs}},
		}
		if _, err := env.client.RbacV1().Roles(s.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustKubectl(t, "-n", s.namespace, "create", "rolebinding", user, "--role="+user, "--user="+user)
	}
	file, said, err := s.get(t, "--as=may-"+s.namespace)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	s.mustBeWhole(t, file)
	if _, said, err := s.get(t, "--as=looks-"+s.namespace); err == nil || !strings.Contains(said, "verb create on etcdclusters/proxy") {
		t.Errorf("with get alone: %v: %s", err, said)
	}
	if _, said, err := s.get(t, "--as=makes-"+s.namespace); err == nil || !strings.Contains(said, "orbidden") {
		t.Errorf("with create alone: %v: %s", err, said)
	}
	// The aggregated roles of a namespace do not hold it.
	for _, role := range []string{"view", "edit", "admin"} {
		mustKubectl(t, "-n", s.namespace, "create", "rolebinding", role, "--clusterrole=etcd-operator:"+strings.Replace(role, "admin", "recover", 1), "--user="+role+"-"+s.namespace)
		if _, said, err := s.get(t, "--as="+role+"-"+s.namespace); err == nil || !strings.Contains(said, "orbidden") {
			t.Errorf("role %s: %v: %s", role, err, said)
		}
	}
}
