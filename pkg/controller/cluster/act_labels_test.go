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
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// unseenRecoveryMember is a live API in which the pod of the recovery member exists, and which keeps what
// is updated.
type unseenRecoveryMember struct {
	*nursery
	updated []metav1.Object
}

func (u *unseenRecoveryMember) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return nil, apierrors.NewAlreadyExists(corev1.Resource("pods"), pod.Name)
}

func (u *unseenRecoveryMember) UpdatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	u.updated = append(u.updated, pod)
	return pod, nil
}

func (u *unseenRecoveryMember) UpdatePVC(_ context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	u.updated = append(u.updated, pvc)
	return pvc, nil
}

// loseLabels are ways in which an object loses its labels.
var loseLabels = map[string]func(metav1.Object){
	"one label": func(o metav1.Object) {
		delete(o.GetLabels(), resources.LabelApp)
	},
	"all labels": func(o metav1.Object) { o.SetLabels(nil) },
}

// TestUnseenRecoveryMemberIsSeenAgain: a recovery member whose pod or PVC has lost its labels looks like
// one that does not exist. It gets its labels back before it is created again, deleted or recorded as lost,
// and it stays hidden from clients unless it was published.
func TestUnseenRecoveryMemberIsSeenAgain(t *testing.T) {
	t.Parallel()
	const filling, cutover, cleaning = v1beta2.RecoveryPhaseFilling, v1beta2.RecoveryPhaseCutover, v1beta2.RecoveryPhaseCleaning
	create := func(r *run, recovery v1beta2.RecoveryStatus) error {
		return createRecoveryMember(t.Context(), r, planner.CreateRecoveryMember{Recovery: recovery})
	}
	remove := func(r *run, recovery v1beta2.RecoveryStatus) error {
		return deleteRecoveryMember(t.Context(), r, planner.DeleteRecoveryMember{Name: recovery.RecoveryMember})
	}
	recordLost := func(r *run, recovery v1beta2.RecoveryStatus) error {
		recovery.Phase = v1beta2.RecoveryPhaseSucceeded
		return recordRecovery(t.Context(), r, planner.RecordRecovery{Recovery: recovery, Gone: recovery.RecoveryMember})
	}
	for _, test := range []struct {
		name  string
		phase v1beta2.RecoveryPhase
		act   func(*run, v1beta2.RecoveryStatus) error
		pvc   bool
	}{
		{"the pod is created again", filling, create, false},
		{"the pod is created again after the cutover", cutover, create, false},
		{"the pod is deleted", filling, remove, false},
		{"the PVC is deleted", filling, remove, true},
		{"the pod is lost before it was published", cutover, recordLost, false},
		{"the PVC is lost before it was published", cutover, recordLost, true},
		{"the published pod is lost", cleaning, recordLost, false},
		{"the published PVC is lost", cleaning, recordLost, true},
	} {
		for what, lose := range loseLabels {
			t.Run(test.name+", without "+what, func(t *testing.T) {
				t.Parallel()
				u, recovery := newUnseenRecoveryMember(t, test.phase)
				lose(u.pod)
				if test.pvc {
					lose(u.pvc)
					u.pod = nil
				}
				r := &Reconciler{Config: Config{Objects: u, Etcd: u, Gate: u, Recorder: u, AgentImage: "agent:1"}}
				err := test.act(&run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: u.observed()}, recovery)
				if !errors.Is(err, reconcile.ErrStale) || len(u.updated) != 1 {
					t.Fatalf("it updated %v and did %q, error %v", u.updated, u.calls, err)
				}
				if slices.Contains(u.calls, "delete pod") || slices.Contains(u.calls, "delete PVC") {
					t.Errorf("it did %q", u.calls)
				}
				want := resources.RecoveryLabels("c")
				if test.phase == cleaning {
					want = resources.Labels("c")
				}
				want[resources.LabelMember] = "c-a"
				labels := u.updated[0].GetLabels()
				for key, value := range want {
					if labels[key] != value {
						t.Errorf("labels %v, want %v", labels, want)
					}
				}
				if resources.IsHidden(labels, "c") != (test.phase != cleaning) {
					t.Errorf("hidden by labels %v in phase %s", labels, test.phase)
				}
			})
		}
	}
}

// newUnseenRecoveryMember returns the live API in a phase of a recovery, and that recovery.
func newUnseenRecoveryMember(t *testing.T, phase v1beta2.RecoveryPhase) (*unseenRecoveryMember, v1beta2.RecoveryStatus) {
	t.Helper()
	u := &unseenRecoveryMember{nursery: &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}}
	recovery := v1beta2.RecoveryStatus{ID: "r", Phase: phase, RecoveryMember: "c-a", Source: v1beta2.RecoverySource{Member: "c-old"}}
	u.pvc = resources.RecoveryPVC(u.cluster, &recovery)
	metav1.SetMetaDataAnnotation(&u.pvc.ObjectMeta, resources.AnnotationVersion, resources.Version(u.cluster))
	resources.CopyRecovery(u.pod, &recovery)
	if phase == v1beta2.RecoveryPhaseCleaning {
		resources.IsPublished(&u.pvc.Labels, "c")
	} else {
		u.pod.Labels = resources.RecoveryLabels("c")
		u.pod.Labels[resources.LabelMember] = "c-a"
	}
	u.record(t, phase, "old")
	return u, recovery
}
