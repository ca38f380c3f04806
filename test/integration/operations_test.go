// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// raw is the path of a subresource of a cluster.
func raw(namespace, cluster, subresource string) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/etcdclusters/%s/%s", v1beta2.SchemeGroupVersion, namespace, cluster, subresource)
}

// post sends a body as a user does.
func post(t *testing.T, body, path string) (string, error) {
	t.Helper()
	return env.kubectlWith(t.Context(), nil, body, "create", "--raw", path, "-f", "-")
}

func TestHealthOfAClusterThatHasNotStarted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	var health v1beta2.EtcdClusterHealth
	if err := json.Unmarshal([]byte(mustKubectl(t, "get", "--raw", raw(namespace, "a", "health"))), &health); err != nil {
		t.Fatal(err)
	}
	if health.Kind != "EtcdClusterHealth" || health.APIVersion != "etcd.database.coreos.com/v1beta2" || health.Name != "a" ||
		health.Verdict != v1beta2.VerdictCreating || health.DesiredSize != 3 || len(health.Problems) > 0 {
		t.Errorf("unexpected %+v", health)
	}
	// The typed client speaks protobuf.
	typed, err := clustersIn(namespace).GetHealth(t.Context(), "a", metav1.GetOptions{})
	if err != nil || typed.Verdict != v1beta2.VerdictCreating || typed.Name != "a" {
		t.Errorf("unexpected %+v %v", typed, err)
	}
	members, err := clustersIn(namespace).GetMembers(t.Context(), "a", metav1.GetOptions{})
	if err != nil || members.Confirmed || len(members.Members) != 0 {
		t.Errorf("unexpected %+v %v", members, err)
	}
	contains(t, rejectedKubectl(t, "", "get", "--raw", raw(namespace, "nosuch", "health")), "not found")
	contains(t, mustKubectl(t, "explain", "etcdcluster.status.operation"), "ClusterOperation", "results")
}

