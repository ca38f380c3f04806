// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/prober"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

const ns = metav1.NamespaceDefault

func valid(name string) *v1beta2.EtcdCluster {
	cluster := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16"},
	}
	v1beta2.SetObjectDefaults_EtcdCluster(cluster)
	return cluster
}

func TestMain(m *testing.M) { registrytest.Main(m) }

func newStorage(t *testing.T) (Storage, *registrytest.Storage) {
	t.Helper()
	etcd := registrytest.New(t)
	storage, err := NewStorage(etcd.Scheme, etcd.Options, Dependencies{Prober: prober.New(nil, nil, clock.RealClock{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.EtcdCluster.Destroy)
	registrytest.Await(t, storage.EtcdCluster.Store)
	return storage, etcd
}

func requestContext(t *testing.T) context.Context {
	return registrytest.Context(t.Context(), ns, "etcdclusters", "")
}

func create(t *testing.T, storage Storage, cluster *v1beta2.EtcdCluster) *v1beta2.EtcdCluster {
	t.Helper()
	created, err := storage.EtcdCluster.Create(requestContext(t), cluster, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*v1beta2.EtcdCluster)
}

func TestConformance(t *testing.T) {
	registrytest.Conformance[*v1beta2.EtcdCluster]{
		NewStore: func(typer *runtime.Scheme, options generic.RESTOptionsGetter) (*genericregistry.Store, error) {
			storage, err := NewStorage(typer, options, Dependencies{Prober: prober.New(nil, nil, clock.RealClock{})})
			if err != nil {
				return nil, err
			}
			return storage.EtcdCluster.Store, nil
		},
		Valid:   valid,
		Change:  func(cluster *v1beta2.EtcdCluster) { cluster.Spec.Replicas = ptr.To[int32](5) },
		Corrupt: func(cluster *v1beta2.EtcdCluster) { cluster.Spec.Replicas = ptr.To[int32](99) },
		Match:   []fields.Set{{v1beta2.FieldSpecVersion: "3.6.16"}, {v1beta2.FieldStatusPhase: ""}},
		Miss:    []fields.Set{{v1beta2.FieldSpecVersion: "3.5.0"}, {v1beta2.FieldStatusPhase: "Running"}},
	}.Run(t)
}

func TestNames(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	if names := storage.EtcdCluster.ShortNames(); len(names) != 1 || names[0] != "etcd" {
		t.Errorf("short names %q, want etcd", names)
	}
	if _, ok := any(storage.EtcdCluster).(rest.CategoriesProvider); ok {
		t.Error("clusters have categories: kubectl delete all --all must not delete databases")
	}
	if singular := storage.EtcdCluster.GetSingularName(); singular != "etcdcluster" {
		t.Errorf("singular name %q, want etcdcluster", singular)
	}
}

func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	protected := valid("a")
	protected.Spec.DeletionProtection = ptr.To(true)
	created := create(t, storage, protected)
	ctx := requestContext(t)

	for _, options := range []*metav1.DeleteOptions{{}, {DryRun: []string{metav1.DryRunAll}}} {
		_, _, err := storage.EtcdCluster.Delete(ctx, "a", rest.ValidateAllObjectFunc, options)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ErrDeletionProtected.Error()) {
			t.Fatalf("Delete with %v returned %v, want Forbidden with the way out", options, err)
		}
	}
	_, err := storage.EtcdCluster.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("DeleteCollection returned %v, want Forbidden", err)
	}

	created.Spec.DeletionProtection = ptr.To(false)
	if _, _, err := storage.EtcdCluster.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(created), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := storage.EtcdCluster.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatalf("Delete without protection: %v", err)
	}
}

