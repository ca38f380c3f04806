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

// NewAuthorizer returns an authorizer that allows the requests to the API group that the front
// proxy has proxied, because the kube-apiserver has authorized them. It delegates everything
// else to next.
func NewAuthorizer(apiGroup string, next authorizer.Authorizer) authorizer.Authorizer {
	return &proxyAuthorizer{prefix: "/apis/" + apiGroup + "/", next: next}
}

// Authorize implements authorizer.Authorizer.
func (a *proxyAuthorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.isProxiedRequest(ctx, attributes) {
		return authorizer.DecisionAllow, reason, nil
	}
	return a.next.Authorize(ctx, attributes)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a *proxyAuthorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if a.isProxiedRequest(ctx, attributes) {
		return authorizer.ConditionsAwareDecisionFromParts(authorizer.DecisionAllow, reason, nil)
	}
	return a.next.ConditionsAwareAuthorize(ctx, attributes)
}

// EvaluateConditions implements authorizer.Authorizer. Only decisions of next have conditions.
func (a *proxyAuthorizer) EvaluateConditions(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return a.next.EvaluateConditions(ctx, decision, data)
}

// isProxiedRequest is true only for the attributes that the kube-apiserver has authorized: this
// user, and this method and path. Other attributes within the same request are new, such as
// those of an impersonation, of a patch that creates an object, or of an admission policy.
func (a *proxyAuthorizer) isProxiedRequest(ctx context.Context, attributes authorizer.Attributes) bool {
	marked, ok := attributes.GetUser().(*frontProxyUser)
	if !ok {
		return false
	}
	request, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil || request.GetUser() != marked {
		return false
	}
	return strings.HasPrefix(request.GetPath(), a.prefix) && isSameRequest(request, attributes)
}

func isSameRequest(a, b authorizer.Attributes) bool {
	return a.GetVerb() == b.GetVerb() &&
		a.IsResourceRequest() == b.IsResourceRequest() &&
		a.GetPath() == b.GetPath() &&
		a.GetAPIGroup() == b.GetAPIGroup() &&
		a.GetAPIVersion() == b.GetAPIVersion() &&
		a.GetResource() == b.GetResource() &&
		a.GetSubresource() == b.GetSubresource() &&
		a.GetNamespace() == b.GetNamespace() &&
		a.GetName() == b.GetName() &&
		hasSameSelectors(a, b)
}

// hasSameSelectors compares the selectors of a list. The kube-apiserver ignores a selector that
// cannot be parsed when it authorizes, and so does this function.
func hasSameSelectors(a, b authorizer.Attributes) bool {
	aFields, aFieldErr := a.GetFieldSelector()
	bFields, bFieldErr := b.GetFieldSelector()
	aLabels, aLabelErr := a.GetLabelSelector()
	bLabels, bLabelErr := b.GetLabelSelector()
	return (aFieldErr == nil) == (bFieldErr == nil) &&
		(aLabelErr == nil) == (bLabelErr == nil) &&
		slices.Equal(aFields, bFields) &&
		slices.EqualFunc(aLabels, bLabels, func(x, y labels.Requirement) bool { return x.Equal(y) })
}
