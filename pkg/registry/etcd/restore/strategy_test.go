// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// TestValidationOfThisKind checks that each way in asks the validation of this kind.
func TestValidationOfThisKind(t *testing.T) {
	t.Parallel()
	stored := func() *v1beta2.EtcdRestore {
		obj := valid("a")
		obj.Namespace, obj.ResourceVersion = "default", "1"
		return obj
	}
	strategy := newStrategy(runtime.NewScheme())
	status := genericstore.NewStatusStrategy(strategy)

	if errs := strategy.Validate(t.Context(), stored()); len(errs) > 0 {
		t.Errorf("a valid object is rejected: %v", errs)
	}
	corrupt, reported := stored(), stored()
	corrupt.Spec.BackupStorageType = "Tape"
	reported.Status.Revision = -1
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
	warned.Spec.S3.InsecureSkipTLSVerify = true
	if warnings := strategy.WarningsOnCreate(t.Context(), warned); len(warnings) == 0 {
		t.Error("no warning")
	}
}

// TestVersionOfTheTemplateStays: an update that leaves out the version of the template is
// no change, and an empty one stays empty: it stands for that of the backup.
func TestVersionOfTheTemplateStays(t *testing.T) {
	t.Parallel()
	strategy := newStrategy(runtime.NewScheme())
	made := func(version string) *v1beta2.EtcdRestore {
		obj := valid("a")
		obj.Namespace, obj.ResourceVersion = "default", "1"
		obj.Spec.ClusterTemplate = &v1beta2.EtcdClusterTemplate{Spec: v1beta2.ClusterSpec{
			Replicas: ptr.To[int32](1), Repository: v1beta2.DefaultRepository, Version: version, PodDisruptionBudget: v1beta2.PodDisruptionBudgetEnabled,
		}}
		return obj
	}
	for _, stored := range []string{"3.2.13", ""} {
		old, update := made(stored), made("")
		strategy.PrepareForUpdate(t.Context(), update, old)
		if got := update.Spec.ClusterTemplate.Spec.Version; got != stored || update.Generation != old.Generation {
			t.Errorf("version %q becomes %q, generation %d", stored, got, update.Generation)
		}
		if errs := strategy.ValidateUpdate(t.Context(), update, old); len(errs) > 0 {
			t.Errorf("version %q: %v", stored, errs)
		}
	}
	created := made("")
	strategy.PrepareForCreate(t.Context(), created)
	if got := created.Spec.ClusterTemplate.Spec.Version; got != "" {
		t.Errorf("version %q is stored", got)
	}
	if errs := strategy.Validate(t.Context(), created); len(errs) > 0 {
		t.Errorf("a template without a version: %v", errs)
	}
	if c := meta.FindStatusCondition(created.Status.Conditions, v1beta2.ConditionReady); c == nil || c.Status != metav1.ConditionUnknown {
		t.Errorf("a new restore says %+v", created.Status.Conditions)
	}
	wrong := made("x")
	if errs := strategy.Validate(t.Context(), wrong); len(errs) == 0 {
		t.Error("a version that is none is taken")
	}
}
