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
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// shelf is a live API that holds the pods and the claims of two lineages.
type shelf struct {
	*hiddenSeed
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// gone are what was deleted, each with what that depended on.
	gone map[string]metav1.Preconditions
}

func (s *shelf) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if p := s.pods[name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (s *shelf) GetClaim(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	if c := s.claims[name]; c != nil {
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

func (s *shelf) ListClaims(_ context.Context, _, name string) ([]corev1.PersistentVolumeClaim, error) {
	var list []corev1.PersistentVolumeClaim
	for _, c := range s.claims {
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

func (s *shelf) UpdateClaim(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	s.claims[c.Name] = c
	return c, nil
}

func (s *shelf) DeletePod(_ context.Context, _, name string, only metav1.Preconditions) error {
	s.gone["pod "+name] = only
	delete(s.pods, name)
	return nil
}

func (s *shelf) DeleteClaim(_ context.Context, _, name string, only metav1.Preconditions) error {
	s.gone["claim "+name] = only
	delete(s.claims, name)
	return nil
}

// labelled says which lineage each object carries the label of.
func (s *shelf) labelled() map[string]string {
	found := map[string]string{}
	note := func(kind string, o metav1.Object) {
		for _, label := range []string{resources.LabelCluster, resources.LabelRetired, resources.LabelRecovery} {
			if o.GetLabels()[label] != "" {
				found[kind+" "+o.GetName()] += label
			}
		}
	}
	for _, p := range s.pods {
		note("pod", p)
	}
	for _, c := range s.claims {
		note("claim", c)
	}
	return found
}

var retireNow = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// twoLineages has the old members c-old and c-late, of which the record knows the first
// one, the seed, which the record names, too, and what another cluster has under an old name.
func twoLineages(t *testing.T) (*shelf, *Reconciler, *seen, *v1beta2.RecoveryStatus) {
	t.Helper()
	h := &hiddenSeed{oneMember: stopped()}
	s := &shelf{h, map[string]*corev1.Pod{}, map[string]*corev1.PersistentVolumeClaim{}, map[string]metav1.Preconditions{}}
	for _, name := range []string{"c-old", "c-late", "c-theirs", "c-a"} {
		pod, claim := resources.Pod(h.cluster, resources.MemberPod{Name: name}), resources.Claim(h.cluster, name)
		pod.UID, claim.UID, claim.ResourceVersion = types.UID("pod-"+name), types.UID("claim-"+name), "3"
		if name == "c-a" {
			claim = resources.ReseedClaim(h.cluster, name)
			pod.Labels = claim.DeepCopy().Labels
		}
		if name == "c-theirs" {
			pod.OwnerReferences[0].UID, claim.OwnerReferences, claim.Annotations = "other", nil, nil
		}
		s.pods[name], s.claims[name] = pod, claim
	}
	for _, labels := range []map[string]string{s.pods["c-old"].Labels, s.claims["c-old"].Labels} {
		delete(labels, resources.LabelCluster) // somebody has taken them off
	}
	h.record(t, v1beta2.RecoveryPhaseSwitching, "old")
	recovery := &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseSwitching, Seed: "c-a", OldMembers: []string{"c-old", "c-theirs", "c-never", "c-a"}}
	r := &Reconciler{Config: Config{Objects: s, Etcd: h, Gate: h, Recorder: h, Clock: clocktesting.NewFakePassiveClock(retireNow)}}
	return s, r, &seen{Observed: planner.Observed{Cluster: h.cluster}, peerService: h.service}, recovery
}

// TestRetire: the old members go out of service, all of them and nobody else, with the volumes
// kept; and it is over only when their pods have gone.
func TestRetire(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	retire := func() error { return r.retire(t.Context(), types.NamespacedName{}, seen, recovery) }
	if err := retire(); !errors.Is(err, ErrStale) {
		t.Errorf("it is over while pods are deleted: %v", err)
	}
	if diff := cmp.Diff([]string{"pod c-late", "pod c-old"}, slices.Sorted(maps.Keys(s.gone))); diff != "" {
		t.Errorf("deleted: %s", diff)
	}
	for what, only := range s.gone {
		if only.UID == nil {
			t.Errorf("%s goes whoever it is by now", what)
		}
	}
	want := map[string]string{
		"claim c-old": resources.LabelRetired, "claim c-late": resources.LabelRetired, "pod c-a": resources.LabelRecovery, "claim c-a": resources.LabelRecovery,
		"pod c-theirs": resources.LabelCluster, "claim c-theirs": resources.LabelCluster,
	}
	if diff := cmp.Diff(want, s.labelled()); diff != "" {
		t.Errorf("labelled: %s", diff)
	}
	if err := retire(); err != nil {
		t.Errorf("nobody is left: %v", err)
	}
}

// TestRetireWaitsForPods: whoever ends is waited for, for as long as there is no evidence that
// it has ended; a node that says nothing is none.
func TestRetireWaitsForPods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		end   time.Duration
		phase corev1.PodPhase
		want  error
	}{
		{time.Second, corev1.PodRunning, ErrStale},
		{-time.Second, corev1.PodRunning, ErrStale},
		{-retireGrace - time.Second, corev1.PodRunning, errNotEnded},
		{-24 * time.Hour, corev1.PodPending, errNotEnded},
		{time.Second, corev1.PodFailed, nil},
		{-time.Hour, corev1.PodSucceeded, nil},
	} {
		s, r, seen, recovery := twoLineages(t)
		for _, name := range []string{"c-old", "c-late"} {
			s.pods[name].DeletionTimestamp = ptr.To(metav1.NewTime(retireNow.Add(test.end)))
			s.pods[name].Status.Phase = test.phase
		}
		if err := r.retire(t.Context(), types.NamespacedName{}, seen, recovery); !errors.Is(err, test.want) {
			t.Errorf("to end %v after now, phase %s: %v, want %v", test.end, test.phase, err, test.want)
		}
		if len(s.gone) > 0 {
			t.Errorf("deleted once more: %v", s.gone)
		}
	}
}

// TestRetireOnTheRecord: nobody goes for a recovery that is not that far, or is another one.
func TestRetireOnTheRecord(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(*shelf){
		"it is not that far":         func(s *shelf) { s.record(t, v1beta2.RecoveryPhaseSeeding, "old") },
		"it is over":                 func(s *shelf) { s.record(t, v1beta2.RecoveryPhaseCleaning, "new") },
		"it is wiped":                func(s *shelf) { delete(s.service.Annotations, resources.AnnotationRecovery) },
		"the service is not its own": func(s *shelf) { s.service.OwnerReferences[0].UID = "other" },
	} {
		s, r, seen, recovery := twoLineages(t)
		since(s)
		before := s.labelled()
		if err := r.retire(t.Context(), types.NamespacedName{}, seen, recovery); !errors.Is(err, ErrStale) || len(s.gone) > 0 {
			t.Errorf("%s: deleted %v, and %v", name, s.gone, err)
		}
		if diff := cmp.Diff(before, s.labelled()); diff != "" {
			t.Errorf("%s: labelled %s", name, diff)
		}
	}
}

// TestReveal: the seed is put behind the services, and nothing that has its name by now.
func TestReveal(t *testing.T) {
	t.Parallel()
	s, r, seen, _ := twoLineages(t)
	for range 2 {
		if err := r.reveal(t.Context(), types.NamespacedName{}, seen, "c-a"); err != nil {
			t.Fatal(err)
		}
		if found := s.labelled(); found["pod c-a"] != resources.LabelCluster || found["claim c-a"] != resources.LabelCluster {
			t.Errorf("labelled %v", found)
		}
	}
	s, r, seen, _ = twoLineages(t)
	s.pods["c-a"].OwnerReferences[0].UID, s.claims["c-a"].OwnerReferences, s.claims["c-a"].Annotations = "other", nil, nil
	if err := r.reveal(t.Context(), types.NamespacedName{}, seen, "c-a"); !errors.Is(err, ErrStale) {
		t.Errorf("a pod of another cluster is let in: %v", err)
	}
	if found := s.labelled(); found["pod c-a"] != resources.LabelRecovery || found["claim c-a"] != resources.LabelRecovery {
		t.Errorf("labelled %v", found)
	}
}

// TestDropRetired: the volumes of the old members go, as they are now, and nothing that does
// not carry their label; those that are to be kept belong to nobody afterwards.
func TestDropRetired(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		s, r, seen, recovery := twoLineages(t)
		recovery.OldMembers = []string{"c-old", "c-late", "c-theirs", "c-never"}
		if keeps {
			s.cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.ClaimRetain}
		}
		for _, name := range []string{"c-old", "c-theirs"} {
			resources.Retired(&s.claims[name].Labels, "c")
		}
		if err := r.dropRetired(t.Context(), seen, recovery); err != nil {
			t.Fatal(err)
		}
		only, dropped := s.gone["claim c-old"]
		if dropped == keeps || len(s.gone) > 1 || len(s.gone) == 1 && !dropped {
			t.Errorf("kept %t: deleted %v", keeps, s.gone)
		}
		if dropped && (ptr.Deref(only.UID, "") != "claim-c-old" || ptr.Deref(only.ResourceVersion, "") != "3") {
			t.Errorf("it goes only if %+v", only)
		}
		if claim := s.claims["c-old"]; keeps && (claim == nil || resources.Owns(s.cluster, claim)) {
			t.Errorf("it is not given up: %+v", claim)
		}
		if late := s.claims["c-late"]; !resources.Owns(s.cluster, late) {
			t.Errorf("a volume that is in service is given up: %+v", late)
		}
	}
}

// stuck is a live API that deletes no claim.
type stuck struct{ *shelf }

func (stuck) DeleteClaim(context.Context, string, string, metav1.Preconditions) error { return errMute }

// TestVolumesThatStay: that an old volume could not be deleted ends the plan, so that the
// recovery is not recorded as done.
func TestVolumesThatStay(t *testing.T) {
	t.Parallel()
	s, r, seen, recovery := twoLineages(t)
	recovery.OldMembers = []string{"c-old"}
	resources.Retired(&s.claims["c-old"].Labels, "c")
	r.Objects = stuck{s}
	if err := r.dropRetired(t.Context(), seen, recovery); !errors.Is(err, errMute) {
		t.Errorf("the answer is %v", err)
	}
}
