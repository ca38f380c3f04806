// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// growing takes a second voter, whose pod is c-a.
type growing struct {
	*oneMember
	added bool
}

func (g *growing) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	g.calls = append(g.calls, "create pod")
	return pod, nil
}

func (g *growing) AddVoter(context.Context, etcd.Target, string) error {
	g.added = true
	return nil
}

// TestSecondVoterIsWrittenDown: the PVC of a second voter says that its member is joining, from the
// admission of its pod until its member has started.
func TestSecondVoterIsWrittenDown(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"a second voter": true, "a learner": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pvc = resources.PreparedPVC(live.cluster, "c-a")
			live.pvc.UID = "pvc-uid"
			keep := &keepsPVC{oneMember: live}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: keep, Gate: live}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster}}}
			if err := admitPod(t.Context(), r, planner.AdmitPod{Name: "c-a", UID: string(live.pod.UID), SecondVoter: second}); err != nil {
				t.Fatal(err)
			}
			if resources.IsPrepared(live.pvc.Annotations) || resources.IsJoining(live.pvc) != second {
				t.Errorf("admitted, the PVC says %q", live.pvc.Annotations[resources.AnnotationMembership])
			}
			if err := confirmPVC(t.Context(), r, planner.ConfirmPVC{Name: "c-a", UID: "pvc-uid"}); err != nil {
				t.Fatal(err)
			}
			if says, found := live.pvc.Annotations[resources.AnnotationMembership]; found {
				t.Errorf("started, the PVC says %q", says)
			}
			if updates := len(slices.DeleteFunc(live.calls, func(c string) bool { return c != "update PVC" })); updates != 1 && !second || updates != 2 && second {
				t.Errorf("%d updates of the PVC", updates)
			}
		})
	}
}

// listening records what the launcher learns, among the calls to the API.
type listening struct {
	*oneMember
	rejected error
}

func (l listening) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	updated, err := l.oneMember.UpdatePod(ctx, pod)
	return updated, errors.Join(err, l.rejected)
}

func (l listening) Key() string { return "key" }

func (l listening) Tell(_ context.Context, _ *corev1.Pod, initialCluster string) {
	l.calls = append(l.calls, "tell "+initialCluster)
}

func (l listening) Await(types.NamespacedName, etcd.Target, etcd.Endpoint) {
	l.calls = append(l.calls, "await")
}

func (l listening) AwaitEnd(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

// TestLauncherLearnsWhatTheAPISays: etcd starts in a pod only after the API says so, because a pod
// that the API shows as prepared may be used for another member. The second voter of an etcd
// without learners is added after its pod was admitted, so only the kubelet tells its launcher.
func TestLauncherLearnsWhatTheAPISays(t *testing.T) {
	t.Parallel()
	conflict := errors.New("conflict")
	for name, test := range map[string]struct {
		prepared, second bool
		rejected         error
		want             []string
	}{
		"a learner":                     {true, false, nil, []string{"get pod", "update pod", "tell c-b=http://c-b.c.n.svc:2380", "await"}},
		"a second voter":                {true, true, nil, []string{"get pod", "update pod", "await"}},
		"the API rejects the admission": {true, false, conflict, []string{"get pod", "update pod"}},
		"the pod was admitted before":   {false, false, nil, []string{"get pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.cluster.Spec.Pod = nil
			if test.prepared {
				live.pod.Annotations[resources.AnnotationMembership] = resources.MembershipAwaited
			}
			l := listening{live, test.rejected}
			r := &run{
				Reconciler: &Reconciler{Config: Config{Objects: l, Gate: l, Waker: l, Launchers: l}},
				seen:       &seen{Observed: planner.Observed{Cluster: live.cluster}},
			}
			err := admitPod(t.Context(), r, planner.AdmitPod{Name: "c-a", UID: string(live.pod.UID), SecondVoter: test.second, Peers: []string{"c-b"}})
			if !errors.Is(err, test.rejected) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(live.calls, test.want) {
				t.Errorf("calls %q, want %q", live.calls, test.want)
			}
		})
	}
}

// keepsPVC keeps what its PVC was changed to.
type keepsPVC struct{ *oneMember }

func (k *keepsPVC) UpdatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	k.pvc = pvc
	return k.oneMember.UpdatePVC(ctx, pvc)
}

// TestNoVoterJoinsBeforeTheSecondIsConfirmed: the cache may lag behind what the PVC says.
func TestNoVoterJoinsBeforeTheSecondIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ joining, deleting, released, waits bool }{
		"it is joining":            {joining: true, waits: true},
		"it has joined":            {},
		"its PVC is being deleted": {joining: true, deleting: true},
		"its PVC was released":     {joining: true, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &growing{oneMember: stopped()}
			live.pvc = secondVoter(live.oneMember, test.joining)
			if test.deleting {
				live.pvc.DeletionTimestamp = ptr.To(metav1.Now())
			}
			if test.released {
				live.pvc = resources.Released(live.cluster, live.pvc)
			}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Etcd: live, Recorder: live}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster}}}
			r.seen.Etcd.Members = []planner.Member{{ID: 1, Name: "c-b", Started: true}}
			err := addMember(t.Context(), r, planner.AddMember{Name: "c-a", UID: string(live.pod.UID), As: planner.JoinAsVoter, Admitted: true})
			if errors.Is(err, reconcile.ErrStale) != test.waits || live.added == test.waits {
				t.Errorf("a voter was added: %t, error %v", live.added, err)
			}
		})
	}
}