// TestDeletionBesideOldMembers: a cluster whose members are part of the quorum of another etcd stays
// until its members are the only ones, or none of them is left.
func TestDeletionBesideOldMembers(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	joined := valid("a")
	joined.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old:2379"}}}
	cluster := create(t, storage, joined)
	ctx := requestContext(t)
	old, own := v1beta2.MemberStatus{Name: "x", Unmanaged: true}, v1beta2.MemberStatus{Name: "a-1", Pod: "a-1"}
	report := func(members ...v1beta2.MemberStatus) {
		t.Helper()
		cluster.Status.MemberStatuses, cluster.ResourceVersion = members, ""
		if _, _, err := storage.Status.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(cluster), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func() error {
		_, _, err := storage.EtcdCluster.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	report(old, own)
	if err := remove(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ErrBesideOldMembers.Error()) {
		t.Errorf("beside old members: %v", err)
	}
	for name, members := range map[string][]v1beta2.MemberStatus{
		"no member has joined": {old}, "no old member is left": {own}, "its members have neither pod nor PVC": {old, {Name: "a-1"}},
	} {
		if report(members...); remove() != nil {
			t.Errorf("%s: %v", name, remove())
		}
	}
	serves := func(m v1beta2.MemberStatus, healthy corev1.ConditionStatus) v1beta2.MemberStatus {
		m.Healthy = healthy
		return m
	}
	givenUp := []v1beta2.MemberStatus{serves(old, corev1.ConditionTrue), serves(own, corev1.ConditionFalse)}
	if report(givenUp...); remove() == nil {
		t.Error("a cluster that is not paused, and whose member may come back, was deleted")
	}
	paused := cluster.DeepCopy()
	paused.Spec.Paused, paused.ResourceVersion = true, ""
	if _, _, err := storage.EtcdCluster.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(paused), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if report(givenUp...); remove() != nil {
		t.Errorf("paused, and only the old member serves: %v", remove())
	}
	if report(serves(old, corev1.ConditionTrue), serves(own, corev1.ConditionTrue)); remove() == nil {
		t.Error("a paused cluster whose member serves beside the old one was deleted")
	}
	if report(serves(old, corev1.ConditionFalse), serves(own, corev1.ConditionFalse)); remove() == nil {
		t.Error("a paused cluster was deleted while no quorum serves that would show that its members were removed")
	}
}

func TestDeletionAsksAdmission(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	rejected := errors.New("rejected by admission")
	_, _, err := storage.EtcdCluster.Delete(requestContext(t), "a",
		func(context.Context, runtime.Object) error { return rejected }, &metav1.DeleteOptions{})
	if !errors.Is(err, rejected) {
		t.Fatalf("Delete returned %v, want what admission said", err)
	}
}

// TestTooLarge checks that an object that etcd would not take is the user's error
// and names the part that is too large, on every way in.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	ctx := requestContext(t)
	huge := strings.Repeat("x", genericstore.MaxObjectBytes)

	large := valid("large")
	large.Annotations = map[string]string{"note": strings.Repeat("x", 200*1024)}
	large.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{"--max-txn-ops=" + huge}}
	_, err := storage.EtcdCluster.Create(ctx, large, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec: Too long") {
		t.Errorf("Create returned %.300v, want Invalid about the spec", err)
	}

	created := create(t, storage, valid("a"))
	changed := created.DeepCopy()
	changed.Spec.Etcd = &v1beta2.EtcdOptions{ExtraArgs: []string{"--max-txn-ops=" + huge}}
	_, _, err = storage.EtcdCluster.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec: Too long") {
		t.Errorf("Update returned %.300v, want Invalid about the spec", err)
	}

	reported := created.DeepCopy()
	reported.Status.Reason = huge
	_, _, err = storage.Status.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(reported), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status: Too long") {
		t.Errorf("Update of the status returned %.300v, want Invalid about the status", err)
	}
}

// TestLargestFits proves that the limit leaves room: what is just below it is stored.
func TestLargestFits(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	created := create(t, storage, valid("a"))
	created.Status.Reason = strings.Repeat("x", genericstore.MaxObjectBytes-created.Size()-64)
	if _, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(created), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatalf("%.300v", err)
	}
}
