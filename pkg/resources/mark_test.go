// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func protection(c *v1beta2.EtcdCluster) { c.Spec.DeletionProtection = ptr.To(true) }

// TestMarks: every object of a cluster says whose it is and whether the cluster is
// protected. A new one has an owner reference.
func TestMarks(t *testing.T) {
	t.Parallel()
	open, closed := newCluster(volumes), newCluster(volumes, protection)
	objects := func(c *v1beta2.EtcdCluster) map[string]metav1.Object {
		return map[string]metav1.Object{
			"pod": Pod(c, MemberPod{Name: first}), "PVC": PVC(c, first), "headless Service": PeerService(c), "client Service": ClientService(c),
			"budget": PodDisruptionBudget(c, 2), "secret": CertificateSecret(c, CASecret(c), nil), "record": RecordConfigMap(c, Record{}),
		}
	}
	of := objects(closed)
	for name, obj := range objects(open) {
		if !IsMarked(open, obj) || IsMarked(closed, obj) || !IsMarked(closed, of[name]) || IsMarked(open, of[name]) {
			t.Errorf("%s: the marks are %v %v, and protected %v", name, obj.GetLabels(), obj.GetAnnotations(), of[name].GetLabels())
		}
		if !Owns(open, obj) {
			t.Errorf("%s does not belong to its cluster", name)
		}
		if metav1.GetControllerOf(obj) == nil {
			t.Errorf("a new %s has no owner reference: nothing would delete it if its cluster no longer exists", name)
		}
		if !Mark(closed, obj) || !IsMarked(closed, obj) || Mark(closed, obj) || !Mark(open, obj) || !IsMarked(open, obj) {
			t.Errorf("%s cannot be marked: %v", name, obj.GetLabels())
		}
	}
}

// TestObjectLabels: every object has the labels of spec.metadata, those that exist get them, and no pod restarts for them.
func TestObjectLabels(t *testing.T) {
	t.Parallel()
	before, now := newCluster(volumes), newCluster(volumes, func(c *v1beta2.EtcdCluster) {
		c.Spec.Metadata = &v1beta2.ObjectsMetadata{Labels: map[string]string{"team": "data"}}
	})
	for _, obj := range []metav1.Object{
		Pod(before, MemberPod{Name: first}), PVC(before, first), PeerService(before), ClientService(before),
		PodDisruptionBudget(before, 2), CertificateSecret(before, CASecret(before), nil), RecordConfigMap(before, Record{}),
	} {
		if IsMarked(now, obj) || !Mark(now, obj) || !IsMarked(now, obj) || obj.GetLabels()["team"] != "data" || !IsMarked(before, obj) {
			t.Errorf("%T has the labels %v", obj, obj.GetLabels())
		}
	}
	if pod := Pod(now, MemberPod{Name: first}); pod.Labels["team"] != "data" || pod.Labels[LabelCluster] != now.Name {
		t.Errorf("a new pod has the labels %v", pod.Labels)
	}
	if TemplateHash(before) != TemplateHash(now) {
		t.Error("the labels change the template of pods")
	}
}

// TestMarkAlone drops the owner reference of a new object, and HandOver puts it back
// when the cluster is deleted.
func TestMarkAlone(t *testing.T) {
	t.Parallel()
	c := newCluster()
	secret := CertificateSecret(c, CASecret(c), nil)
	if IsMarkedAlone(c, secret) || !MarkAlone(c, secret) || !IsMarkedAlone(c, secret) || MarkAlone(c, secret) || len(secret.OwnerReferences) > 0 {
		t.Errorf("confirmed: %+v", secret.ObjectMeta)
	}
	if !HandOver(c, secret) || HandOver(c, secret) || metav1.GetControllerOf(secret).UID != c.UID || IsMarkedAlone(c, secret) {
		t.Errorf("handed over: %+v", secret.ObjectMeta)
	}
	if fresh := CertificateSecret(c, CASecret(c), nil); !HandOver(c, fresh) {
		t.Error("handing over what has its owner reference still changes nothing: a late MarkAlone would succeed")
	}
}

// TestOrphaned tells an object that lost its owner reference from one that has it, and from
// one of something else.
func TestOrphaned(t *testing.T) {
	t.Parallel()
	c := newCluster()
	pod := Pod(c, MemberPod{Name: first})
	if IsOrphaned(c, pod) {
		t.Error("a new pod counts as orphaned")
	}
	pod.OwnerReferences = nil
	if !IsOrphaned(c, pod) {
		t.Error("a pod without its owner reference does not count as orphaned")
	}
	if IsOrphaned(c, &corev1.Pod{}) {
		t.Error("a pod without an owner counts as orphaned")
	}
}

// TestReleasedIsUnprotected: the controller never looks at a released PVC again, so it
// must not keep a label that only the controller may remove.
func TestReleasedIsUnprotected(t *testing.T) {
	t.Parallel()
	c := newCluster(volumes, protection)
	pvc := Released(c, PVC(c, first))
	if _, labelled := pvc.Labels[LabelProtected]; labelled || Owns(c, pvc) {
		t.Errorf("released: %+v", pvc.ObjectMeta)
	}
}
