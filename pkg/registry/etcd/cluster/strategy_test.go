// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestValidationOfThisKind checks that each way in asks the validation of this kind.
func TestValidationOfThisKind(t *testing.T) {
	t.Parallel()
	stored := func() *v1beta2.EtcdCluster {
		obj := valid("a")
		obj.Namespace, obj.ResourceVersion = "default", "1"
		return obj
	}
	strategy := newStrategy(runtime.NewScheme(), v1beta2.DefaultVersion)
	status := genericstore.NewStatusStrategy(strategy)

	if errs := strategy.Validate(t.Context(), stored()); len(errs) > 0 {
		t.Errorf("a valid object is rejected: %v", errs)
	}
	corrupt, reported := stored(), stored()
	corrupt.Spec.Version = "not a version"
	reported.Status.Replicas = -1
	if errs := strategy.Validate(t.Context(), corrupt); len(errs) == 0 {
		t.Error("a corrupt object is created")
	}
	if errs := strategy.ValidateUpdate(t.Context(), corrupt, stored()); len(errs) == 0 {
		t.Error("a corrupt update is taken")
	}
	if errs := status.ValidateUpdate(t.Context(), reported, stored()); len(errs) == 0 {
		t.Error("a corrupt status is taken")
	}
	if errs := strategy.ValidateUpdate(t.Context(), reported, stored()); len(errs) > 0 {
		t.Errorf("a status that only the controller can repair blocks its user: %v", errs)
	}

	warned := stored()
	warned.Spec.Version = "3.4.45"
	if warnings := strategy.WarningsOnCreate(t.Context(), warned); len(warnings) == 0 {
		t.Error("no warning")
	}
}

// TestVersionIsStoredOnce: a cluster that names no version gets the default of the server
// that creates it, and keeps it beside a server with another default.
func TestVersionIsStoredOnce(t *testing.T) {
	t.Parallel()
	first, later := newStrategy(runtime.NewScheme(), "3.6.16"), newStrategy(runtime.NewScheme(), "3.7.3")
	unnamed := func() *v1beta2.EtcdCluster {
		obj := valid("a")
		obj.Spec.Version = ""
		return obj
	}
	created := unnamed()
	first.PrepareForCreate(t.Context(), created)
	if created.Spec.Version != "3.6.16" {
		t.Fatalf("version %q is stored", created.Spec.Version)
	}
	update := unnamed()
	later.PrepareForUpdate(t.Context(), update, created)
	if update.Spec.Version != "3.6.16" || update.Generation != created.Generation {
		t.Errorf("an update without a version makes it %q, generation %d", update.Spec.Version, update.Generation)
	}
	named := unnamed()
	named.Spec.Version = "3.1.10"
	later.PrepareForCreate(t.Context(), named)
	if named.Spec.Version != "3.1.10" {
		t.Errorf("a version that was named becomes %q", named.Spec.Version)
	}
	later.PrepareForUpdate(t.Context(), named, created)
	if named.Spec.Version != "3.1.10" || named.Generation != created.Generation+1 {
		t.Errorf("a change of the version makes it %q, generation %d", named.Spec.Version, named.Generation)
	}
}

// TestNewClusterIsNotReady: whatever status came with the request, no client takes a new
// cluster for ready.
func TestNewClusterIsNotReady(t *testing.T) {
	t.Parallel()
	obj := valid("a")
	obj.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	obj.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionTrue}}
	newStrategy(runtime.NewScheme(), "3.6.16").PrepareForCreate(t.Context(), obj)
	want := []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionUnknown, Reason: v1beta2.ReasonNotObserved, Message: genericstore.MessageNotObserved,
		LastUpdateTime: "2026-01-02T02:04:05Z", LastTransitionTime: "2026-01-02T02:04:05Z",
	}}
	if diff := cmp.Diff(want, obj.Status.Conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCancelledRestartStaysCancelled: another cancellation, or an end of the annotation, does not let the other members restart.
func TestCancelledRestartStaysCancelled(t *testing.T) {
	t.Parallel()
	set := func(restart, cancel string) *v1beta2.EtcdCluster {
		obj := valid("a")
		obj.Annotations = map[string]string{}
		for key, value := range map[string]string{resources.AnnotationRestart: restart, resources.AnnotationCancelOperation: cancel} {
			if value != "" {
				obj.Annotations[key] = value
			}
		}
		return obj
	}
	strategy := newStrategy(runtime.NewScheme(), v1beta2.DefaultVersion)
	for name, test := range map[string]struct{ older, newer, want *v1beta2.EtcdCluster }{
		"another operation is cancelled": {set("a", "a"), set("a", "d"), set("", "d")},
		"the annotation goes":            {set("a", "a"), set("a", ""), set("", "")},
		"another restart is requested":   {set("a", "a"), set("b", ""), set("b", "")},
		"it is cancelled":                {set("a", ""), set("a", "a"), set("a", "a")},
		"it goes on":                     {set("a", "d"), set("a", "e"), set("a", "e")},
	} {
		strategy.PrepareForUpdate(t.Context(), test.newer, test.older)
		if diff := cmp.Diff(test.want.Annotations, test.newer.Annotations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
