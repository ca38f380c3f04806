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

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// oneMember is a live API and an etcd with one member, which record their calls.
type oneMember struct {
	Objects
	Etcd
	cluster  *v1beta2.EtcdCluster
	pod      *corev1.Pod
	pvc      *corev1.PersistentVolumeClaim
	response error
	calls    []string
	// version is the one that the pod was changed to, only what its deletion depends on.
	version string
	only    metav1.Preconditions
}

func (m *oneMember) GetCluster(context.Context, string, string) (*v1beta2.EtcdCluster, error) {
	m.calls = append(m.calls, "get cluster")
	return m.cluster, nil
}

func (m *oneMember) GetPod(_ context.Context, _, name string) (*corev1.Pod, error) {
	m.calls = append(m.calls, "get pod")
	if m.pod == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return m.pod.DeepCopy(), nil
}

func (m *oneMember) GetPVC(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	m.calls = append(m.calls, "get PVC")
	if m.pvc == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
	}
	return m.pvc.DeepCopy(), nil
}

func (m *oneMember) UpdatePVC(_ context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	m.calls = append(m.calls, "update PVC")
	return pvc, nil
}

func (m *oneMember) UpdatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	m.calls = append(m.calls, "update pod")
	m.version = pod.Annotations[resources.AnnotationVersion]
	return pod, nil
}

func (m *oneMember) DeletePod(_ context.Context, _, _ string, only metav1.Preconditions) error {
	m.calls = append(m.calls, "delete pod")
	m.only = only
	return nil
}

func (m *oneMember) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	m.calls = append(m.calls, "ask")
	return map[string]etcd.StatusResult{target.Endpoints[0].Name: {Err: m.response}}
}

// Ready, Note and Forget implement Gate.
func (m *oneMember) IsReady(types.NamespacedName) bool           { return true }
func (m *oneMember) Note(types.NamespacedName, metav1.Object)    {}
func (m *oneMember) Compare(types.NamespacedName, metav1.Object) {}
func (m *oneMember) Forget(types.NamespacedName)                 {}

// Eventf implements Recorder.
func (m *oneMember) Eventf(runtime.Object, string, string, string, ...any) {}

// stopped returns the member of a cluster whose container does not run.
func stopped() *oneMember {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid", Generation: 2},
		Spec: v1beta2.ClusterSpec{Version: "3.6.16", Pod: &v1beta2.PodPolicy{
			PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{},
		}},
	}
	pod := resources.Pod(c, resources.MemberPod{Name: "c-a"})
	pod.UID, pod.ResourceVersion = "pod-uid", "7"
	pod.Annotations[resources.AnnotationVersion] = "3.6.11"
	pod.Spec.Containers[0].Image = "example.com/etcd:v3.6.11"
	pod.Annotations[resources.AnnotationImage] = "example.com/etcd:v3.6.11"
	pod.Status.PodIP = "10.0.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  resources.ContainerName,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}}
	return &oneMember{
		cluster: c, pod: pod, pvc: resources.PVC(c, "c-a"),
		response: &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrUnavailable},
	}
}

