// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

// Strategy prepares and validates the objects of a kind before they are stored. An update
// changes the spec and the metadata; the stored status is kept.
type Strategy[T Object, S, U any] struct {
	runtime.ObjectTyper
	names.NameGenerator
	Definition[T, S, U]
}

// NewStrategy returns the strategy for the main resource of a kind.
func NewStrategy[T Object, S, U any](typer runtime.ObjectTyper, definition Definition[T, S, U]) Strategy[T, S, U] {
	return Strategy[T, S, U]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, Definition: definition}
}

// NamespaceScoped is true for every kind of the group.
func (Strategy[T, S, U]) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false: a PUT does not create an object.
func (Strategy[T, S, U]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: a PUT without a resourceVersion replaces every version.
func (Strategy[T, S, U]) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize does nothing: defaults are set when the object is decoded.
func (Strategy[T, S, U]) Canonicalize(runtime.Object) {}

// PrepareForCreate replaces the status in the request by the initial one, and sets defaults that
// are stored.
func (s Strategy[T, S, U]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	typed, ok := obj.(T)
	if !ok {
		return
	}
	var none U
	*s.Status(typed) = none
	if s.InitialStatus != nil {
		*s.Status(typed) = s.InitialStatus(typed.GetCreationTimestamp())
	}
	typed.SetGeneration(1)
	if s.DefaultOnCreate != nil {
		s.DefaultOnCreate(typed)
	}
}

// PrepareForUpdate keeps the stored status and the stored defaults that the update leaves empty.
// It increases metadata.generation if the spec changes.
func (s Strategy[T, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newer, older, ok := asBoth[T](obj, old)
	if !ok {
		return
	}
	*s.Status(newer) = *s.Status(older)
	if s.KeepOnUpdate != nil {
		s.KeepOnUpdate(newer, older)
	}
	newer.SetGeneration(older.GetGeneration())
	if !isSameSpec(s.Spec(newer), s.Spec(older)) {
		newer.SetGeneration(older.GetGeneration() + 1)
	}
}

// Validate validates a new object.
func (s Strategy[T, S, U]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	typed, ok := obj.(T)
	if !ok {
		return unexpectedType(obj)
	}
	errs := append(s.Definition.Validate(typed), validation.ValidateTexts(s.Spec(typed), nil)...)
	return append(errs, s.validateDeclared(typed)...)
}

// ValidateUpdate validates a change of the spec or the metadata.
func (s Strategy[T, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	newer, older, ok := asBoth[T](obj, old)
	if !ok {
		return unexpectedType(obj)
	}
	errs := append(s.Definition.ValidateUpdate(newer, older), validation.ValidateTexts(s.Spec(newer), s.Spec(older))...)
	errs = append(errs, s.validateDeclaredUpdate(newer, older)...)
	if len(errs) > 0 {
		return errs
	}
	return s.validateStored(newer)
}

// WarningsOnCreate returns warnings for the client.
func (s Strategy[T, S, U]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if typed, ok := obj.(T); ok {
		return s.Warnings(typed)
	}
	return nil
}

// WarningsOnUpdate returns warnings for the client. An update that does not change the spec, such
// as that of a finalizer, repeats no warning.
func (s Strategy[T, S, U]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	newer, older, ok := asBoth[T](obj, old)
	if !ok || newer.GetGeneration() == older.GetGeneration() {
		return nil
	}
	warnings := s.Warnings(newer)
	if info, found := request.RequestInfoFrom(ctx); found && info.Verb == "update" && s.ReplaceWarnings != nil {
		warnings = append(warnings, s.ReplaceWarnings(newer, older)...)
	}
	return warnings
}

// GetResetFields returns the status: server-side apply records no manager for it.
func (s Strategy[T, S, U]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("status")
}

func (s Strategy[T, S, U]) resetFields(top ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range top {
		set.Insert(fieldpath.Path{fieldpath.PathElement{FieldName: &name}})
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(s.GroupVersion.String()): set}
}

// StatusStrategy is the strategy of the status subresource: it changes the status only.
type StatusStrategy[T Object, S, U any] struct {
	Strategy[T, S, U]
}

// NewStatusStrategy returns the strategy for the status of a kind.
func NewStatusStrategy[T Object, S, U any](main Strategy[T, S, U]) StatusStrategy[T, S, U] {
	return StatusStrategy[T, S, U]{Strategy: main}
}

// PrepareForUpdate takes the status from obj and everything else from the stored object.
func (s StatusStrategy[T, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newer, older, ok := asBoth[T](obj, old)
	if !ok {
		return
	}
	*s.Spec(newer) = *s.Spec(older)
	restoreMetadata(newer, older)
}

// restoreMetadata restores everything that a user can set in the metadata. It keeps the managed
// fields, which record the writer of the status, and the resource version, which the store
// has compared already.
func restoreMetadata[T Object](newer, older T) {
	newer.SetGeneration(older.GetGeneration())
	newer.SetLabels(older.GetLabels())
	newer.SetAnnotations(older.GetAnnotations())
	newer.SetFinalizers(older.GetFinalizers())
	newer.SetOwnerReferences(older.GetOwnerReferences())
	newer.SetDeletionTimestamp(older.GetDeletionTimestamp())
	newer.SetDeletionGracePeriodSeconds(older.GetDeletionGracePeriodSeconds())
}

// ValidateUpdate validates a change of the status.
func (s StatusStrategy[T, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	newer, older, ok := asBoth[T](obj, old)
	if !ok {
		return unexpectedType(obj)
	}
	return append(s.Definition.ValidateStatusUpdate(newer, older), s.validateStored(newer)...)
}

// WarningsOnUpdate returns nothing: a program writes the status.
func (StatusStrategy[T, S, U]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields returns metadata and spec: server-side apply records managers of the status only.
func (s StatusStrategy[T, S, U]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("metadata", "spec")
}

func asBoth[T Object](obj, old runtime.Object) (newer, older T, ok bool) {
	newer, ok = obj.(T)
	if !ok {
		return newer, older, false
	}
	older, ok = old.(T)
	return newer, older, ok
}

func unexpectedType(obj runtime.Object) field.ErrorList {
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("the store of this kind returned a %T", obj))}
}

// The store checks for these interfaces when the server starts. Here the compiler does.
type (
	anyStrategy interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
		rest.RESTDeleteStrategy
		rest.ResetFieldsStrategy
	}
	anyObject struct{ Object }
)

var (
	_ anyStrategy = Strategy[anyObject, struct{}, struct{}]{}
	_ anyStrategy = StatusStrategy[anyObject, struct{}, struct{}]{}
)
