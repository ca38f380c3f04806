// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
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

// apiServer returns a pod of the API servers, as artifacts/install and artifacts/ha label it.
func apiServer(name string, isReady corev1.ConditionStatus, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app.kubernetes.io/name": apiServerService, "app.kubernetes.io/component": "apiserver"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "apiserver", Command: []string{"/apiserver"}, Args: args}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: isReady}}},
	}
}

// servedFrom returns a Kubernetes whose API server uses the storage of the options.
func servedFrom(o *Options) *kubefake.Clientset {
	if o.StorageEmbeddedService != "" {
		return kubefake.NewClientset(apiServer("single", corev1.ConditionTrue, "--embedded-etcd-dir=/data"))
	}
	return kubefake.NewClientset(apiServer("several", corev1.ConditionTrue, "--etcd-servers=https://storage"))
}

// TestStorageOfTheAPIServers: an installation that was applied over another installation has API servers that reject their empty
// storage, beside an old pod that serves the objects.
func TestStorageOfTheAPIServers(t *testing.T) {
	t.Parallel()
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	members := func(ready corev1.ConditionStatus) corev1.Pod { return *apiServer("new", ready, "--etcd-servers=x") }
	embedded := func(ready corev1.ConditionStatus) corev1.Pod {
		return *apiServer("old", ready, "--embedded-etcd-dir=/data")
	}
	for name, test := range map[string]struct {
		pods            []corev1.Pod
		single, several bool
		isElsewhere     bool
	}{
		"no pod":                                   {},
		"no pod is ready":                          {pods: []corev1.Pod{members(no), embedded(no)}},
		"only API server":                          {pods: []corev1.Pod{embedded(yes)}, single: true, isElsewhere: true},
		"flag and directory are two arguments":     {pods: []corev1.Pod{*apiServer("old", yes, "--embedded-etcd-dir", "/data")}, single: true, isElsewhere: true},
		"API servers on members":                   {pods: []corev1.Pod{members(yes), members(yes)}, several: true, isElsewhere: true},
		"new API servers reject the empty storage": {pods: []corev1.Pod{embedded(yes), members(no)}, single: true, isElsewhere: true},
		"the only API server rejects its volume":   {pods: []corev1.Pod{embedded(no), members(yes)}, several: true, isElsewhere: true},
		"both serve":                               {pods: []corev1.Pod{embedded(yes), members(yes)}, isElsewhere: true},
	} {
		single, several := embeddedOptions().isStorageUsed(test.pods), storageOptions().isStorageUsed(test.pods)
		if (single == nil) != test.single || (several == nil) != test.several {
			t.Errorf("%s: for one API server %v, for several %v", name, single, several)
		}
		if got := errors.Is(single, errStorageNotUsed) || errors.Is(several, errStorageNotUsed); got != test.isElsewhere {
			t.Errorf("%s: for one API server %v, for several %v", name, single, several)
		}
	}
}

