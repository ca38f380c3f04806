// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

var clusters = schema.GroupResource{Group: "etcd.database.coreos.com", Resource: "etcdclusters"}

func TestCodeOf(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want failure.Code
	}{
		"no error":           {nil, 0},
		"an error":           {errors.New("x"), 1},
		"usage":              {failure.Usage("x"), 2},
		"not met":            {fmt.Errorf("more: %w", failure.NotMet("x")), 3},
		"forbidden":          {failure.With(apierrors.NewForbidden(clusters, "c", nil), failure.Right{}), 4},
		"unauthorized":       {failure.With(apierrors.NewUnauthorized("x"), failure.Right{}), 4},
		"not found":          {apierrors.NewNotFound(clusters, "c"), 5},
		"timed out":          {failure.TimedOut("x"), 6},
		"interrupted":        {failure.Interrupted("x"), 1},
		"deadline":           {fmt.Errorf("more: %w", context.DeadlineExceeded), 6},
		"conflict":           {apierrors.NewConflict(clusters, "c", errors.New("x")), 1},
		"a program's ending": {&failure.ExitError{Code: 42, Err: errors.New("x")}, 42},
	} {
		if got := failure.CodeOf(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestLimitIsNoMissingRight: an administrator who grants a right because of a limit changes nothing.
func TestLimitIsNoMissingRight(t *testing.T) {
	limit := apierrors.NewForbidden(clusters, "c", errors.New("namespace a has 1000 etcdbackups, which is the limit for one namespace"))
	got := failure.Explain(failure.With(limit, failure.Right{Verb: "create", Resource: "etcdclusters/backup", Namespace: "a"}))
	if strings.Contains(got, "the right to") || !strings.Contains(got, "1000 etcdbackups") {
		t.Errorf("explained as %q", got)
	}
}

func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"a right in a namespace": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "create", Resource: "etcdclusters/recover", Namespace: "prod"}),
			[]string{"the right to create etcdclusters/recover in namespace prod is missing", "ClusterRole etcd-operator:recover gives the right", "the role admin of a namespace",
				"kubectl -n prod create rolebinding etcd-operator-recover --clusterrole=etcd-operator:recover --user=USER"},
		},
		"a right everywhere": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "list", Resource: "etcdclusters"}),
			[]string{"in all namespaces", "kubectl create clusterrolebinding etcd-operator-view --clusterrole=etcd-operator:view --user=USER"},
		},
		"a right that only a role with many more gives": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "create", Resource: "etcdclusters/backup", Namespace: "prod"}),
			[]string{"kubectl -n prod create role create-etcdclusters-backup --verb=create --resource=etcdclusters.etcd.database.coreos.com/backup\n",
				"kubectl -n prod create rolebinding create-etcdclusters-backup --role=create-etcdclusters-backup --user=USER\n",
				"ClusterRole etcd-operator:edit gives the right, and lets its holder change and delete clusters"},
		},
		"the same everywhere": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "create", Resource: "pods/exec"}),
			[]string{"kubectl create clusterrole create-pods-exec --verb=create --resource=pods/exec\n", "kubectl create clusterrolebinding create-pods-exec --clusterrole=create-pods-exec --user=USER"},
		},
		"a restore": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "create", Resource: "etcdclusters/restore", Namespace: "prod"}),
			[]string{"ClusterRole etcd-operator:restore gives the right. An administrator types"},
		},
		"a right that no role gives": {
			failure.With(apierrors.NewForbidden(clusters, "c", errors.New("no")), failure.Right{Verb: "fly", Resource: "moons", Namespace: "x"}), []string{"Ask an administrator"},
		},
		"credentials": {failure.With(apierrors.NewUnauthorized("x"), failure.Right{}), []string{"does not accept the credentials"}},
		"no API server": {
			apierrors.NewGenericServerResponse(503, "GET", clusters, "c", "service unavailable", 0, true), []string{"unable to handle the request", "kubectl etcd check api"},
		},
		"no group": {
			apierrors.NewGenericServerResponse(404, "GET", clusters, "c", "404 page not found", 0, true), []string{"kubectl etcd check api"},
		},
		"interrupted":               {fmt.Errorf("more: %w", context.Canceled), []string{"interrupted"}},
		"interrupted with a reason": {failure.Interrupted("the change continues"), []string{"the change continues"}},
	} {
		for _, want := range c.want {
			if got := failure.Explain(c.err); !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", name, want, got)
			}
		}
	}
	if got := failure.Explain(apierrors.NewNotFound(clusters, "c")); strings.Contains(got, "check api") {
		t.Errorf("an object that does not exist is no missing API: %s", got)
	}
}

// TestRolesGiveTheRights: the ClusterRole that an error names exists, and gives the right.
func TestRolesGiveTheRights(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", "install", "40-user-roles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string][]rbacv1.PolicyRule{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		installed[role.Name] = role.Rules
	}
	for right, role := range failure.Roles() {
		if !strings.HasPrefix(role, "etcd-operator:") {
			continue
		}
		verb, resource, _ := strings.Cut(right, " ")
		if !slices.ContainsFunc(installed[role], func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, verb) && slices.Contains(r.Resources, resource)
		}) {
			t.Errorf("ClusterRole %s does not give the right to %s", role, right)
		}
	}
}

// TestConflictSaysTheCauseOnly: what Kubernetes puts in front of a conflict says nothing.
func TestConflictSaysTheCauseOnly(t *testing.T) {
	err := apierrors.NewConflict(schema.GroupResource{Group: "etcd.database.coreos.com", Resource: "etcdclusters/restore"}, "main", errors.New("recovery r1 is in progress"))
	if got := failure.Explain(fmt.Errorf("send: %w", err)); got != "send: recovery r1 is in progress" {
		t.Errorf("it says %q", got)
	}
}

// TestExplainNoMember: what the API itself says does not mean that it is not available.
func TestExplainNoMember(t *testing.T) {
	t.Parallel()
	if got := failure.Explain(apierrors.NewServiceUnavailable("no member serves")); got != "no member serves" {
		t.Errorf("%q", got)
	}
}
