// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/storage"
)

// TestMayExceed: the right to exceed the limits of a namespace counts where it is granted by its name. A tool of GitOps that
// has every verb carries out what tenants commit.
func TestMayExceed(t *testing.T) {
	t.Parallel()
	allow := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		named := a.GetUser().GetName() == "controller" && a.GetVerb() == storage.ExceedVerb && a.GetNamespace() == ""
		if named || a.GetUser().GetName() == "gitops" || a.GetUser().GetName() == "admin" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	for name, test := range map[string]struct {
		groups []string
		may    bool
	}{
		"controller": {nil, true},
		"gitops":     {[]string{"system:serviceaccounts"}, false},
		"admin":      {[]string{user.SystemPrivilegedGroup}, true},
		"tenant":     {nil, false},
	} {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: test.groups})
		if got := mayExceed(allow)(ctx, v1beta2.Resource("etcdclusters"), storage.ExceedVerb); got != test.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}