// TestStorageBackupStaysWithTheObjects applies artifacts/ha over an only API server with objects. The EtcdBackup stays as it
// is, and none is created, until the API servers use the members.
func TestStorageBackupStaysWithTheObjects(t *testing.T) {
	t.Parallel()
	for _, exists := range []bool{true, false} {
		kube, etcd, clock := servedFrom(embeddedOptions()), fake.NewSimpleClientset(), clocktesting.NewFakeClock(time.Now())
		if exists {
			ensureStorageBackup(t.Context(), kube, etcd, embeddedOptions(), clock)
		}
		backups := etcd.EtcdV1beta2().EtcdBackups("ns")
		before, _ := backups.List(t.Context(), metav1.ListOptions{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			ensureStorageBackup(t.Context(), kube, etcd, storageOptions(), clock)
		}()
		for !clock.HasWaiters() {
			select {
			case <-done:
				t.Fatal("it returned while the objects were in another storage")
			case <-time.After(time.Millisecond):
			}
		}
		if after, _ := backups.List(t.Context(), metav1.ListOptions{}); !reflect.DeepEqual(before, after) {
			t.Errorf("EtcdBackups %+v became %+v", before, after)
		}
		pods := kube.CoreV1().Pods("ns")
		if err := pods.Delete(t.Context(), "single", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Create(t.Context(), apiServer("several", corev1.ConditionTrue), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		clock.Step(storageBackupRetry)
		<-done
		moved, err := backups.Get(t.Context(), "storage", metav1.GetOptions{})
		if want := storageOptions().storageEndpoints(""); err != nil || !slices.Equal(moved.Spec.EtcdEndpoints, want) {
			t.Errorf("the EtcdBackup is %+v (%v), want the endpoints %v", moved, err, want)
		}
	}
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
	ensureStorageBackup(t.Context(), servedFrom(single), etcd, single, clock)
	change(func(b *v1beta2.EtcdBackup) { b.Spec.BackupPolicy.Schedule = "@hourly" })
	for _, o := range []*Options{several, single} {
		ensureStorageBackup(t.Context(), servedFrom(o), etcd, o, clock)
		got, want := read(), o.storageBackup()
		if !slices.Equal(got.Spec.EtcdEndpoints, want.Spec.EtcdEndpoints) || got.Spec.BackupPolicy.Schedule != "@hourly" {
			t.Errorf("the EtcdBackup is %+v, want the endpoints %v and the schedule of a person", got.Spec, want.Spec.EtcdEndpoints)
		}
	}
	mine := []string{"https://mine.example.com:2379"}
	change(func(b *v1beta2.EtcdBackup) { b.Spec.EtcdEndpoints = mine })
	for _, o := range []*Options{several, single} {
		ensureStorageBackup(t.Context(), servedFrom(o), etcd, o, clock)
		if got := read().Spec.EtcdEndpoints; !slices.Equal(got, mine) {
			t.Errorf("the endpoints of a person became %v", got)
		}
	}
}

// TestStorageBackupHasAController: a controller carries out the EtcdBackup that it has created, whatever its scope was when
// the EtcdBackup was created.
func TestStorageBackupHasAController(t *testing.T) {
	t.Parallel()
	scoped := func(edit func(*Options)) *Options {
		o := storageOptions()
		edit(o)
		return o
	}
	all, wide := storageOptions(), scoped(func(o *Options) { o.ClusterWide = true })
	own := scoped(func(o *Options) { o.Namespace = o.podNamespace })
	for name, test := range map[string]struct{ before, now *Options }{
		"all clusters":                        {nil, all},
		"marked clusters":                     {nil, wide},
		"namespace of the controller":         {nil, own},
		"marked clusters after all":           {all, wide},
		"all clusters after marked":           {wide, all},
		"namespace after marked clusters":     {wide, own},
		"marked clusters after the namespace": {own, wide},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd, clock := fake.NewSimpleClientset(), clocktesting.NewFakeClock(time.Now())
			for _, o := range []*Options{test.before, test.now} {
				if o != nil {
					ensureStorageBackup(t.Context(), servedFrom(o), etcd, o, clock)
				}
			}
			backup, err := etcd.EtcdV1beta2().EtcdBackups("ns").Get(t.Context(), "storage", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !test.now.scope().includes(backup) {
				t.Errorf("no controller carries out the EtcdBackup with the annotations %v", backup.Annotations)
			}
		})
	}
}

// TestStorageBackupOfAnotherNamespaceIsRejected: a controller of another namespace never sees the EtcdBackup.
func TestStorageBackupOfAnotherNamespaceIsRejected(t *testing.T) {
	t.Setenv(envPodNamespace, "ns")
	for name, test := range map[string]struct {
		edit     func(*Options)
		rejected bool
	}{
		"all clusters":             {func(*Options) {}, false},
		"marked clusters":          {func(o *Options) { o.ClusterWide = true }, false},
		"namespace of the pod":     {func(o *Options) { o.Namespace = "ns" }, false},
		"another namespace":        {func(o *Options) { o.Namespace = "team-a" }, true},
		"another without a backup": {func(o *Options) { o.Namespace, o.StorageBackupPVC = "team-a", "" }, false},
	} {
		o := NewOptions()
		o.StorageService, o.StorageBackupPVC = "storage", "backups"
		test.edit(o)
		if err := o.Complete(); (err != nil) != test.rejected || err != nil && !strings.Contains(err.Error(), "Remove --storage-backup-pvc") {
			t.Errorf("%s: %v, want it rejected: %t", name, err, test.rejected)
		}
	}
}

// TestStorageBackupsFit: one namespace whose objects take what its limits allow leaves space on the PVC of 4Gi for the
// backup that is being made.
func TestStorageBackupsFit(t *testing.T) {
	t.Parallel()
	const pvc, perNamespace = 4 << 30, 3 * 4 * 16 << 20 // three kinds, four budgets each
	const written = 2 * 16 << 20                        // between two compactions
	if needed := (storageBackupsKept + 1) * (perNamespace + written); needed > pvc {
		t.Errorf("%d backups and one that is being made take %d MiB, and the PVC has %d MiB", storageBackupsKept, needed>>20, pvc>>20)
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
		ensureStorageBackup(t.Context(), servedFrom(storageOptions()), etcd, storageOptions(), clock)
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
	ensureStorageBackup(t.Context(), servedFrom(storageOptions()), etcd, storageOptions(), clock)
	if made, err = backups.Get(t.Context(), "storage", metav1.GetOptions{}); err != nil || !made.Spec.BackupPolicy.Suspend {
		t.Errorf("the second controller left %+v (%v)", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	away = true
	ensureStorageBackup(ctx, servedFrom(storageOptions()), etcd, storageOptions(), clock) // returns
}
