// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

func storageOptions() *Options {
	return &Options{StorageService: "storage", StorageBackupPVC: "backups", podNamespace: "ns"}
}

// TestStorageBackupIsValid checks that the API server accepts the EtcdBackup.
func TestStorageBackupIsValid(t *testing.T) {
	t.Parallel()
	backup := storageOptions().storageBackup()
	v1beta2.SetDefaults_BackupSpec(&backup.Spec)
	if errs := validation.ValidateEtcdBackup(backup); len(errs) > 0 {
		t.Error(errs)
	}
	if got := backup.Spec.EtcdEndpoints; len(got) != 3 || got[2] != "https://storage-2.storage.ns.svc:2379" {
		t.Errorf("endpoints %v", got)
	}
}

// TestStorageBackupIsCreatedOnce: the API is away at first, the EtcdBackup is created as soon as
// it is served, and what a person has changed stays.
func TestStorageBackupIsCreatedOnce(t *testing.T) {
	t.Parallel()
	etcd := fake.NewSimpleClientset()
	away := true
	etcd.PrependReactor("create", "etcdbackups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if away {
			away = false
			return true, nil, apierrors.NewServiceUnavailable("no endpoints")
		}
		return false, nil, nil
	})
	clock := clocktesting.NewFakeClock(time.Now())
	done := make(chan struct{})
	go func() {
		defer close(done)
		createStorageBackup(t.Context(), etcd, storageOptions().storageBackup(), clock)
	}()
	for !clock.HasWaiters() {
		select {
		case <-done:
			t.Fatal("it returned while the API was away")
		case <-time.After(time.Millisecond):
		}
	}
	clock.Step(storageBackupRetry)
	<-done
	backups := etcd.EtcdV1beta2().EtcdBackups("ns")
	made, err := backups.Get(t.Context(), "storage", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Spec.BackupPolicy.Suspend = true
	if _, err := backups.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	createStorageBackup(t.Context(), etcd, storageOptions().storageBackup(), clock)
	if made, err = backups.Get(t.Context(), "storage", metav1.GetOptions{}); err != nil || !made.Spec.BackupPolicy.Suspend {
		t.Errorf("the second controller left %+v (%v)", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	away = true
	createStorageBackup(ctx, etcd, storageOptions().storageBackup(), clock) // returns
}
