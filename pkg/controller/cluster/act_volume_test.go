// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// volumeSource is a live API with one survivor, c-a, whose PVC a recovery reads. others are pods and
// PVCs of lost members that exist in spite of what was observed.
type volumeSource struct {
	*nursery
	others       []string
	unresponsive []string
}

func (v *volumeSource) NodeReports(context.Context, []string) (map[string]string, error) {
	return unchangedReports(v.unresponsive), nil
}

// unchangedReports are the reports of nodes that no longer report.
func unchangedReports(names []string) map[string]string {
	reports := map[string]string{}
	for _, name := range names {
		reports[name] = "1"
	}
	return reports
}

func newVolumeSource(t *testing.T) *volumeSource {
	t.Helper()
	v := &volumeSource{nursery: &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}}
	v.recordSource(v1beta2.RecoveryPhaseFilling)
	return v
}

func (v *volumeSource) recordSource(phase v1beta2.RecoveryPhase) *v1beta2.RecoveryStatus {
	recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-new", Source: v1beta2.RecoverySource{Member: "c-a", PVC: "c-a"}}
	v.kept = resources.RecordConfigMap(v.cluster, resources.Record{BootstrapMember: "c-old", ClusterID: "old", Recoveries: []string{"r"}, Recovery: recovery})
	return recovery
}

func (v *volumeSource) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if name == "c-a" {
		return v.nursery.GetPod(ctx, namespace, name)
	}
	if slices.Contains(v.others, "pod "+name) {
		pod := stopped().pod
		pod.Name, pod.UID = name, types.UID("uid-"+name)
		return pod, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (v *volumeSource) GetPVC(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	if name == "c-a" {
		return v.nursery.GetPVC(ctx, namespace, name)
	}
	if slices.Contains(v.others, "PVC "+name) {
		pvc := stopped().pvc
		pvc.Name = name
		return pvc, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

func (v *volumeSource) CreatePVC(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c, nil
}

func (v *volumeSource) Eventf(runtime.Object, string, string, string, ...any) {}

func (v *volumeSource) run() *run {
	s := v.observed()
	s.Pods = []planner.Pod{{Name: "c-a", UID: "pod-uid", Node: "n1", Owned: true}}
	return &run{Reconciler: &Reconciler{Config: Config{Objects: v, Etcd: v, Gate: v, Recorder: v, Clock: noon(), AgentImage: "agent:1"}},
		key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}
}

// TestSourceIsStopped: the pod of the survivor is deleted only while the live API proves the loss, and
// only if its PVC stays.
func TestSourceIsStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since func(*volumeSource)
		want  bool
	}{
		"the loss is proven":                       {func(*volumeSource) {}, true},
		"a lost member has a pod":                  {func(v *volumeSource) { v.others = []string{"pod c-b"} }, false},
		"a lost member has its PVC":                {func(v *volumeSource) { v.others = []string{"PVC c-b"} }, false},
		"the PVC of the survivor was deleted":      {func(v *volumeSource) { v.pvc = nil }, false},
		"the PVC of the survivor is being deleted": {func(v *volumeSource) { v.pvc.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"the pod was replaced":                     {func(v *volumeSource) { v.pod.UID = "other" }, false},
		"the recovery has ended":                   {func(v *volumeSource) { v.recordSource(v1beta2.RecoveryPhaseAbandoned) }, false},
		"the recovery was cancelled":               {func(v *volumeSource) { v.cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: "r", Cancelled: true} }, false},
		"the node of the survivor does not report": {func(v *volumeSource) { v.unresponsive = []string{"n1"} }, false},
		"the status was written since":             {func(v *volumeSource) { v.cluster.ResourceVersion = "99" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolumeSource(t)
			r, recovery := v.run(), resources.ParseRecord(v.kept).Recovery
			test.since(v)
			err := stopSource(t.Context(), r, planner.StopSource{Recovery: *recovery, Lost: []string{"c-b"}})
			if deleted := slices.Contains(v.calls, "delete pod"); deleted != test.want || test.want == errors.Is(err, reconcile.ErrStale) {
				t.Errorf("deleted %t, error %v", deleted, err)
			}
			if test.want && ptr.Deref(v.only.UID, "") != "pod-uid" {
				t.Errorf("it is deleted only if %+v", v.only)
			}
		})
	}
}

// TestNoEtcdRunsOnAVolumeThatIsRead: the recovery member is not created before the survivor has ended,
// and the survivor does not start while its PVC is read.
func TestNoEtcdRunsOnAVolumeThatIsRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*volumeSource)
		want bool
	}{
		"its pod exists":                           {func(*volumeSource) {}, false},
		"its pod is ending":                        {func(v *volumeSource) { v.pod.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"its pod has ended":                        {func(v *volumeSource) { v.pod.Status.Phase = corev1.PodFailed }, true},
		"its pod no longer exists":                 {func(v *volumeSource) { v.pod = nil }, true},
		"its PVC is deleted":                       {func(v *volumeSource) { v.pod, v.pvc = nil, nil }, false},
		"its PVC is deleted, and a copy may exist": {func(v *volumeSource) { v.pod, v.pvc, v.others = nil, nil, []string{"PVC c-new"} }, true},
	} {
		v := newVolumeSource(t)
		r, recovery := v.run(), resources.ParseRecord(v.kept).Recovery
		test.edit(v)
		err := createRecoveryMember(t.Context(), r, planner.CreateRecoveryMember{Recovery: *recovery})
		if created := v.made != nil; created != test.want || test.want == errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: created %t, error %v", name, created, err)
		}
	}
	for phase, want := range map[v1beta2.RecoveryPhase]bool{v1beta2.RecoveryPhaseFilling: false, v1beta2.RecoveryPhaseCutover: false, v1beta2.RecoveryPhaseAbandoned: true} {
		v := newVolumeSource(t)
		r := v.run() // it was observed before
		v.recordSource(phase)
		if err := requireNotRead(t.Context(), r, "c-a"); (err == nil) != want {
			t.Errorf("%s: %v", phase, err)
		}
		if err := requireNotRead(t.Context(), r, "c-b"); err != nil {
			t.Errorf("another member: %v", err)
		}
	}
}
