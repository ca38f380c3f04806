// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

type (
	cluster        = v1beta2.EtcdCluster
	strategy       = genericstore.Strategy[*cluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]
	statusStrategy = genericstore.StatusStrategy[*cluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]
)

// named returns a list with one error, which shows which validation was called.
func named(name string) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath(name), "", "asked")}
}

func newStrategies() (strategy, statusStrategy) {
	main := genericstore.NewStrategy(runtime.NewScheme(), genericstore.Definition[*cluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]{
		GroupVersion:         v1beta2.SchemeGroupVersion,
		Spec:                 func(c *cluster) *v1beta2.ClusterSpec { return &c.Spec },
		Status:               func(c *cluster) *v1beta2.ClusterStatus { return &c.Status },
		Validate:             func(*cluster) field.ErrorList { return named("create") },
		ValidateUpdate:       func(_, _ *cluster) field.ErrorList { return named("update") },
		ValidateStatusUpdate: func(_, _ *cluster) field.ErrorList { return named("status") },
		Warnings:             func(*cluster) []string { return []string{"warning"} },
	})
	return main, genericstore.NewStatusStrategy(main)
}

func stored() *cluster {
	return &cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "default", Generation: 7, ResourceVersion: "42", UID: "uid",
			CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			Labels:            map[string]string{"label": "old"},
			Annotations:       map[string]string{"annotation": "old"},
			Finalizers:        []string{"old/finalizer"},
			OwnerReferences:   []metav1.OwnerReference{{Name: "old"}},
		},
		Spec:   v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16", Etcd: &v1beta2.EtcdOptions{}},
		Status: v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseRunning},
	}
}

func TestPrepareForCreate(t *testing.T) {
	t.Parallel()
	main, _ := newStrategies()
	obj := stored()
	main.PrepareForCreate(t.Context(), obj)
	want := stored()
	want.Generation = 1
	want.Status = v1beta2.ClusterStatus{}
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Errorf("unexpected object (-want +got):\n%s", diff)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		change     func(*cluster)
		generation int64
	}{
		{"update without changes keeps the generation", func(*cluster) {}, 7},
		{"change of the spec increases the generation", func(c *cluster) { c.Spec.Replicas = ptr.To[int32](5) }, 8},
		{"equal spec keeps the generation", func(c *cluster) { c.Spec.Replicas = ptr.To[int32](3) }, 7},
		{"empty list instead of no list keeps the generation", func(c *cluster) { c.Spec.Etcd.ExtraArgs = []string{} }, 7},
		{"change of labels keeps the generation", func(c *cluster) { c.Labels = map[string]string{"label": "new"} }, 7},
		{"change of the status is not stored", func(c *cluster) { c.Status.Phase = v1beta2.ClusterPhaseFailed }, 7},
		{"generation in the request is ignored", func(c *cluster) { c.Generation = 99 }, 7},
		{"change of the spec increases the stored generation", func(c *cluster) { c.Generation = 99; c.Spec.Paused = true }, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			main, _ := newStrategies()
			older, newer := stored(), stored()
			test.change(newer)
			want := newer.DeepCopy()
			want.Status, want.Generation = older.Status, test.generation
			main.PrepareForUpdate(t.Context(), newer, older)
			if diff := cmp.Diff(want, newer); diff != "" {
				t.Errorf("unexpected object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareForStatusUpdate(t *testing.T) {
	t.Parallel()
	_, status := newStrategies()
	managed := []metav1.ManagedFieldsEntry{{Manager: "controller", Operation: metav1.ManagedFieldsOperationUpdate}}
	newer := &cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "default", Generation: 99, ResourceVersion: "41", UID: types.UID("uid"),
			CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			Labels:            map[string]string{"label": "new"}, Annotations: nil, Finalizers: nil, OwnerReferences: nil,
			DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(2, 0))), ManagedFields: managed,
		},
		Spec:   v1beta2.ClusterSpec{Replicas: ptr.To[int32](1)},
		Status: v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseFailed, Reason: "new"},
	}
	status.PrepareForUpdate(t.Context(), newer, stored())

	want := stored()
	want.ManagedFields, want.ResourceVersion = managed, "41"
	want.Status = v1beta2.ClusterStatus{Phase: v1beta2.ClusterPhaseFailed, Reason: "new"}
	if diff := cmp.Diff(want, newer); diff != "" {
		t.Errorf("unexpected object (-want +got):\n%s", diff)
	}
}

func TestStrategyCallsValidation(t *testing.T) {
	t.Parallel()
	main, status := newStrategies()
	for _, test := range []struct {
		name string
		errs field.ErrorList
	}{
		{"create", main.Validate(t.Context(), stored())},
		{"update", main.ValidateUpdate(t.Context(), stored(), stored())},
		{"status", status.ValidateUpdate(t.Context(), stored(), stored())},
	} {
		if len(test.errs) != 1 || test.errs[0].Field != test.name {
			t.Errorf("%s: got %v", test.name, test.errs)
		}
	}
	if errs := main.Validate(t.Context(), &metav1.Status{}); len(errs) != 1 || errs[0].Type != field.ErrorTypeInternal {
		t.Errorf("another type: got %v, want an internal error", errs)
	}
}