// TestRepairOnlyStoppedContainers: a container that does not run may be changed without a
// quorum, so everything must say that it does not, and the member itself last of all.
func TestRepairOnlyStoppedContainers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*oneMember)
		// repairs is true if the pod is changed, asks if a request to the member precedes
		// the change.
		repairs, asks bool
	}{
		{"nothing listens", func(*oneMember) {}, true, true},
		{"it has no address yet", func(m *oneMember) { m.pod.Status.PodIP = "" }, true, false},
		{"it responds", func(m *oneMember) { m.response = nil }, false, true},
		{"it denies the request of the controller", func(m *oneMember) {
			m.response = &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrDenied}
		}, false, true},
		{"it accepts the connection and does not respond yet", func(m *oneMember) {
			m.response = &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrTimeout}
		}, false, true},
		{"its container runs", func(m *oneMember) {
			m.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, false, false},
		{"it is another pod", func(m *oneMember) { m.pod.UID = "other" }, false, false},
		{"the cluster is declared otherwise", func(m *oneMember) {
			m.cluster = m.cluster.DeepCopy()
			m.cluster.Generation++
		}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for what, act := range map[string]func(*Reconciler, *seen) error{
				"delete pod": func(r *Reconciler, s *seen) error {
					return recreatePod(t.Context(), &run{Reconciler: r, seen: s}, planner.RecreatePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Mode: planner.RestartIdle})
				},
				"update pod": func(r *Reconciler, s *seen) error {
					return upgradePod(t.Context(), &run{Reconciler: r, seen: s}, planner.UpgradePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Mode: planner.RestartIdle})
				},
			} {
				m := stopped()
				s := &seen{Observed: planner.Observed{Cluster: m.cluster}}
				test.change(m)
				err := act(&Reconciler{Config: Config{Objects: m, Etcd: m, Gate: m, Recorder: m}}, s)
				if test.repairs && err != nil || !test.repairs && !errors.Is(err, reconcile.ErrStale) {
					t.Errorf("%s: %v", what, err)
				}
				if repaired := slices.Contains(m.calls, what); repaired != test.repairs {
					t.Errorf("%s: done %t, want %t: %q", what, repaired, test.repairs, m.calls)
				}
				if asked := slices.Contains(m.calls, "ask"); asked != test.asks {
					t.Errorf("%s: asked %t, want %t: %q", what, asked, test.asks, m.calls)
				}
				if n := len(m.calls); test.repairs && test.asks && m.calls[n-2] != "ask" {
					t.Errorf("%s: the member is not asked last: %q", what, m.calls)
				}
			}
		})
	}
}

// TestOlderVersionIsRecordedLast: the container of a pod may start with the newer version before the pod has
// the older one. Then the PVC keeps the newer version, which has used its data.
func TestOlderVersionIsRecordedLast(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has             string
		recreates, runs bool
		order           []string
	}{
		"a newer version":                          {"3.6.11", false, false, []string{"update PVC", "update pod"}},
		"an older version":                         {"3.7.0", false, false, []string{"update pod", "update PVC"}},
		"an older version, and the container runs": {"3.7.0", false, true, []string{}},
		"no version is recorded":                   {"", false, false, []string{"update PVC", "update pod"}},
		"a pod of a newer version":                 {"3.6.11", true, false, []string{"update PVC", "delete pod"}},
		"a pod of an older version":                {"3.7.0", true, false, []string{"delete pod", "update PVC"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := stopped()
			m.pvc.UID, m.pvc.OwnerReferences = "pvc-uid", m.pod.OwnerReferences
			m.pvc.Annotations = map[string]string{resources.AnnotationVersion: test.has}
			if test.runs {
				m.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			}
			s := &seen{Observed: planner.Observed{Cluster: m.cluster, PVCs: []planner.PVC{{Name: "c-a", UID: "pvc-uid", Owned: true, Version: test.has}}}}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: m, Etcd: m, Gate: m, Recorder: m}}, seen: s}
			var err error
			if test.recreates {
				err = recreatePod(t.Context(), r, planner.RecreatePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Mode: planner.RestartIdle})
			} else {
				err = upgradePod(t.Context(), r, planner.UpgradePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Mode: planner.RestartIdle})
			}
			did := slices.DeleteFunc(m.calls, func(c string) bool { return c != "update PVC" && c != "update pod" && c != "delete pod" })
			if !slices.Equal(did, test.order) || errors.Is(err, reconcile.ErrStale) != test.runs {
				t.Errorf("it did %q, want %q; error %v", did, test.order, err)
			}
		})
	}
}

// TestRepairRereadsThePod: when the pod is deleted it must still be as it was observed, and
// its PVC must exist.
func TestRepairRereadsThePod(t *testing.T) {
	t.Parallel()
	repair := func(m *oneMember) error {
		r := &Reconciler{Config: Config{Objects: m, Etcd: m, Gate: m, Recorder: m}}
		return recreatePod(t.Context(), &run{Reconciler: r, seen: &seen{Observed: planner.Observed{Cluster: m.cluster}}}, planner.RecreatePod{Name: "c-a", UID: "pod-uid", Mode: planner.RestartIdle})
	}
	m := stopped()
	if err := repair(m); err != nil || m.only.UID == nil || *m.only.UID != "pod-uid" || m.only.ResourceVersion == nil || *m.only.ResourceVersion != "7" {
		t.Errorf("deleted only if %+v, %v", m.only, err)
	}
	m = stopped()
	m.pvc = nil
	if err := repair(m); !errors.Is(err, reconcile.ErrStale) || slices.Contains(m.calls, "delete pod") {
		t.Errorf("a pod without its volume: %v, %q", err, m.calls)
	}
}

