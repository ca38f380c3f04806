// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/rights"
)

// TestDeletionOfAHeldBackup: no way to delete a held EtcdBackup works, not even by a client that does not know the field.
func TestDeletionOfAHeldBackup(t *testing.T) {
	t.Parallel()
	etcd := registrytest.New(t)
	storage, err := NewStorage(etcd.Scheme, etcd.Options, rights.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.EtcdBackup.Destroy)
	registrytest.Await(t, storage.EtcdBackup.Store)
	ctx := registrytest.Context(t.Context(), metav1.NamespaceDefault, "etcdbackups", "")
	backups := storage.EtcdBackup
	create := func(name string, edit func(*v1beta2.BackupSpec)) {
		t.Helper()
		b := valid(name)
		edit(&b.Spec)
		if _, err := backups.Create(ctx, b, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update := func(name string, edit func(*v1beta2.BackupSpec)) {
		t.Helper()
		obj, err := backups.Get(ctx, name, &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := obj.DeepCopyObject().(*v1beta2.EtcdBackup)
		edit(&b.Spec)
		if _, _, err := backups.Update(ctx, name, rest.DefaultUpdatedObjectInfo(b), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string, options metav1.DeleteOptions) error {
		_, _, err := backups.Delete(ctx, name, rest.ValidateAllObjectFunc, &options)
		return err
	}
	create("one", func(s *v1beta2.BackupSpec) { s.Hold = ptr.To(true) })
	create("series", func(s *v1beta2.BackupSpec) {
		s.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "@daily"}
		s.HeldSnapshots = []string{"s3://bucket/key/1"}
	})
	update("one", func(s *v1beta2.BackupSpec) { s.Hold = nil })
	for name, field := range map[string]string{"one": "spec.hold is true", "series": "spec.heldSnapshots names 1 snapshots"} {
		for _, options := range []metav1.DeleteOptions{{}, {DryRun: []string{metav1.DryRunAll}}} {
			err := remove(name, options)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "kubectl etcd backup release "+name+" -n default") {
				t.Errorf("the deletion of %s returns %v", name, err)
			}
		}
	}
	if _, err := backups.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the deletion of the collection returns %v", err)
	}
	update("one", func(s *v1beta2.BackupSpec) { s.Hold = ptr.To(false) })
	update("series", func(s *v1beta2.BackupSpec) { s.HeldSnapshots = nil })
	for _, name := range []string{"one", "series"} {
		if err := remove(name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("%s, which is not held: %v", name, err)
		}
	}
}