func TestSizeNamesTheLargestPart(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", genericstore.MaxObjectBytes)
	for part, grow := range map[string]func(*cluster){
		"metadata": func(c *cluster) { c.Annotations["huge"] = huge },
		"spec":     func(c *cluster) { c.Spec.Repository = huge },
		"status":   func(c *cluster) { c.Status.Reason = huge },
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			main, status := newStrategies()
			obj := stored()
			grow(obj)
			all := []field.ErrorList{status.ValidateUpdate(t.Context(), obj, stored())}
			if part != "status" {
				all = append(all, main.Validate(t.Context(), obj), main.ValidateUpdate(t.Context(), obj, stored()))
			}
			for i, errs := range all {
				if last := len(errs) - 1; last < 1 || errs[last].Type != field.ErrorTypeTooLong || errs[last].Field != part {
					t.Errorf("%d: got %.400v, want %s to be too long", i, errs, part)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	main, status := newStrategies()
	changed := stored()
	changed.Generation++
	for _, test := range []struct {
		name string
		got  []string
		want int
	}{
		{"create", main.WarningsOnCreate(t.Context(), stored()), 1},
		{"update of the spec", main.WarningsOnUpdate(t.Context(), changed, stored()), 1},
		{"update of the metadata", main.WarningsOnUpdate(t.Context(), stored(), stored()), 0},
		{"update of the status", status.WarningsOnUpdate(t.Context(), stored(), stored()), 0},
	} {
		if len(test.got) != test.want {
			t.Errorf("%s: got %q, want %d warnings", test.name, test.got, test.want)
		}
	}
}

func TestResetFields(t *testing.T) {
	t.Parallel()
	main, status := newStrategies()
	for _, test := range []struct {
		name string
		got  map[fieldpath.APIVersion]*fieldpath.Set
		want *fieldpath.Set
	}{
		{"main", main.GetResetFields(), fieldpath.NewSet(fieldpath.MakePathOrDie("status"))},
		{"status", status.GetResetFields(), fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))},
	} {
		got, ok := test.got["etcd.database.coreos.com/v1beta2"]
		if !ok || !got.Equals(test.want) {
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}

// TestDeclaredSize checks what users may write: little beside the quota of the storage that all namespaces
// share. What was stored before may change if it does not grow, and the controller can write its status in any case.
func TestDeclaredSize(t *testing.T) {
	t.Parallel()
	tooLong := func(errs field.ErrorList) bool {
		return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Origin == "size" })
	}
	of := func(bytes int) *cluster {
		obj := stored()
		obj.Annotations["large"] = strings.Repeat("x", bytes)
		return obj
	}
	main, status := newStrategies()
	fits, large := of(genericstore.MaxDeclaredBytes-1024), of(genericstore.MaxDeclaredBytes+1024)
	larger, smaller, finalized := of(genericstore.MaxDeclaredBytes+2048), of(genericstore.MaxDeclaredBytes+1), large.DeepCopyObject().(*cluster)
	finalized.Finalizers = nil
	finalized.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("x", 100)}}
	withStatus := large.DeepCopyObject().(*cluster)
	withStatus.Status.Reason = strings.Repeat("x", 200*1024)
	for name, test := range map[string]struct {
		errs field.ErrorList
		want bool
	}{
		"create that fits":                        {main.Validate(t.Context(), fits), false},
		"create of a large object":                {main.Validate(t.Context(), large), true},
		"update to a large object":                {main.ValidateUpdate(t.Context(), large, fits), true},
		"stored large object grows":               {main.ValidateUpdate(t.Context(), larger, large), true},
		"stored large object keeps its size":      {main.ValidateUpdate(t.Context(), large, large), false},
		"stored large object shrinks":             {main.ValidateUpdate(t.Context(), smaller, large), false},
		"stored large object loses its finalizer": {main.ValidateUpdate(t.Context(), finalized, large), false},
		"status of a stored large object":         {status.ValidateUpdate(t.Context(), withStatus, large), false},
	} {
		if got := tooLong(test.errs); got != test.want {
			t.Errorf("%s: rejected for its size %t, want %t: %.300v", name, got, test.want, test.errs)
		}
	}
}

// TestTexts: a text of a spec has a limit, and one that was stored before the limit existed may stay.
func TestTexts(t *testing.T) {
	t.Parallel()
	main, _ := newStrategies()
	long := stored()
	long.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 33<<10)}}}
	scaled := long.DeepCopyObject().(*cluster)
	scaled.Spec.Replicas = ptr.To[int32](5)
	for name, errs := range map[string]field.ErrorList{"create": main.Validate(t.Context(), long), "update": main.ValidateUpdate(t.Context(), long, stored())} {
		if len(errs) != 2 || errs[1].Type != field.ErrorTypeTooLong || errs[1].Field != "spec.pod.etcdEnv[0].value" {
			t.Errorf("%s: got %.400v, want spec.pod.etcdEnv[0].value to be too long", name, errs)
		}
	}
	if errs := main.ValidateUpdate(t.Context(), scaled, long); len(errs) != 1 {
		t.Errorf("update of a stored object: got %.400v", errs)
	}
}
