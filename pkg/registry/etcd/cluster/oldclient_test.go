// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// heard records warnings.
type heard []string

func (h *heard) AddWarning(_, text string) { *h = append(*h, text) }

// update changes cluster a with a request of this verb, and returns what is stored and the warnings.
func update(t *testing.T, storage Storage, verb string, change func(*v1beta2.EtcdCluster)) (*v1beta2.EtcdCluster, heard) {
	t.Helper()
	var said heard
	ctx := warning.WithWarningRecorder(request.WithRequestInfo(requestContext(t), &request.RequestInfo{
		IsResourceRequest: true, Verb: verb, Namespace: ns, Resource: "etcdclusters", Name: "a",
	}), &said)
	changed := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		cluster := old.DeepCopyObject().(*v1beta2.EtcdCluster)
		change(cluster)
		v1beta2.SetObjectDefaults_EtcdCluster(cluster) // as after decoding
		return cluster, nil
	})
	got, _, err := storage.EtcdCluster.Update(ctx, "a", changed, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.(*v1beta2.EtcdCluster), said
}

// asOldClient leaves of a cluster what the types of 2018 had.
func asOldClient(c *v1beta2.EtcdCluster) {
	old := v1beta2.ClusterSpec{Replicas: c.Spec.Replicas, Repository: c.Spec.Repository, Version: c.Spec.Version, Paused: c.Spec.Paused}
	if c.Spec.Pod != nil {
		old.Pod = &v1beta2.PodPolicy{Labels: c.Spec.Pod.Labels, PersistentVolumeClaimSpec: c.Spec.Pod.PersistentVolumeClaimSpec}
	}
	c.Spec = old
}

// TestOnlyFalseLiftsProtection: an update that does not name deletionProtection keeps it, whatever its
// verb; so the cluster cannot be deleted after an update by a client that does not know the field.
func TestOnlyFalseLiftsProtection(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	protected := valid("a")
	protected.Spec.DeletionProtection = ptr.To(true)
	create(t, storage, protected)
	remove := func() error {
		_, _, err := storage.EtcdCluster.Delete(requestContext(t), "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		return err
	}
	for _, verb := range []string{"update", "patch"} {
		got, _ := update(t, storage, verb, func(c *v1beta2.EtcdCluster) { c.Spec.DeletionProtection = nil })
		if !got.IsDeletionProtected() || got.Generation != 1 {
			t.Errorf("%s without the field: protected %t, generation %d", verb, got.IsDeletionProtected(), got.Generation)
		}
	}
	if got, _ := update(t, storage, "update", func(c *v1beta2.EtcdCluster) {
		asOldClient(c)
		c.Spec.Replicas = ptr.To[int32](5)
	}); !got.IsDeletionProtected() || *got.Spec.Replicas != 5 {
		t.Errorf("an update by a client of the original types makes it %+v", got.Spec)
	}
	if err := remove(); !apierrors.IsForbidden(err) {
		t.Fatalf("the deletion returns %v, want Forbidden", err)
	}
	lifted, _ := update(t, storage, "patch", func(c *v1beta2.EtcdCluster) { c.Spec.DeletionProtection = ptr.To(false) })
	if lifted.IsDeletionProtected() || lifted.Generation != 3 {
		t.Errorf("false makes it protected %t, generation %d", lifted.IsDeletionProtected(), lifted.Generation)
	}
	if err := remove(); err != nil {
		t.Fatalf("the deletion returns %v", err)
	}
}

// TestOldClientIsWarned: an update that drops all fields that the original types lack names them.
func TestOldClientIsWarned(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	const removed = "spec.etcd, spec.pod.priorityClassName, spec.podDisruptionBudget, spec.recovery: this update removed"
	full := func(c *v1beta2.EtcdCluster) {
		c.Spec.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To[int64](5000)}
		c.Spec.Recovery = &v1beta2.RecoveryPolicy{MemberLoss: v1beta2.RecoveryManual}
		c.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled
		c.Spec.Pod = &v1beta2.PodPolicy{PriorityClassName: "high", Labels: map[string]string{"a": "b"}}
		c.Spec.DeletionProtection = ptr.To(true)
	}
	create(t, storage, valid("a"))
	for _, tc := range []struct {
		name, verb string
		change     func(*v1beta2.EtcdCluster)
		warned     bool
	}{
		{"a PUT by an old client", "update", asOldClient, true},
		{"a patch", "patch", asOldClient, false},
		{"a PUT that removes one field", "update", func(c *v1beta2.EtcdCluster) { c.Spec.Etcd = nil }, false},
		{"a PUT that changes nothing newer", "update", func(c *v1beta2.EtcdCluster) { c.Spec.Replicas = ptr.To[int32](7) }, false},
	} {
		update(t, storage, "update", full)
		_, said := update(t, storage, tc.verb, tc.change)
		if got := strings.Contains(strings.Join(said, "\n"), removed); got != tc.warned {
			t.Errorf("%s: warned %t, want %t: %q", tc.name, got, tc.warned, said)
		}
	}
}
