// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// shelf is a live API that holds the pods and the PVCs of two lineages.
type shelf struct {
	*hiddenRecoveryMember
	pods map[string]*corev1.Pod
	pvcs map[string]*corev1.PersistentVolumeClaim
	// gone are what was deleted, each with what that depended on.
	gone map[string]metav1.Preconditions
	// stopped are the pods that had only a second to end.
	stopped []string
}

func (s *shelf) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if p := s.pods[name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (s *shelf) GetPVC(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	if c := s.pvcs[name]; c != nil {
		return c.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

func (s *shelf) ListPods(_ context.Context, _, name string) ([]corev1.Pod, error) {
	var list []corev1.Pod
	for _, p := range s.pods {
		if p.Labels[resources.LabelCluster] == name {
			list = append(list, *p)
		}
	}
	return list, nil
}

func (s *shelf) ListControlledPods(_ context.Context, c *v1beta2.EtcdCluster) ([]corev1.Pod, error) {
	var list []corev1.Pod
	for _, p := range s.pods {
		if metav1.IsControlledBy(p, c) {
			list = append(list, *p)
		}
	}
	return list, nil
}

func (s *shelf) ListPVCs(_ context.Context, _, name string) ([]corev1.PersistentVolumeClaim, error) {
	var list []corev1.PersistentVolumeClaim
	for _, c := range s.pvcs {
		if c.Labels[resources.LabelCluster] == name {
			list = append(list, *c)
		}
	}
	return list, nil
}

func (s *shelf) UpdatePod(_ context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	s.pods[p.Name] = p
	return p, nil
}

func (s *shelf) UpdatePVC(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	s.pvcs[c.Name] = c
	return c, nil
}

func (s *shelf) DeletePod(_ context.Context, _, name string, only metav1.Preconditions) error {
	s.gone["pod "+name] = only
	delete(s.pods, name)
	return nil
}

func (s *shelf) StopPod(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	s.stopped = append(s.stopped, name)
	return s.DeletePod(ctx, namespace, name, only)
}

func (s *shelf) DeletePVC(_ context.Context, _, name string, only metav1.Preconditions) error {
	s.gone["PVC "+name] = only
	delete(s.pvcs, name)
	return nil
}

// overtaken is a live API in which another process ends the recovery while the objects are listed.
type overtaken struct {
	*shelf
	end func()
}

func (o *overtaken) ListPVCs(ctx context.Context, namespace, name string) ([]corev1.PersistentVolumeClaim, error) {
	o.end()
	return o.shelf.ListPVCs(ctx, namespace, name)
}

// labelled says which lineage each object carries the label of.
func (s *shelf) labelled() map[string]string {
	found := map[string]string{}
	note := func(kind string, o metav1.Object) {
		for _, label := range []string{resources.LabelCluster, resources.LabelFenced, resources.LabelRecovery} {
			if o.GetLabels()[label] != "" {
				found[kind+" "+o.GetName()] += label
			}
		}
	}
	for _, p := range s.pods {
		note("pod", p)
	}
	for _, c := range s.pvcs {
		note("PVC", c)
	}
	return found
}

var fenceNow = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// twoLineages returns the old members c-old and c-late, the recovery member, and an object
// of another cluster under an old name. The record names c-old and the recovery member.
func twoLineages(t *testing.T) (*shelf, *Reconciler, *seen, *v1beta2.RecoveryStatus) {
	t.Helper()
	h := &hiddenRecoveryMember{oneMember: stopped()}
	s := &shelf{h, map[string]*corev1.Pod{}, map[string]*corev1.PersistentVolumeClaim{}, map[string]metav1.Preconditions{}, nil}
	for _, name := range []string{"c-old", "c-late", "c-theirs", "c-a"} {
		pod, pvc := resources.Pod(h.cluster, resources.MemberPod{Name: name}), resources.PVC(h.cluster, name)
		pod.UID, pvc.UID, pvc.ResourceVersion = types.UID("pod-"+name), types.UID("pvc-"+name), "3"
		if name == "c-a" {
			pvc = resources.RecoveryPVC(h.cluster, &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: name})
			pod.Labels = pvc.DeepCopy().Labels
		}
		if name == "c-theirs" {
			pod.OwnerReferences[0].UID, pvc.OwnerReferences, pvc.Annotations = "other", nil, nil
		}
		s.pods[name], s.pvcs[name] = pod, pvc
	}
	for _, labels := range []map[string]string{s.pods["c-old"].Labels, s.pvcs["c-old"].Labels} {
		delete(labels, resources.LabelCluster) // a user has taken them off
	}
	h.record(t, v1beta2.RecoveryPhaseCutover, "old")
	recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseCutover, RecoveryMember: "c-a", OldMembers: []string{"c-old", "c-theirs", "c-never", "c-a"}}
	r := &Reconciler{Config: Config{Objects: s, Etcd: h, Gate: h, Recorder: h, Clock: clocktesting.NewFakePassiveClock(fenceNow)}}
	seen := h.observed()
	seen.Cluster, seen.RecoveryMember.Pod = h.cluster, &planner.Pod{Name: "c-a", UID: "pod-c-a"}
	return s, r, seen, recovery
}

// TestFenceOldMembers: all old members are decommissioned, no other member is, and their
// PVCs are kept. The step is complete only when their pods have ended.
func TestFenceOldMembers(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	fenceOldMembers := func() error {
		return fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery})
	}
	if err := fenceOldMembers(); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("it is over while pods are deleted: %v", err)
	}
	if diff := cmp.Diff([]string{"pod c-late", "pod c-old"}, slices.Sorted(maps.Keys(s.gone))); diff != "" {
		t.Errorf("deleted: %s", diff)
	}
	if want := []string{"c-late", "c-old"}; !slices.Equal(s.stopped, want) {
		t.Errorf("%q have a second to end, want %q: a leader waits for seven seconds for another leader", s.stopped, want)
	}
	for what, only := range s.gone {
		if only.UID == nil {
			t.Errorf("%s is deleted whatever its UID is", what)
		}
	}
	want := map[string]string{
		"PVC c-old": resources.LabelFenced, "PVC c-late": resources.LabelFenced, "pod c-a": resources.LabelRecovery, "PVC c-a": resources.LabelRecovery,
		"pod c-theirs": resources.LabelCluster, "PVC c-theirs": resources.LabelCluster,
	}
	if diff := cmp.Diff(want, s.labelled()); diff != "" {
		t.Errorf("labelled: %s", diff)
	}
	if err := fenceOldMembers(); err != nil {
		t.Errorf("no old member is left: %v", err)
	}
	for _, object := range []metav1.Object{s.pods["c-a"], s.pvcs["c-a"]} {
		if began := resources.RecoveriesOn(object); !slices.Equal(began, []string{"before", "r"}) {
			t.Errorf("the recovery member knows recoveries %q", began)
		}
	}
}

