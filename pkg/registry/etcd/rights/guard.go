// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Reasons for which a request is forbidden although the user has the right to its verb.
var (
	ErrNotAllowed = errors.New("the user has no right to use the object that a field names")
	ErrChooses    = errors.New("the request sets fields that need another right")
)

// Guard rejects objects that name Secrets or ServiceAccounts that their author has no right to
// use. The zero value rejects nothing.
type Guard struct {
	Checker
}

// Create returns a check of new objects that runs before next.
func (g Guard) Create(resource schema.GroupResource, next rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if err := g.Check(ctx, resource, obj, nil); err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj)
	}
}

// Update returns a check of changed objects that runs before next.
func (g Guard) Update(resource schema.GroupResource, next rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if err := g.Check(ctx, resource, obj, old); err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		return next(ctx, obj, old)
	}
}

// Check returns a Forbidden error unless the user of the request has every right that obj
// needs and old did not need.
func (g Guard) Check(ctx context.Context, resource schema.GroupResource, obj, old runtime.Object) error {
	return g.check(ctx, resource, obj, old, func(need Need) (subject, do string) { return need.Field, "remove the field" })
}

// CheckCompleted is Check for an obj that a server has completed from a request. The request may lack the field that names
// a Secret. So the error names given, the fields of the request that make obj differ from old.
func (g Guard) CheckCompleted(ctx context.Context, resource schema.GroupResource, obj, old runtime.Object, given []string) error {
	return g.check(ctx, resource, obj, old, func(Need) (subject, do string) {
		fields := strings.Join(given, ", ")
		return fields + " of the request", "remove " + fields + " from the request"
	})
}

func (g Guard) check(ctx context.Context, resource schema.GroupResource, obj, old runtime.Object, words func(Need) (subject, do string)) error {
	for _, need := range NeedsOf(obj, old) {
		has, reason, err := g.Has(ctx, need.AnyOf...)
		if err != nil {
			return err
		}
		if !has {
			subject, do := words(need)
			return apierrors.NewForbidden(resource, nameOf(obj), fmt.Errorf("%w: %s: %s, which needs the right %s in namespace %s%s",
				ErrNotAllowed, subject, need.What, oneOf(need.AnyOf), request.NamespaceValue(ctx), remedy(reason,
					"ask an administrator of the namespace for a Role with that right, or "+do)))
		}
	}
	return nil
}

// RequireCreate returns a Forbidden error if the request sets fields and its user has no right to
// create the object itself.
func (g Guard) RequireCreate(ctx context.Context, subresource schema.GroupResource, name string, created schema.GroupResource, given []string) error {
	if len(given) == 0 {
		return nil
	}
	right := Right{Verb: "create", Group: created.Group, Resource: created.Resource}
	has, reason, err := g.Has(ctx, right)
	if err != nil || has {
		return err
	}
	return apierrors.NewForbidden(subresource, name, fmt.Errorf("%w: %s: with these fields the request also needs the right %s in namespace %s%s",
		ErrChooses, strings.Join(given, ", "), right, request.NamespaceValue(ctx), remedy(reason,
			"remove the fields, or ask an administrator of the namespace for a Role with that right")))
}

func oneOf(anyOf []Right) string {
	texts := make([]string, len(anyOf))
	for i, right := range anyOf {
		texts[i] = right.String()
	}
	return strings.Join(texts, " or ")
}

func remedy(reason, do string) string {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return reason + "; " + do
}

func nameOf(obj runtime.Object) string {
	if named, ok := obj.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	return ""
}
