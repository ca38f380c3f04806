// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

func scaleContext(t *testing.T) context.Context {
	return registrytest.Context(t.Context(), ns, "etcdclusters", "scale")
}

func getScale(t *testing.T, storage Storage, name string) *autoscalingv1.Scale {
	t.Helper()
	obj, err := storage.Scale.Get(scaleContext(t), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*autoscalingv1.Scale)
}

func updateScale(t *testing.T, storage Storage, name string, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	t.Helper()
	obj, created, err := storage.Scale.Update(scaleContext(t), name, rest.DefaultUpdatedObjectInfo(scale),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	if created {
		t.Error("a scale was created")
	}
	return obj.(*autoscalingv1.Scale), nil
}

func TestScaleShowsTheCluster(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	created := create(t, storage, valid("a"))
	created.Status.Replicas, created.Status.Selector = 2, "app=etcd,etcd_cluster=a"
	if _, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(created),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale := getScale(t, storage, "a")
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != "app=etcd,etcd_cluster=a" {
		t.Errorf("unexpected scale %+v %+v", scale.Spec, scale.Status)
	}
	if scale.Name != "a" || scale.Namespace != ns || scale.UID != created.UID || scale.ResourceVersion == "" {
		t.Errorf("unexpected metadata %+v", scale.ObjectMeta)
	}
}

func TestScaleChangesTheSize(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	scale := getScale(t, storage, "a")
	scale.Spec.Replicas = 5
	scaled, err := updateScale(t, storage, "a", scale)
	if err != nil {
		t.Fatal(err)
	}
	if scaled.Spec.Replicas != 5 || scaled.ResourceVersion == scale.ResourceVersion {
		t.Errorf("unexpected scale %+v", scaled)
	}
	obj, err := storage.EtcdCluster.Get(requestContext(t), "a", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := obj.(*v1beta2.EtcdCluster)
	if *cluster.Spec.Replicas != 5 || cluster.Generation != 2 || cluster.Spec.Version != "3.6.16" {
		t.Errorf("unexpected cluster %+v", cluster.Spec)
	}
}

func TestScaleRejects(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	for _, test := range []struct {
		name   string
		object string
		change func(*autoscalingv1.Scale)
		is     func(error) bool
		says   string
	}{
		{"negative size is rejected", "a", func(s *autoscalingv1.Scale) { s.Spec.Replicas = -1 }, apierrors.IsInvalid, "spec.replicas"},
		{"size above the limit is rejected", "a", func(s *autoscalingv1.Scale) { s.Spec.Replicas = 99 }, apierrors.IsInvalid, "spec.size"},
		{"hibernation without PVCs is rejected", "a", func(s *autoscalingv1.Scale) { s.Spec.Replicas = 0 }, apierrors.IsInvalid, "spec.size"},
		{"Scale with another UID is rejected", "a", func(s *autoscalingv1.Scale) { s.UID = "other" }, apierrors.IsConflict, "UID"},
		{"Scale with an old resource version is rejected", "a", func(s *autoscalingv1.Scale) { s.ResourceVersion = "1"; s.Spec.Replicas = 5 }, apierrors.IsConflict, "modified"},
		{"Scale of a cluster that does not exist is not found", "b", func(s *autoscalingv1.Scale) { s.Name, s.UID, s.ResourceVersion = "b", "", "" }, apierrors.IsNotFound, "not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scale := getScale(t, storage, "a")
			test.change(scale)
			_, err := updateScale(t, storage, test.object, scale)
			if !test.is(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want an error that names %s", err, test.says)
			}
		})
	}
	if scale := getScale(t, storage, "a"); scale.Spec.Replicas != 3 {
		t.Errorf("a rejected change left %d replicas", scale.Spec.Replicas)
	}
}

// TestScaleRejectsUnsafeSizes checks that a size is rejected only if the members cannot reach it
// safely now, and that the error gives the reason.
func TestScaleRejectsUnsafeSizes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost, sick, learner bool
		size                int32
		says                string
	}{
		"all members are healthy, so two may be removed":       {size: 3},
		"one member is not healthy, so one may be removed":     {sick: true, size: 4},
		"one member is not healthy, so two may not be removed": {sick: true, size: 3, says: "member a-5 is not healthy"},
		"one member is not healthy, and members may be added":  {sick: true, size: 7},
		"a joining member does not prevent the removal of two": {learner: true, size: 3},
		"without a quorum no member may be removed":            {lost: true, size: 4, says: "the quorum is lost"},
		"without a quorum no member may be added":              {lost: true, size: 6, says: "the quorum is lost"},
		"without a quorum the same size is accepted":           {lost: true, size: 5},
		"without a quorum hibernation is accepted":             {lost: true, size: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			cluster := valid("a")
			cluster.Spec.Replicas = ptr.To[int32](5)
			cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}}
			cluster = create(t, storage, cluster)
			cluster.Status.Replicas = 5
			for i, role := range []v1beta2.MemberRole{v1beta2.MemberRoleLeader, v1beta2.MemberRoleFollower, v1beta2.MemberRoleFollower, v1beta2.MemberRoleFollower, v1beta2.MemberRoleFollower} {
				m := v1beta2.MemberStatus{Name: fmt.Sprintf("a-%d", i+1), Role: role, Healthy: corev1.ConditionTrue}
				if i == 4 && test.sick {
					m.Healthy = corev1.ConditionUnknown
				}
				cluster.Status.MemberStatuses = append(cluster.Status.MemberStatuses, m)
			}
			if test.learner {
				cluster.Status.MemberStatuses = append(cluster.Status.MemberStatuses,
					v1beta2.MemberStatus{Name: "a-6", Role: v1beta2.MemberRoleLearner, Healthy: corev1.ConditionFalse})
			}
			if test.lost {
				cluster.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue}}
			}
			if _, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(cluster),
				rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			scale := getScale(t, storage, "a")
			scale.Spec.Replicas = test.size
			_, err := updateScale(t, storage, "a", scale)
			rejected := apierrors.IsInvalid(err) && strings.Contains(err.Error(), test.says) && strings.Contains(err.Error(), "spec.replicas")
			if test.says == "" && err != nil || test.says != "" && !rejected {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestScaleAsksAdmission(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	rejected := errors.New("rejected by admission")
	scale := getScale(t, storage, "a")
	scale.Spec.Replicas = 5
	_, _, err := storage.Scale.Update(scaleContext(t), "a", rest.DefaultUpdatedObjectInfo(scale), rest.ValidateAllObjectFunc,
		func(_ context.Context, obj, old runtime.Object) error {
			newer, older := obj.(*autoscalingv1.Scale), old.(*autoscalingv1.Scale)
			if newer.Spec.Replicas != 5 || older.Spec.Replicas != 3 {
				t.Errorf("admission sees %d after %d replicas", newer.Spec.Replicas, older.Spec.Replicas)
			}
			return rejected
		}, false, &metav1.UpdateOptions{})
	if !errors.Is(err, rejected) {
		t.Errorf("got %v, want what admission said", err)
	}
}

// TestScaleMapsFieldManagers checks that the manager of spec.size of the cluster is the manager of
// spec.replicas of the Scale, and the reverse.
func TestScaleMapsFieldManagers(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	owned := valid("a")
	owned.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "etcd.database.coreos.com/v1beta2",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{},"f:version":{}}}`),
	}}
	create(t, storage, owned)

	var shown []metav1.ManagedFieldsEntry
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		scale := old.(*autoscalingv1.Scale).DeepCopy()
		shown = scale.ManagedFields
		scale.Spec.Replicas = 5
		scale.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "autoscaler", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "autoscaling/v1", Subresource: "scale",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
		return scale, nil
	})
	if _, _, err := storage.Scale.Update(scaleContext(t), "a", info, rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	if owners := ownersOf(t, shown, "spec", "replicas"); len(owners) != 1 || owners[0] != "gitops" {
		t.Errorf("owners of spec.replicas are %q, want gitops", owners)
	}
	obj, err := storage.EtcdCluster.Get(requestContext(t), "a", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managed := obj.(*v1beta2.EtcdCluster).ManagedFields
	if owners := ownersOf(t, managed, "spec", "size"); len(owners) != 1 || owners[0] != "autoscaler" {
		t.Errorf("owners of spec.size are %q, want autoscaler", owners)
	}
	if owners := ownersOf(t, managed, "spec", "version"); len(owners) != 1 || owners[0] != "gitops" {
		t.Errorf("owners of spec.version are %q, want gitops", owners)
	}
}

func ownersOf(t *testing.T, managed []metav1.ManagedFieldsEntry, parts ...any) []string {
	t.Helper()
	path := fieldpath.MakePathOrDie(parts...)
	var owners []string
	for _, entry := range managed {
		set := &fieldpath.Set{}
		if err := set.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())); err != nil {
			t.Fatal(err)
		}
		if set.Has(path) {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

func TestScaleDryRun(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	scale := getScale(t, storage, "a")
	scale.Spec.Replicas = 5
	obj, _, err := storage.Scale.Update(scaleContext(t), "a", rest.DefaultUpdatedObjectInfo(scale), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if got := obj.(*autoscalingv1.Scale).Spec.Replicas; got != 5 {
		t.Errorf("dry run returns %d replicas, want 5", got)
	}
	if got := getScale(t, storage, "a").Spec.Replicas; got != 3 {
		t.Errorf("dry run left %d replicas, want 3", got)
	}
}