func TestOperationIsAskedFor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	created := create(t, namespace, newCluster("a"))
	created.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "a-x"}, {Name: "a-y"}}
	created, err := clustersIn(namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := raw(namespace, "a", "defrag")
	for body, says := range map[string]string{
		`{"spec":{"members":["a-q"]}}`:                                          "spec.members[0]",
		`{"spec":{"members":["a-x","a-x"]}}`:                                    "Duplicate",
		`{"metadata":{"uid":"other"}}`:                                          "UID",
		`{"metadata":{"resourceVersion":"1"}}`:                                  "resource version",
		`{"metadata":{"name":"b"}}`:                                             "metadata.name",
		`{"kind":"EtcdBackup","apiVersion":"etcd.database.coreos.com/v1beta2"}`: "EtcdBackup",
	} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s, want %s", body, err, output, says)
		}
	}

	// A dry run leaves nothing behind.
	output, err := post(t, "{}", path+"?dryRun=All")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, `"phase":"Pending"`, `"type":"Defrag"`)
	if got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Status.Operation != nil {
		t.Fatalf("after a dry run: %+v %v", got.Status.Operation, err)
	}

	body := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"members":["a-y"]}}`, created.UID)
	if output, err = post(t, body, path); err != nil {
		t.Fatal(err)
	}
	var operation v1beta2.EtcdClusterOperation
	if err := json.Unmarshal([]byte(output), &operation); err != nil {
		t.Fatal(err)
	}
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := got.Status.Operation
	if stored == nil || stored.ID == "" || stored.ID != operation.Status.ID || stored.RequestedBy == "" || stored.Members[0] != "a-y" ||
		got.Generation != created.Generation || len(got.Status.MemberStatuses) != 2 {
		t.Errorf("stored %+v, answered %+v", stored, operation.Status)
	}
	if output, err := post(t, "{}", path); err == nil || !strings.Contains(output, stored.ID) {
		t.Errorf("a second one while one is pending: %v %s", err, output)
	}

	got.Status.Operation.Phase = v1beta2.OperationFailed
	if _, err := clustersIn(namespace).UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := clustersIn(namespace).Defrag(t.Context(), "a", &v1beta2.EtcdClusterOperation{}, metav1.CreateOptions{})
	if err != nil || again.Status.ID == stored.ID || again.Status.Phase != v1beta2.OperationPending {
		t.Errorf("after the first was over: %+v %v", again, err)
	}
}

func TestRestartIsAskedFor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	created := create(t, namespace, newCluster("a"))
	path := raw(namespace, "a", "restart")
	for body, says := range map[string]string{
		`{"spec":{"members":["a-x"]}}`:                                          "spec.members",
		`{"metadata":{"uid":"other"}}`:                                          "UID",
		`{"metadata":{"name":"b"}}`:                                             "metadata.name",
		`{"kind":"EtcdBackup","apiVersion":"etcd.database.coreos.com/v1beta2"}`: "EtcdBackup",
	} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s, want %s", body, err, output, says)
		}
	}
	output, err := post(t, "{}", path+"?dryRun=All")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, `"phase":"Pending"`, `"type":"Restart"`)
	if got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.ResourceVersion != created.ResourceVersion {
		t.Fatalf("after a dry run: %+v %v", got, err)
	}
	asked, err := clustersIn(namespace).Restart(t.Context(), "a", &v1beta2.EtcdClusterOperation{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	op := got.Status.Operation
	if op == nil || op.ID != asked.Status.ID || op.RequestedBy == "" || got.Annotations["etcd.database.coreos.com/restarted-at"] != op.ID ||
		got.Generation != created.Generation {
		t.Errorf("stored %+v with %v, answered %+v", op, got.Annotations, asked.Status)
	}
	output, err = post(t, "{}", path)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, op.ID)
	contains(t, rejectedKubectl(t, "{}", "create", "--raw", raw(namespace, "a", "defrag"), "-f", "-"), op.ID)
	contains(t, mustKubectl(t, "get", "--raw", "/apis/"+v1beta2.SchemeGroupVersion.String()), `"etcdclusters/restart"`)
}

// Each operation has a verb of its own; the right to edit clusters is not enough.
func TestOperationsHaveRightsOfTheirOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	grant(t, namespace, "editor-"+namespace, "get", "list", "update", "patch", "create", "delete")
	for _, args := range [][]string{
		{"get", "--raw", raw(namespace, "a", "health")},
		{"get", "--raw", raw(namespace, "a", "members")},
		{"create", "--raw", raw(namespace, "a", "defrag"), "-f", "-"},
		{"create", "--raw", raw(namespace, "a", "moveleader"), "-f", "-"},
		{"create", "--raw", raw(namespace, "a", "restart"), "-f", "-"},
		{"create", "--raw", raw(namespace, "a", "replace"), "-f", "-"},
		{"create", "--raw", raw(namespace, "a", "restore"), "-f", "-"},
	} {
		contains(t, rejectedKubectl(t, "{}", append(args, "--as=editor-"+namespace)...), "forbidden")
	}
	for _, test := range []struct{ role, verb, resource, want string }{
		{"view", "get", "etcdclusters/health", "yes"},
		{"view", "get", "etcdclusters/members", "yes"},
		{"view", "create", "etcdclusters/defrag", "no"},
		{"edit", "create", "etcdclusters/defrag", "yes"},
		{"edit", "create", "etcdclusters/moveleader", "yes"},
		{"view", "create", "etcdclusters/restart", "no"},
		{"edit", "create", "etcdclusters/restart", "yes"},
		{"view", "create", "etcdclusters/replace", "no"},
		{"edit", "create", "etcdclusters/replace", "yes"},
		{"view", "create", "etcdclusters/restore", "no"},
		{"edit", "create", "etcdclusters/restore", "yes"},
		{"restore", "create", "etcdclusters/restore", "yes"},
		{"restore", "create", "etcdclusters/backup", "no"},
	} {
		user := test.role + "-" + namespace
		mustKubectl(t, "-n", namespace, "create", "rolebinding", fmt.Sprintf("%s-%s-%s", test.role, test.verb, test.resource[13:]), "--clusterrole=etcd-operator:"+test.role, "--user="+user)
		resource, subresource, _ := strings.Cut(test.resource, "/")
		output, _ := env.kubectl(t.Context(), "-n", namespace, "auth", "can-i", test.verb, resource+"."+v1beta2.SchemeGroupVersion.Group, "--subresource="+subresource, "--as="+user)
		if strings.TrimSpace(strings.TrimPrefix(output, "kubectl")) != test.want && !strings.Contains(output, test.want) {
			t.Errorf("%s may %s %s: %s, want %s", test.role, test.verb, test.resource, output, test.want)
		}
	}
}

func TestMoveLeaderOfAClusterThatDoesNotServe(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	output, err := post(t, "{}", raw(namespace, "a", "moveleader"))
	if err == nil || !strings.Contains(output, "has not served yet") {
		t.Errorf("unexpected %v %s", err, output)
	}
}

// TestRecoveryIsAskedFor checks that a recovery needs the right cluster and the right user.
func TestRecoveryIsAskedFor(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	created := create(t, namespace, newCluster("a"))
	created.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue}}
	created.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "a-x", RaftIndex: 9, Pod: "a-x"}, {Name: "a-y"}, {Name: "a-z"}}
	created, err := clustersIn(namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := raw(namespace, "a", "recover")
	for body, says := range map[string]string{
		`{"metadata":{"uid":"other"}}`:         "UID changed from other",
		`{"metadata":{"resourceVersion":"1"}}`: "resource version",
		`{"metadata":{"name":"b"}}`:            "metadata.name",
		`{"spec":{"clusterUID":"other"}}`:      "spec.clusterUID",
		`{"spec":{"member":"a-y"}}`:            "spec.member",
		`{"spec":{"membre":"a-x"}}`:            `unknown field "spec.membre"`,
	} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s, want %s", body, err, output, says)
		}
	}
	output, err := post(t, fmt.Sprintf(`{"metadata":{"uid":%q}}`, created.UID), path+"?dryRun=All")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, output, "a-x", `"phase":"Pending"`)
	got, err := clustersIn(namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.Status.Recovery != nil || got.ResourceVersion != created.ResourceVersion {
		t.Errorf("after rejected requests and a dry run: %+v %v", got.Status.Recovery, err)
	}
}