// TestPodStartsWithoutDataOnlyWhileItsPVCSaysSo: the member may have started since it was observed.
func TestPodStartsWithoutDataOnlyWhileItsPVCSaysSo(t *testing.T) {
	t.Parallel()
	for name, joining := range map[string]bool{"it is joining": true, "it has joined": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &growing{oneMember: stopped()}
			live.pod, live.pvc = nil, secondVoter(live.oneMember, joining)
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster}}}
			r.seen.Etcd.Linearizable = true // no recovery reads the PVC
			err := createMemberPod(t.Context(), r, planner.CreatePod{Name: "c-a", Joining: true})
			if errors.Is(err, reconcile.ErrStale) == joining || slices.Contains(live.calls, "create pod") != joining {
				t.Errorf("it did %q, error %v", live.calls, err)
			}
		})
	}
}

func secondVoter(live *oneMember, joining bool) *corev1.PersistentVolumeClaim {
	pvc, _ := resources.AdmittedPVC(resources.PreparedPVC(live.cluster, "c-a"), joining)
	return pvc
}

// dropping deletes PVCs, too.
type dropping struct{ *oneMember }

func (d *dropping) DeletePVC(context.Context, string, string, metav1.Preconditions) error {
	d.calls = append(d.calls, "delete PVC")
	return nil
}

// TestPVCOfTheSecondVoterStays: another controller has admitted the PVC of a second voter, and is about to
// admit its pod and to add the member. This controller knows of no such member.
func TestPVCOfTheSecondVoterStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		joining, admitted, gone bool
		want                    []string
	}{
		"its pod was admitted":     {joining: true, admitted: true},
		"its pod waits, and goes":  {joining: true, want: []string{"delete pod"}},
		"its pod no longer exists": {joining: true, gone: true, want: []string{}},
		"its member has started":   {admitted: true, want: []string{}},
	} {
		for action, drop := range map[string]func(context.Context, *run) error{
			"update PVC": func(ctx context.Context, r *run) error {
				return releasePVC(ctx, r, planner.ReleasePVC{Name: "c-a", UID: "pvc-uid"})
			},
			"delete PVC": func(ctx context.Context, r *run) error {
				return deletePVC(ctx, r, planner.DeletePVC{Name: "c-a", UID: "pvc-uid"})
			},
		} {
			t.Run(action+"/"+name, func(t *testing.T) {
				t.Parallel()
				live := &dropping{stopped()}
				live.pvc = secondVoter(live.oneMember, test.joining)
				live.pvc.UID = "pvc-uid"
				if !test.admitted {
					live.pod.Annotations[resources.AnnotationMembership] = resources.MembershipAwaited
				}
				if test.gone {
					live.pod = nil
				}
				r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster}}}
				err := drop(t.Context(), r)
				did := slices.DeleteFunc(live.calls, func(c string) bool { return c == "get PVC" || c == "get pod" })
				if test.want == nil {
					if len(did) > 0 || !errors.Is(err, reconcile.ErrStale) {
						t.Errorf("it did %q, error %v", did, err)
					}
					return
				}
				if want := append(test.want, action); err != nil || !slices.Equal(did, want) {
					t.Errorf("it did %q, want %q; error %v", did, want, err)
				}
				if len(test.want) > 0 && *live.only.ResourceVersion != live.pod.ResourceVersion {
					t.Errorf("the pod is deleted if %+v", live.only)
				}
			})
		}
	}
}

// TestPodIsPreparedAgainOnPreparedPVCs: the cache may be from before the member of a PVC was admitted.
func TestPodIsPreparedAgainOnPreparedPVCs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pvc     func(*oneMember) *corev1.PersistentVolumeClaim
		creates bool
	}{
		"it waits for its membership": {func(m *oneMember) *corev1.PersistentVolumeClaim { return resources.PreparedPVC(m.cluster, "c-a") }, true},
		"it was admitted":             {func(m *oneMember) *corev1.PersistentVolumeClaim { return secondVoter(m, false) }, false},
		"it no longer exists":         {func(*oneMember) *corev1.PersistentVolumeClaim { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &growing{oneMember: stopped()}
			live.pod, live.pvc = nil, test.pvc(live.oneMember)
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: &seen{Observed: planner.Observed{Cluster: live.cluster}}}
			err := preparePod(t.Context(), r, planner.PreparePod{Name: "c-a"})
			if slices.Contains(live.calls, "create pod") != test.creates || errors.Is(err, reconcile.ErrStale) == test.creates {
				t.Errorf("it did %q, error %v", live.calls, err)
			}
		})
	}
}