// TestOldCacheNotesNoVersion: what runs on a volume stands on it, whatever a cache makes of
// it that does not know the pod yet.
func TestOldCacheNotesNoVersion(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		n := &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
		if !there {
			n.pod = nil
		}
		r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n}}
		s := &seen{Observed: planner.Observed{Cluster: n.cluster}}
		action := planner.CreatePod{Name: "c-a", Peers: []string{"c-a"}, Version: "3.5.27", Joined: true}
		if err := carryOut(t.Context(), &run{Reconciler: r, seen: s}, action); err != nil {
			t.Fatal(err)
		}
		if noted := slices.Contains(n.calls, "update PVC"); noted == there || (n.made != nil) == there {
			t.Errorf("its pod exists %t: noted a version %t, made %v", there, noted, n.made)
		}
	}
}

// TestOldCacheRecordsNoVersion: a cache that does not know yet which version has used a volume
// must not lead to an older version there.
func TestOldCacheRecordsNoVersion(t *testing.T) {
	for observed, want := range map[string]error{"3.6.11": nil, "3.5.27": reconcile.ErrStale} {
		m := stopped()
		m.pvc.UID = "pvc-uid"
		m.pvc.Annotations = map[string]string{resources.AnnotationVersion: "3.6.11"}
		m.pvc.OwnerReferences = m.pod.OwnerReferences
		r := &run{
			Reconciler: &Reconciler{Config: Config{Objects: m, Gate: m}},
			seen:       &seen{Observed: planner.Observed{Cluster: m.cluster, PVCs: []planner.PVC{{Name: "c-a", UID: "pvc-uid", Version: observed}}}},
		}
		err := recordVersion(t.Context(), r, "c-a", "3.6.16")
		if !errors.Is(err, want) || (err == nil) != slices.Contains(m.calls, "update PVC") {
			t.Errorf("a cache that shows %s: %v, calls %v", observed, err, m.calls)
		}
	}
}

// TestFirstPodOfVersion: the pod that is created for another version knows which version the data has, until a
// container of etcd is created in it. An image that was never pulled has not used the data. A second pod with that
// version does not know it: the first one may have run.
func TestFirstPodOfVersion(t *testing.T) {
	t.Parallel()
	k := &nursery{hiddenRecoveryMember: &hiddenRecoveryMember{oneMember: stopped()}}
	k.pvc.UID, k.pvc.OwnerReferences = "pvc-uid", k.pod.OwnerReferences
	k.pvc.Annotations = map[string]string{resources.AnnotationVersion: "3.6.11"}
	s := &seen{Observed: planner.Observed{Cluster: k.cluster, PVCs: []planner.PVC{{Name: "c-a", UID: "pvc-uid", Owned: true, Version: "3.6.11"}}}}
	do := func(a planner.Action) {
		if err := carryOut(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: k, Etcd: k, Gate: k, Recorder: k}}, seen: s}, a); err != nil {
			t.Fatal(err)
		}
		s.PVCs[0].Version = k.pvc.Annotations[resources.AnnotationVersion]
	}
	do(planner.RecreatePod{Name: "c-a", UID: "pod-uid", Version: "3.7.0", Mode: planner.RestartIdle})
	k.pod = nil
	for _, first := range []bool{true, false} {
		do(planner.CreatePod{Name: "c-a", Peers: []string{"c-a"}, Version: "3.7.0", Joined: true})
		pod := k.made
		pulling := corev1.ContainerStatus{Name: resources.ContainerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
		ended := pulling
		ended.RestartCount = 1
		for _, status := range []corev1.ContainerStatus{pulling, ended} {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
			unstarted := first && status.RestartCount == 0
			if p := observedPod(k.cluster, pod); p.Unstarted != unstarted || (p.RanBefore == "3.6.11") != unstarted || p.Version != "3.7.0" {
				t.Errorf("first pod %t, %d restarts: unstarted %t, data of %q", first, status.RestartCount, p.Unstarted, p.RanBefore)
			}
		}
	}
}