// TestFenceRequiresTheRecoveryMember: while the old members end, the recovery member may be lost and created
// again. It is not published before it was observed to serve again.
func TestFenceRequiresTheRecoveryMember(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*shelf){
		"it is lost":          func(s *shelf) { delete(s.pods, "c-a") },
		"it is created again": func(s *shelf) { s.pods["c-a"].UID = "another" },
	} {
		s, r, seen, recovery := twoLineages(t)
		fence := func() error {
			return fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery})
		}
		_ = fence() // the old members end
		if err := fence(); err != nil {
			t.Fatalf("%s: no old member is left: %v", name, err)
		}
		lose(s)
		if err := fence(); !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFenceBootstrapMember: the bootstrap member is decommissioned although it has lost its labels and no
// status named it.
func TestFenceBootstrapMember(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	recovery.OldMembers = nil
	s.pods["c-old"].Labels, s.pvcs["c-old"].Labels = nil, nil
	err := fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery})
	if _, deleted := s.gone["pod c-old"]; !errors.Is(err, reconcile.ErrStale) || !deleted || s.labelled()["PVC c-old"] != resources.LabelFenced {
		t.Errorf("deleted %v, labelled %v, error %v", s.gone, s.labelled(), err)
	}
}

// TestFenceUnlabelledPod: the pod of a member that no status names and that has lost its labels is
// decommissioned like the others. Its node may be cut off, and its etcd may serve clients there.
func TestFenceUnlabelledPod(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	s.pods["c-late"].Labels = nil
	delete(s.pvcs, "c-late") // it has no volume, so no other object has its name
	err := fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery})
	if _, deleted := s.gone["pod c-late"]; !errors.Is(err, reconcile.ErrStale) || !deleted {
		t.Errorf("deleted %v, error %v", s.gone, err)
	}
	if _, deleted := s.gone["pod c-theirs"]; deleted {
		t.Error("the pod of another cluster was deleted")
	}
}

