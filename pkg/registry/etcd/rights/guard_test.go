// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// allowing returns a guard whose user has the rights, each as Right.String says it.
func allowing(t *testing.T, rights ...string) Guard {
	t.Helper()
	return Guard{Checker{authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked := Right{Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName()}
		if a.GetNamespace() != "ns" || a.GetUser().GetName() != "alice" || !a.IsResourceRequest() || a.GetAPIVersion() == "" {
			t.Errorf("asked about %+v", a)
		}
		if slices.Contains(rights, asked.String()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no rule", nil
	})}}
}

func asAlice(t *testing.T) context.Context {
	t.Helper()
	return request.WithUser(request.WithNamespace(t.Context(), "ns"), &user.DefaultInfo{Name: "alice"})
}

func TestGuard(t *testing.T) {
	t.Parallel()
	moving := s3Backup(func(b *v1beta2.EtcdBackup) { b.Spec.ServiceAccountName = "mover" })
	for _, test := range []struct {
		name   string
		rights []string
		obj    runtime.Object
		says   string
	}{
		{"get of the Secret", []string{`get secrets "aws"`}, s3Backup(), ""},
		{"use of the Secret", []string{`use secrets "aws"`}, s3Backup(), ""},
		{"another Secret", []string{`get secrets "other"`}, s3Backup(), `spec.s3.awsSecret: a pod mounts Secret "aws", which needs the right get secrets "aws" or use secrets "aws" in namespace ns (no rule)`},
		{"use of Secret and ServiceAccount", []string{`use secrets "aws"`, `use serviceaccounts "mover"`}, moving, ""},
		{"impersonation of the ServiceAccount", []string{`use secrets "aws"`, `impersonate serviceaccounts "mover"`}, moving, ""},
		{"a look at the ServiceAccount", []string{`use secrets "aws"`, `get serviceaccounts "mover"`}, moving, "spec.serviceAccountName"},
		{"nothing", nil, moving, "spec.s3.awsSecret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			called := false
			err := allowing(t, test.rights...).Create(v1beta2.Resource("etcdbackups"), func(context.Context, runtime.Object) error {
				called = true
				return nil
			})(asAlice(t), test.obj)
			switch {
			case test.says == "" && (err != nil || !called):
				t.Errorf("refused: %v", err)
			case test.says != "" && (called || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.says)):
				t.Errorf("got %v, want Forbidden with %s", err, test.says)
			}
		})
	}
	if err := allowing(t).Update(v1beta2.Resource("etcdbackups"), nil)(asAlice(t), moving, moving); err != nil {
		t.Errorf("an update that changes nothing: %v", err)
	}
	if err := allowing(t).Update(v1beta2.Resource("etcdbackups"), nil)(asAlice(t), moving, s3Backup()); !apierrors.IsForbidden(err) {
		t.Errorf("an update that names a ServiceAccount: %v", err)
	}
	if err := (Guard{}).Check(t.Context(), v1beta2.Resource("etcdbackups"), moving, nil); err != nil {
		t.Errorf("a server without authorization: %v", err)
	}
}

// TestFailedAuthorizerGrantsNothing: Check rejects a request if the authorizer cannot decide, and
// a request without a user.
func TestFailedAuthorizerGrantsNothing(t *testing.T) {
	t.Parallel()
	failing := Guard{Checker{authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", errors.New("no response")
	})}}
	if err := failing.Check(asAlice(t), v1beta2.Resource("etcdbackups"), s3Backup(), nil); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no response") {
		t.Errorf("got %v", err)
	}
	if err := failing.RequireCreate(asAlice(t), v1beta2.Resource("etcdclusters/backup"), "a", v1beta2.Resource("etcdbackups"), []string{"spec.s3"}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	if err := allowing(t).Check(t.Context(), v1beta2.Resource("etcdbackups"), s3Backup(), nil); !apierrors.IsInternalError(err) {
		t.Errorf("without a user: got %v", err)
	}
}

func TestRequireCreate(t *testing.T) {
	t.Parallel()
	ask := func(guard Guard, given ...string) error {
		return guard.RequireCreate(asAlice(t), v1beta2.Resource("etcdclusters/backup"), "a", v1beta2.Resource("etcdbackups"), given)
	}
	if err := ask(allowing(t)); err != nil {
		t.Errorf("an empty request: %v", err)
	}
	if err := ask(allowing(t, "create etcdbackups (etcd.database.coreos.com)"), "spec.s3"); err != nil {
		t.Errorf("with the right: %v", err)
	}
	err := ask(allowing(t), "spec.s3", "spec.verify")
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want Forbidden", err)
	}
	for _, says := range []string{"spec.s3, spec.verify", "create etcdbackups (etcd.database.coreos.com) in namespace ns", "no rule", "remove the fields"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
}
