// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// storage declares volumes of a size.
func storage(size string) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) {
		volumes(c)
		c.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// volume returns the bound PVC of a member that was declared with one size, and is of
// another.
func volume(asked, has string) *corev1.PersistentVolumeClaim {
	pvc := PVC(newCluster(storage(asked)), first)
	pvc.Status.Phase = corev1.ClaimBound
	pvc.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	return pvc
}

func TestPVCGrowth(t *testing.T) {
	t.Parallel()
	larger := newCluster(storage("16Gi"))
	rejected := GrowthRejectedPVC(larger, volume("8Gi", "8Gi"), "the class forbids it")
	pending := volume("8Gi", "8Gi")
	pending.Status.Phase = corev1.ClaimPending
	waiting := volume("16Gi", "8Gi")
	waiting.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, Message: "of no use to a reader"},
		{Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionFalse, Message: "over"},
		{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, Message: "a pod must mount it"},
	}
	for name, tc := range map[string]struct {
		cluster *v1beta2.EtcdCluster
		pvc     *corev1.PersistentVolumeClaim
		want    Growth
		why     string
	}{
		"as declared":                 {newCluster(volumes), volume("8Gi", "8Gi"), GrownEnough, ""},
		"the same in another unit":    {newCluster(storage("8192Mi")), volume("8Gi", "8Gi"), GrownEnough, ""},
		"larger than declared":        {newCluster(volumes), volume("16Gi", "16Gi"), GrownEnough, ""},
		"larger than asked for":       {newCluster(volumes), volume("8Gi", "10Gi"), GrownEnough, ""},
		"more is declared":            {larger, volume("8Gi", "8Gi"), GrowthDue, ""},
		"more is declared and has":    {larger, volume("8Gi", "20Gi"), GrowthDue, ""},
		"asked for":                   {larger, volume("16Gi", "8Gi"), GrowthUnderWay, ""},
		"asked for, with a reason":    {larger, waiting, GrowthUnderWay, "FileSystemResizePending: a pod must mount it"},
		"refused":                     {larger, rejected, GrowthRejected, "the class forbids it"},
		"rejected, and more is now":   {newCluster(storage("32Gi")), rejected, GrowthDue, ""},
		"rejected, and taken back":    {newCluster(volumes), rejected, GrownEnough, ""},
		"not bound yet":               {larger, pending, GrownEnough, ""},
		"no size is declared":         {newCluster(storage("0")), volume("8Gi", "8Gi"), GrownEnough, ""},
		"no volumes are declared":     {newCluster(), volume("8Gi", "8Gi"), GrownEnough, ""},
		"rejected in unit of its own": {newCluster(storage("16384Mi")), rejected, GrowthRejected, "the class forbids it"},
	} {
		if got, why := PVCGrowth(tc.cluster, tc.pvc); got != tc.want || why != tc.why {
			t.Errorf("%s: %d (%q), not %d (%q)", name, got, why, tc.want, tc.why)
		}
	}
}

// TestGrownPVC asks for nothing but the size.
func TestGrownPVC(t *testing.T) {
	t.Parallel()
	larger := newCluster(storage("16Gi"))
	rejected := GrowthRejectedPVC(larger, volume("8Gi", "8Gi"), "why")
	grown := GrownPVC(larger, rejected)
	if got := grown.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "16Gi" {
		t.Errorf("it asks for %s", got.String())
	}
	if _, noted := grown.Annotations[AnnotationGrowthRejected]; noted {
		t.Error("it still says that it may not grow")
	}
	if got := rejected.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "8Gi" {
		t.Errorf("the PVC that was given asks for %s", got.String())
	}
	bare := volume("8Gi", "8Gi")
	bare.Spec.Resources.Requests = nil
	if got := GrownPVC(larger, bare).Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "16Gi" {
		t.Errorf("a PVC without any size asks for %s", got.String())
	}
}

// TestRejectionForgotten: what may not be any more is requested again once it was not
// declared meanwhile.
func TestRejectionForgotten(t *testing.T) {
	t.Parallel()
	larger := newCluster(storage("16Gi"))
	rejected := GrowthRejectedPVC(larger, volume("8Gi", "8Gi"), "why")
	MarkAlone(larger, rejected)
	if got, drifted := PVCDrift(larger, rejected); drifted {
		t.Errorf("the note was taken for drift: %+v", got.ObjectMeta)
	}
	cleared, drifted := PVCDrift(newCluster(volumes), rejected)
	if _, noted := cleared.Annotations[AnnotationGrowthRejected]; !drifted || noted {
		t.Errorf("the note stays after the size was taken back: %+v", cleared.ObjectMeta)
	}
	if got, _ := PVCGrowth(larger, cleared); got != GrowthDue {
		t.Errorf("it is not asked for again: %d", got)
	}
}

func TestHasOtherAttributes(t *testing.T) {
	t.Parallel()
	of := func(class *string) *v1beta2.EtcdCluster {
		c := newCluster(volumes)
		c.Spec.Pod.PersistentVolumeClaimSpec.VolumeAttributesClassName = class
		return c
	}
	fast, slow := ptr.To("fast"), ptr.To("slow")
	for name, tc := range map[string]struct {
		desired, live *string
		want          bool
	}{
		"none":             {nil, nil, false},
		"equal":            {fast, ptr.To("fast"), false},
		"another":          {fast, slow, true},
		"not kept":         {fast, nil, true},
		"set by a person":  {nil, slow, false},
		"declared as none": {ptr.To(""), slow, false},
	} {
		if got := HasOtherAttributes(of(tc.desired), PVC(of(tc.live), first)); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
