// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Right is the right to a verb on a resource in the namespace of a request.
type Right struct {
	Verb, Group, Resource, Subresource string
	// Everywhere is true for the right in all namespaces, which no role in a namespace gives, whatever its verbs.
	Everywhere bool
	// Name of the object; empty for a right that does not depend on it.
	Name string
}

// String returns the right in the words of RBAC.
func (r Right) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += " (" + r.Group + ")"
	}
	if r.Name != "" {
		resource += fmt.Sprintf(" %q", r.Name)
	}
	return r.Verb + " " + resource
}

// errNoUser means that the server has not authenticated the request. A server with an authorizer
// authenticates every request.
var errNoUser = errors.New("the request has no user")

// Checker checks rights that the user of a request needs in addition to the right to the request.
// The zero value allows everything, for a server that does not authorize requests.
type Checker struct {
	Authorizer authorizer.Authorizer
}

// Has reports whether the user of the request has one of the rights. If not, reason is that of the
// authorizer for the last right. An authorizer that fails grants no right.
func (c Checker) Has(ctx context.Context, anyOf ...Right) (has bool, reason string, err error) {
	if c.Authorizer == nil {
		return true, "", nil
	}
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false, "", apierrors.NewInternalError(errNoUser)
	}
	var failed error
	for _, right := range anyOf {
		namespace := request.NamespaceValue(ctx)
		if right.Everywhere {
			namespace = ""
		}
		decision, why, err := c.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: user, Verb: right.Verb, Namespace: namespace, Name: right.Name, ResourceRequest: true,
			APIGroup: right.Group, APIVersion: versionOf(right.Group), Resource: right.Resource, Subresource: right.Subresource,
		})
		if decision == authorizer.DecisionAllow {
			return true, "", nil
		}
		reason = cmp.Or(why, reason)
		if err != nil {
			failed = fmt.Errorf("check whether the user may %s: %w", right, err)
		}
	}
	if failed != nil {
		return false, "", apierrors.NewInternalError(failed)
	}
	return false, reason, nil
}

func versionOf(group string) string {
	if group == v1beta2.SchemeGroupVersion.Group {
		return v1beta2.SchemeGroupVersion.Version
	}
	return "v1"
}
