// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	etcdv1beta2 "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/typed/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// testPatience is how long anything may take that a test waits for.
const testPatience = 40 * time.Second

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := env.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func clustersIn(namespace string) etcdv1beta2.EtcdClusterInterface {
	return env.etcd.EtcdV1beta2().EtcdClusters(namespace)
}

func newCluster(name string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
	}
}

func create(t *testing.T, namespace string, cluster *v1beta2.EtcdCluster) *v1beta2.EtcdCluster {
	t.Helper()
	created, err := clustersIn(namespace).Create(t.Context(), cluster, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// eventually waits until the condition returns nothing that is missing.
func eventually(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), servers.PollInterval, testPatience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("still after %s: %v\n%s", testPatience, last, env.server.Tail())
	}
}

// grant lets a user do the verbs with the clusters of a namespace.
func grant(t *testing.T, namespace, user string, verbs ...string) {
	t.Helper()
	name := strings.ReplaceAll(user, ":", ".")
	_, err := env.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, Resources: []string{"etcdclusters"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// mustKubectl runs kubectl as the administrator and returns its output.
func mustKubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := env.kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// rejectedKubectl runs kubectl, which must fail, and returns its output.
func rejectedKubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := env.kubectlWith(t.Context(), nil, input, args...)
	if err == nil {
		t.Fatalf("kubectl %v was not rejected: %s", args, output)
	}
	return output
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// cells splits a line of a table into its cells.
func cells(line string) []string { return strings.Fields(line) }

func lines(output string) []string { return strings.Split(strings.TrimSpace(output), "\n") }

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
