// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy normalises and checks the objects of a kind on their way to storage.
// Users own the spec here; the status is kept as it is.
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

// AllowCreateOnUpdate is false: a PUT to a name that does not exist is a mistake.
func (Strategy[T, S, U]) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate lets a PUT without a resourceVersion win.
func (Strategy[T, S, U]) AllowUnconditionalUpdate() bool { return true }

// Canonicalize has nothing to do: defaults are filled when the object is decoded.
func (Strategy[T, S, U]) Canonicalize(runtime.Object) {}

// PrepareForCreate replaces a status that came with the request by the initial one, and
// fills defaults that are stored.
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

// PrepareForUpdate keeps the stored status, and the stored defaults that the update
// leaves out, and counts changes of the spec.
func (s Strategy[T, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newer, older, ok := both[T](obj, old)
	if !ok {
		return
	}
	*s.Status(newer) = *s.Status(older)
	if s.KeepOnUpdate != nil {
		s.KeepOnUpdate(newer, older)
	}
	newer.SetGeneration(older.GetGeneration())
	if !sameSpec(s.Spec(newer), s.Spec(older)) {
		newer.SetGeneration(older.GetGeneration() + 1)
	}
}

// Validate checks a new object.
func (s Strategy[T, S, U]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	typed, ok := obj.(T)
	if !ok {
		return unexpected(obj)
	}
	return append(s.Definition.Validate(typed), s.validateUserSize(typed)...)
}

// ValidateUpdate checks a change of the spec or the metadata.
func (s Strategy[T, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	newer, older, ok := both[T](obj, old)
	if !ok {
		return unexpected(obj)
	}
	errs := s.Definition.ValidateUpdate(newer, older)
	// What is stored may stay, so that finalizers can be removed.
	if newer.Size() <= older.Size() {
		return append(errs, s.validateSize(newer, newer.Size())...)
	}
	return append(errs, s.validateUserSize(newer)...)
}

// WarningsOnCreate are sent to the client beside the answer.
func (s Strategy[T, S, U]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if typed, ok := obj.(T); ok {
		return s.Warnings(typed)
	}
	return nil
}

// WarningsOnUpdate are sent to the client beside the answer. An update that leaves
// the spec alone, such as that of a finalizer, says nothing new.
func (s Strategy[T, S, U]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	newer, older, ok := both[T](obj, old)
	if !ok || newer.GetGeneration() == older.GetGeneration() {
		return nil
	}
	return s.Warnings(newer)
}

// GetResetFields tells server-side apply that nobody owns a status set here.
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

// StatusStrategy is for the status subresource: everything but the status is kept.
type StatusStrategy[T Object, S, U any] struct {
	Strategy[T, S, U]
}

// NewStatusStrategy returns the strategy for the status of a kind.
func NewStatusStrategy[T Object, S, U any](main Strategy[T, S, U]) StatusStrategy[T, S, U] {
	return StatusStrategy[T, S, U]{Strategy: main}
}

// PrepareForUpdate takes the status from the request, and all else from storage.
func (s StatusStrategy[T, S, U]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newer, older, ok := both[T](obj, old)
	if !ok {
		return
	}
	*s.Spec(newer) = *s.Spec(older)
	keepMetadata(newer, older)
}

// keepMetadata restores everything that a user can set in the metadata. The
// managed fields stay: they record who wrote the status just now. So does the
// resource version, which the store has compared already.
func keepMetadata[T Object](newer, older T) {
	newer.SetGeneration(older.GetGeneration())
	newer.SetLabels(older.GetLabels())
	newer.SetAnnotations(older.GetAnnotations())
	newer.SetFinalizers(older.GetFinalizers())
	newer.SetOwnerReferences(older.GetOwnerReferences())
	newer.SetDeletionTimestamp(older.GetDeletionTimestamp())
	newer.SetDeletionGracePeriodSeconds(older.GetDeletionGracePeriodSeconds())
}

// ValidateUpdate checks a change of the status.
func (s StatusStrategy[T, S, U]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	newer, older, ok := both[T](obj, old)
	if !ok {
		return unexpected(obj)
	}
	return append(s.Definition.ValidateStatusUpdate(newer, older), s.validateSize(newer, newer.Size())...)
}

// WarningsOnUpdate is silent: the writer of a status is a program.
func (StatusStrategy[T, S, U]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields tells server-side apply that only the status can be owned here.
func (s StatusStrategy[T, S, U]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.resetFields("metadata", "spec")
}

func both[T Object](obj, old runtime.Object) (newer, older T, ok bool) {
	newer, ok = obj.(T)
	if !ok {
		return newer, older, false
	}
	older, ok = old.(T)
	return newer, older, ok
}

func unexpected(obj runtime.Object) field.ErrorList {
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("unexpected type %T", obj))}
}

// The store asks for these when it is wired; here a missing method shows at once.
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