// TestUnlabelledPodIsSeenAgain: a recovery and a restore that go by what the labels show first give a pod
// its labels back.
func TestUnlabelledPodIsSeenAgain(t *testing.T) {
	t.Parallel()
	s, r, seen, _ := twoLineages(t)
	check := func() error { return requireAllLabelled(t.Context(), &run{Reconciler: r, seen: seen}) }
	s.pods["c-late"].Labels, s.pods["c-late"].Status.Phase = nil, corev1.PodRunning
	s.pods["c-old"].Labels[resources.LabelFenced] = "c" // an earlier recovery has decommissioned it
	if err := check(); !errors.Is(err, reconcile.ErrStale) || s.pods["c-late"].Labels[resources.LabelCluster] != "c" {
		t.Errorf("error %v, labels %v", err, s.pods["c-late"].Labels)
	}
	if err := check(); err != nil {
		t.Errorf("all have their labels: %v", err)
	}
	for name, p := range s.pods {
		if fenced := p.Labels[resources.LabelCluster] == "" && name != "c-a"; fenced != (name == "c-old") {
			t.Errorf("%s has the labels %v", name, p.Labels)
		}
	}
}

// TestFenceWaitsForPods: the step waits for each pod for as long as there is no evidence
// that it has ended. A node that does not respond gives no evidence.
func TestFenceWaitsForPods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		end   time.Duration
		phase corev1.PodPhase
		want  error
	}{
		{time.Second, corev1.PodRunning, reconcile.ErrStale},
		{-time.Second, corev1.PodRunning, reconcile.ErrStale},
		{-fenceGrace - time.Second, corev1.PodRunning, errNotEnded},
		{-24 * time.Hour, corev1.PodPending, errNotEnded},
		{time.Second, corev1.PodFailed, nil},
		{-time.Hour, corev1.PodSucceeded, nil},
	} {
		s, r, seen, recovery := twoLineages(t)
		for _, name := range []string{"c-old", "c-late"} {
			s.pods[name].DeletionTimestamp = ptr.To(metav1.NewTime(fenceNow.Add(test.end)))
			s.pods[name].Status.Phase = test.phase
		}
		if err := fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery}); !errors.Is(err, test.want) {
			t.Errorf("to end %v after now, phase %s: %v, want %v", test.end, test.phase, err, test.want)
		}
		if len(s.gone) > 0 {
			t.Errorf("deleted once more: %v", s.gone)
		}
	}
}

// TestFenceRequiresItsRecord: no object is deleted for another recovery, or for a recovery
// that is not that far.
func TestFenceRequiresItsRecord(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(*shelf){
		"it is not that far":           func(s *shelf) { s.record(t, v1beta2.RecoveryPhaseFilling, "old") },
		"it is over":                   func(s *shelf) { s.record(t, v1beta2.RecoveryPhaseCleaning, "new") },
		"it is wiped":                  func(s *shelf) { delete(s.kept.Data, "recovery") },
		"the ConfigMap is not its own": func(s *shelf) { s.kept.OwnerReferences[0].UID = "other" },
	} {
		s, r, seen, recovery := twoLineages(t)
		since(s)
		before := s.labelled()
		if err := fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery}); !errors.Is(err, reconcile.ErrStale) || len(s.gone) > 0 {
			t.Errorf("%s: deleted %v, and %v", name, s.gone, err)
		}
		if diff := cmp.Diff(before, s.labelled()); diff != "" {
			t.Errorf("%s: labelled %s", name, diff)
		}
	}
}

// TestPublishRecoveryMember: the recovery member is put behind the Services, and no other
// object of its name is.
func TestPublishRecoveryMember(t *testing.T) {
	t.Parallel()
	s, r, seen, _ := twoLineages(t)
	for range 2 {
		if err := publishRecoveryMember(t.Context(), &run{Reconciler: r, seen: seen}, planner.PublishRecoveryMember{Name: "c-a"}); err != nil {
			t.Fatal(err)
		}
		if found := s.labelled(); found["pod c-a"] != resources.LabelCluster || found["PVC c-a"] != resources.LabelCluster {
			t.Errorf("labelled %v", found)
		}
	}
	s, r, seen, _ = twoLineages(t)
	s.pods["c-a"].OwnerReferences[0].UID, s.pvcs["c-a"].OwnerReferences, s.pvcs["c-a"].Annotations = "other", nil, nil
	if err := publishRecoveryMember(t.Context(), &run{Reconciler: r, seen: seen}, planner.PublishRecoveryMember{Name: "c-a"}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("a pod of another cluster is published: %v", err)
	}
	if found := s.labelled(); found["pod c-a"] != resources.LabelRecovery || found["PVC c-a"] != resources.LabelRecovery {
		t.Errorf("labelled %v", found)
	}
}

