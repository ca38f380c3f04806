// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package frontproxy

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
)

const reason = "authorized by the kube-apiserver that proxied the request"

type proxyAuthorizer struct {
	prefix string
	next   authorizer.Authorizer
}

// NewAuthorizer returns an authorizer that repeats the kube-apiserver's decision for
// requests that the front proxy brought to a path of the API group, and asks next
// about everything else.
func NewAuthorizer(apiGroup string, next authorizer.Authorizer) authorizer.Authorizer {
	return &proxyAuthorizer{prefix: "/apis/" + apiGroup + "/", next: next}
}

// Authorize implements authorizer.Authorizer.
func (a *proxyAuthorizer) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.decided(ctx, asked) {
		return authorizer.DecisionAllow, reason, nil
	}
	return a.next.Authorize(ctx, asked)
}

// decided is true only for the very question that the kube-apiserver has answered:
// may this user do what this request line says. Others are asked within a request
// and are new: may the user impersonate, create what a patch did not find, or do
// what an admission policy wants to know.
func (a *proxyAuthorizer) decided(ctx context.Context, asked authorizer.Attributes) bool {
	marked, ok := asked.GetUser().(*proxied)
	if !ok {
		return false
	}
	request, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil || request.GetUser() != marked {
		return false
	}
	return strings.HasPrefix(request.GetPath(), a.prefix) && same(request, asked)
}

func same(a, b authorizer.Attributes) bool {
	return a.GetVerb() == b.GetVerb() &&
		a.IsResourceRequest() == b.IsResourceRequest() &&
		a.GetPath() == b.GetPath() &&
		a.GetAPIGroup() == b.GetAPIGroup() &&
		a.GetAPIVersion() == b.GetAPIVersion() &&
		a.GetResource() == b.GetResource() &&
		a.GetSubresource() == b.GetSubresource() &&
		a.GetNamespace() == b.GetNamespace() &&
		a.GetName() == b.GetName() &&
		sameSelectors(a, b)
}

// sameSelectors compares what narrows a list. A selector that cannot be parsed
// narrowed nothing when the kube-apiserver decided, as it does here.
func sameSelectors(a, b authorizer.Attributes) bool {
	aFields, aFieldErr := a.GetFieldSelector()
	bFields, bFieldErr := b.GetFieldSelector()
	aLabels, aLabelErr := a.GetLabelSelector()
	bLabels, bLabelErr := b.GetLabelSelector()
	return (aFieldErr == nil) == (bFieldErr == nil) &&
		(aLabelErr == nil) == (bLabelErr == nil) &&
		slices.Equal(aFields, bFields) &&
		slices.EqualFunc(aLabels, bLabels, func(x, y labels.Requirement) bool { return x.Equal(y) })
}
