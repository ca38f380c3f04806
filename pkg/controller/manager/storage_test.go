// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"
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

// embeddedOptions are those of artifacts/install.
func embeddedOptions() *Options {
	o := storageOptions()
	o.StorageEmbeddedService = apiServerService
	return o
}

// TestStorageBackupIsValid checks that the API server accepts the EtcdBackup of each kind of
// installation.
func TestStorageBackupIsValid(t *testing.T) {
	t.Parallel()
	members := []string{"https://storage-0.storage.ns.svc:2379", "https://storage-1.storage.ns.svc:2379", "https://storage-2.storage.ns.svc:2379"}
	for name, test := range map[string]struct {
		options   *Options
		endpoints []string
	}{
		"members of their own": {storageOptions(), members},
		"inside of the server": {embeddedOptions(), []string{"https://etcd-operator-apiserver.ns.svc:2379"}},
	} {
		backup := test.options.storageBackup()
		v1beta2.SetDefaults_BackupSpec(&backup.Spec)
		if errs := validation.ValidateEtcdBackup(backup); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if got := backup.Spec.EtcdEndpoints; !slices.Equal(got, test.endpoints) {
			t.Errorf("%s: endpoints %v, want %v", name, got, test.endpoints)
		}
	}
}

// TestStorageBackupFollowsTheObjects moves the objects from one API server to several and back. The
// endpoints follow, what a person has changed stays, and so do endpoints of a person.
func TestStorageBackupFollowsTheObjects(t *testing.T) {
	t.Parallel()
	single, several, clock := embeddedOptions(), storageOptions(), clocktesting.NewFakeClock(time.Now())
	etcd := fake.NewSimpleClientset()
	backups := etcd.EtcdV1beta2().EtcdBackups("ns")
	read := func() *v1beta2.EtcdBackup {
		t.Helper()
		backup, err := backups.Get(t.Context(), "storage", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return backup
	}
	change := func(edit func(*v1beta2.EtcdBackup)) {
		t.Helper()
		backup := read()
		edit(backup)
		if _, err := backups.Update(t.Context(), backup, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ensureStorageBackup(t.Context(), etcd, single, clock)
	change(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy.Schedule = "@hourly" })
	for _, o := range []*Options{several, single} {
		ensureStorageBackup(t.Context(), etcd, o, clock)
		got, want := read(), o.storageBackup()
		if !slices.Equal(got.Spec.EtcdEndpoints, want.Spec.EtcdEndpoints) || got.Spec.BackupPolicy.Schedule != "@hourly" {
			t.Errorf("the EtcdBackup is %+v, want the endpoints %v and the schedule of a person", got.Spec, want.Spec.EtcdEndpoints)
		}
	}
	mine := []string{"https://mine.example.com:2379"}
	change(func(b *v1beta2.EtcdBackup) { b.Spec.EtcdEndpoints = mine })
	for _, o := range []*Options{several, single} {
		ensureStorageBackup(t.Context(), etcd, o, clock)
		if got := read().Spec.EtcdEndpoints; !slices.Equal(got, mine) {
			t.Errorf("the endpoints of a person became %v", got)
		}
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
		ensureStorageBackup(t.Context(), etcd, storageOptions(), clock)
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
	ensureStorageBackup(t.Context(), etcd, storageOptions(), clock)
	if made, err = backups.Get(t.Context(), "storage", metav1.GetOptions{}); err != nil || !made.Spec.BackupPolicy.Suspend {
		t.Errorf("the second controller left %+v (%v)", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	away = true
	ensureStorageBackup(ctx, etcd, storageOptions(), clock) // returns
}
