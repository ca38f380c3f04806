// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// The columns of userRights. Users bind a role of the operator itself where nothing aggregates it.
const (
	byKubernetes = "view edit admin"
	readers      = byKubernetes + " etcd-operator:view etcd-operator:edit"
	writers      = "edit admin etcd-operator:edit"
	everyRole    = readers + " etcd-operator:recover etcd-operator:restore etcd-operator:snapshot etcd-operator:exceed etcd-operator:exceed-rate"
)

// userRights says which ClusterRoles give which verbs. A role that is not named gives none of them.
var userRights = []struct{ resources, verbs, roles string }{
	{"etcdclusters etcdbackups etcdrestores", "get list watch", readers},
	{"etcdclusters etcdbackups etcdrestores", "create update patch delete deletecollection", writers},
	{"etcdclusters/status etcdbackups/status etcdrestores/status", "get", readers},
	{"etcdclusters/health etcdclusters/members", "get", readers},
	{"etcdclusters/scale", "get", readers},
	{"etcdclusters/scale", "update patch", writers},
	{"etcdclusters/backup etcdclusters/defrag etcdclusters/moveleader etcdclusters/replace etcdclusters/restart", "create", writers},
	{"etcdclusters/restore", "create", writers + " etcd-operator:restore"},
	{"etcdclusters/recover", "create", "admin etcd-operator:recover"},
	{"etcdclusters/proxy", "get create", "etcd-operator:snapshot"},
	{"etcdclusters etcdbackups etcdrestores", "exceed", "etcd-operator:exceed"},
	{"etcdclusters etcdbackups etcdrestores", "exceed-rate", "etcd-operator:exceed-rate"},
}

// requestsOfRoles are requests of the holders of view, edit and admin, with the codes of the responses.
var requestsOfRoles = []struct {
	try
	codes map[string]int
}{
	{try{do: "GET etcdclusters/owned"}, codes(200, 200, 200)},
	{try{do: "GET etcdclusters"}, codes(200, 200, 200)},
	{try{do: "GET etcdclusters/owned/health"}, codes(200, 200, 200)},
	{try{do: "POST etcdclusters", body: `{"metadata":{"name":"new"},"spec":{"size":3,"version":"3.6.16"}}`}, codes(403, 201, 201)},
	{try{do: "DELETE etcdclusters/new"}, codes(403, 200, 200)},
	{try{do: "PATCH etcdclusters/owned/scale", body: `{"spec":{"replicas":5}}`}, codes(403, 200, 200)},
	{try{do: "PATCH etcdclusters/owned/status", body: `{"status":{"phase":"Running"}}`}, codes(403, 403, 403)},
	{try{do: "POST etcdclusters/secured/backup", body: "{}"}, codes(403, 201, 201)},
	{try{do: "POST etcdclusters/owned/restore", body: "{}"}, codes(403, 201, 201)},
	// The quorum of the cluster is not lost, so the server rejects what RBAC allows.
	{try{do: "POST etcdclusters/owned/recover", body: "{}"}, codes(403, 403, 409)},
	{try{do: "GET etcdclusters/owned/proxy/snapshot"}, codes(403, 403, 403)},
}

func codes(view, edit, admin int) map[string]int {
	return map[string]int{"view": view, "edit": edit, "admin": admin}
}

// TestUserRoles binds each role of users, while a kube-controller-manager aggregates view, edit and
// admin. It asks the kube-apiserver about every verb on every resource of the group, and sends requests.
func TestUserRoles(t *testing.T) {
	aggregateRoles(t)
	tenants := map[string]*tenant{}
	for _, role := range strings.Fields(everyRole) {
		w := newTenant(t, newNamespace(t))
		mustKubectl(t, "-n", w.namespace, "create", "rolebinding", "tested", "--clusterrole="+role, "--user="+w.user)
		tenants[role] = w
	}
	for role, w := range tenants {
		// The authorizer learns of a role and its binding a moment later.
		eventually(t, func(context.Context) error { return mayAsListed(t, role, w) })
		if may(t.Context(), t, w.user, about("get", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "default", "")) {
			t.Errorf("holder of %s in namespace %s reads clusters of another namespace", role, w.namespace)
		}
		for _, request := range requestsOfRoles {
			want, ok := request.codes[role]
			if !ok {
				continue
			}
			if code, body := w.send(t, request.try); code != want {
				t.Errorf("%s: %s: status %d, want %d: %s", role, request.do, code, want, body)
			}
		}
	}
}

// mayAsListed compares what the kube-apiserver allows to the holder of a role with userRights.
func mayAsListed(t *testing.T, role string, w *tenant) error {
	t.Helper()
	const every = "get list watch create update patch delete deletecollection release-protected exceed"
	var resources []string
	for _, right := range userRights {
		resources = append(resources, strings.Fields(right.resources)...)
	}
	slices.Sort(resources)
	for _, resource := range slices.Compact(resources) {
		for verb := range strings.FieldsSeq(every) {
			want := gives(role, verb, resource)
			if got := may(t.Context(), t, w.user, about(verb, v1beta2.SchemeGroupVersion.Group, resource, w.namespace, "")); got != want {
				return errorf("%s may %s %s: %t, want %t", role, verb, resource, got, want)
			}
		}
	}
	return nil
}

func gives(role, verb, resource string) bool {
	for _, right := range userRights {
		if slices.Contains(strings.Fields(right.roles), role) && slices.Contains(strings.Fields(right.verbs), verb) &&
			slices.Contains(strings.Fields(right.resources), resource) {
			return true
		}
	}
	return false
}

// aggregateRoles starts a kube-controller-manager that does nothing but aggregate ClusterRoles,
// and returns when view, edit and admin have rules.
func aggregateRoles(t *testing.T) {
	t.Helper()
	manager, err := servers.Start(env.dir, "kube-controller-manager", filepath.Join(env.bin, "kube-controller-manager"),
		"--kubeconfig="+env.kubeconfig, "--controllers=clusterrole-aggregation-controller", "--leader-elect=false", "--secure-port=0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Stop(syscall.SIGKILL, testPatience); err != nil {
			t.Error(err)
		}
	})
	for role := range strings.FieldsSeq(byKubernetes) {
		eventually(t, func(ctx context.Context) error {
			got, err := env.client.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
			if err == nil && len(got.Rules) == 0 {
				err = errorf("ClusterRole %s has no rules: %s", role, manager.Tail())
			}
			return err
		})
	}
}