// TestCleanUpOldPVCs: the PVCs of the old members are deleted, as they are now, and no PVC
// without their label is. PVCs that are kept belong to no cluster afterwards.
func TestCleanUpOldPVCs(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		s, r, seen, recovery := twoLineages(t)
		recovery.OldMembers = []string{"c-old", "c-late", "c-theirs", "c-never"}
		if keeps {
			s.cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.PVCRetain}
		}
		for _, name := range []string{"c-old", "c-theirs"} {
			resources.IsFenced(&s.pvcs[name].Labels, "c")
		}
		if err := cleanUpOldPVCs(t.Context(), &run{Reconciler: r, seen: seen}, planner.CleanUpOldPVCs{Recovery: *recovery}); err != nil {
			t.Fatal(err)
		}
		only, dropped := s.gone["PVC c-old"]
		if dropped == keeps || len(s.gone) > 1 || len(s.gone) == 1 && !dropped {
			t.Errorf("kept %t: deleted %v", keeps, s.gone)
		}
		if dropped && (ptr.Deref(only.UID, "") != "pvc-c-old" || ptr.Deref(only.ResourceVersion, "") != "3") {
			t.Errorf("it goes only if %+v", only)
		}
		if pvc := s.pvcs["c-old"]; keeps && (pvc == nil || resources.Owns(s.cluster, pvc)) {
			t.Errorf("it is not released: %+v", pvc)
		}
		if late := s.pvcs["c-late"]; !resources.Owns(s.cluster, late) {
			t.Errorf("a PVC in use is released: %+v", late)
		}
	}
}

// stuck is a live API that deletes no PVC.
type stuck struct{ *shelf }

func (stuck) DeletePVC(context.Context, string, string, metav1.Preconditions) error { return errMute }

// TestVolumesThatStay: that an old volume could not be deleted ends the plan, so that the
// recovery is not recorded as done.
func TestVolumesThatStay(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	recovery.OldMembers = []string{"c-old"}
	resources.IsFenced(&s.pvcs["c-old"].Labels, "c")
	r.Objects = stuck{s}
	if err := cleanUpOldPVCs(t.Context(), &run{Reconciler: r, seen: seen}, planner.CleanUpOldPVCs{Recovery: *recovery}); !errors.Is(err, errMute) {
		t.Errorf("the error is %v", err)
	}
}

// TestKeptDataIsNoLoss: the new members of a recovery were lost before the PVCs of the old members were released. No
// backup is restored in their place: an abandoned recovery gives a PVC its labels back, and the end of another recovery
// lasts.
func TestKeptDataIsNoLoss(t *testing.T) {
	t.Parallel()
	for phase, want := range map[v1beta2.RecoveryPhase]error{v1beta2.RecoveryPhaseAbandoned: reconcile.ErrStale, v1beta2.RecoveryPhaseSucceeded: errOldDataKept} {
		s, r, seen, recovery := twoLineages(t)
		for _, pvc := range s.pvcs {
			resources.IsFenced(&pvc.Labels, "c")
		}
		clear(s.pods)
		s.record(t, phase, "old")
		recovery.Phase, recovery.OldMembers = phase, []string{"c-late"}
		seen.Record.Recovery = recovery
		err := requestRestore(t.Context(), &run{Reconciler: r, seen: seen}, planner.RequestRestore{Name: "c-first-aid", Backup: "b", Lost: []string{"c-new"}})
		if back := s.pvcs["c-late"].Labels[resources.LabelCluster] == "c"; !errors.Is(err, want) && (err != nil || !back) || back != (phase == v1beta2.RecoveryPhaseAbandoned) {
			t.Errorf("%s: labels %v, error %v", phase, s.pvcs["c-late"].Labels, err)
		}
	}
}

// TestNoFenceAfterTheEnd: what another process had join after it has ended the recovery is no old member.
func TestNoFenceAfterTheEnd(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	r.Objects = &overtaken{s, func() { s.record(t, v1beta2.RecoveryPhaseSucceeded, "old") }}
	before := s.labelled()
	if err := fenceOldMembers(t.Context(), &run{Reconciler: r, seen: seen}, planner.FenceOldMembers{Recovery: *recovery}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("error %v", err)
	}
	if after := s.labelled(); !maps.Equal(before, after) || len(s.gone) > 0 {
		t.Errorf("labels were %v and are %v; deleted: %v", before, after, s.gone)
	}
}
