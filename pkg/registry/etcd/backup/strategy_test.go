// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
)

// TestValidationOfThisKind checks that each way in asks the validation of this kind.
func TestValidationOfThisKind(t *testing.T) {
	t.Parallel()
	stored := func() *v1beta2.EtcdBackup {
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
	corrupt.Spec.StorageType = "Tape"
	reported.Status.EtcdRevision = -1
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
