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
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// oneMember is a live API and an etcd with one member, which note what is asked of them.
type oneMember struct {
	Objects
	Etcd
	cluster *v1beta2.EtcdCluster
	pod     *corev1.Pod
	claim   *corev1.PersistentVolumeClaim
	answer  error
	calls   []string
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

func (m *oneMember) GetClaim(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	m.calls = append(m.calls, "get claim")
	if m.claim == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
	}
	return m.claim.DeepCopy(), nil
}

func (m *oneMember) UpdateClaim(_ context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	m.calls = append(m.calls, "update claim")
	return claim, nil
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
	return map[string]etcd.StatusResult{target.Endpoints[0].Name: {Err: m.answer}}
}

// Ready, Note and Forget implement Gate.
func (m *oneMember) Ready(types.NamespacedName) bool          { return true }
func (m *oneMember) Note(types.NamespacedName, metav1.Object) {}
func (m *oneMember) Forget(types.NamespacedName)              {}

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
		cluster: c, pod: pod, claim: resources.Claim(c, "c-a"),
		answer: &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrUnavailable},
	}
}

// TestMendOnlyWhatDoesNotRun: a container that does not run may be changed without a
// quorum, so everything must say that it does not, and the member itself last of all.
func TestMendOnlyWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*oneMember)
		// mends is true if the pod is changed, asks if the member is asked before.
		mends, asks bool
	}{
		{"nothing listens", func(*oneMember) {}, true, true},
		{"it has no address yet", func(m *oneMember) { m.pod.Status.PodIP = "" }, true, false},
		{"it answers", func(m *oneMember) { m.answer = nil }, false, true},
		{"it refuses to answer the controller", func(m *oneMember) {
			m.answer = &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrDenied}
		}, false, true},
		{"it takes the connection and does not answer yet", func(m *oneMember) {
			m.answer = &etcd.Error{Op: "status", Member: "c-a", Kind: etcd.ErrTimeout}
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
					return r.recreatePod(t.Context(), types.NamespacedName{}, s, planner.RecreatePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Waiting: true})
				},
				"update pod": func(r *Reconciler, s *seen) error {
					return r.upgradePod(t.Context(), types.NamespacedName{}, s, planner.UpgradePod{Name: "c-a", UID: "pod-uid", Version: "3.6.16", Waiting: true})
				},
			} {
				m := stopped()
				s := &seen{Observed: planner.Observed{Cluster: m.cluster}}
				test.change(m)
				err := act(&Reconciler{Config: Config{Objects: m, Etcd: m, Gate: m, Recorder: m}}, s)
				if test.mends && err != nil || !test.mends && !errors.Is(err, ErrStale) {
					t.Errorf("%s: %v", what, err)
				}
				if mended := slices.Contains(m.calls, what); mended != test.mends {
					t.Errorf("%s: done %t, want %t: %q", what, mended, test.mends, m.calls)
				}
				if asked := slices.Contains(m.calls, "ask"); asked != test.asks {
					t.Errorf("%s: asked %t, want %t: %q", what, asked, test.asks, m.calls)
				}
				if n := len(m.calls); test.mends && test.asks && m.calls[n-2] != "ask" {
					t.Errorf("%s: the member is not asked last: %q", what, m.calls)
				}
			}
		})
	}
}

// TestMendOfAnOlderState: what was seen of a pod before the member was asked must still
// hold when the pod is deleted, and its volume must be there.
func TestMendOfAnOlderState(t *testing.T) {
	t.Parallel()
	mend := func(m *oneMember) error {
		r := &Reconciler{Config: Config{Objects: m, Etcd: m, Gate: m, Recorder: m}}
		return r.recreatePod(t.Context(), types.NamespacedName{}, &seen{Observed: planner.Observed{Cluster: m.cluster}},
			planner.RecreatePod{Name: "c-a", UID: "pod-uid", Waiting: true})
	}
	m := stopped()
	if err := mend(m); err != nil || m.only.UID == nil || *m.only.UID != "pod-uid" || m.only.ResourceVersion == nil || *m.only.ResourceVersion != "7" {
		t.Errorf("deleted only if %+v, %v", m.only, err)
	}
	m = stopped()
	m.claim = nil
	if err := mend(m); !errors.Is(err, ErrStale) || slices.Contains(m.calls, "delete pod") {
		t.Errorf("a pod without its volume: %v, %q", err, m.calls)
	}
}

// TestOldCacheNotesNoVersion: what runs on a volume stands on it, whatever a cache makes of
// it that does not know the pod yet.
func TestOldCacheNotesNoVersion(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		n := &nursery{hiddenSeed: &hiddenSeed{oneMember: stopped()}}
		if !there {
			n.pod = nil
		}
		r := &Reconciler{Config: Config{Objects: n, Etcd: n, Gate: n, Recorder: n}}
		s := &seen{Observed: planner.Observed{Cluster: n.cluster}}
		action := planner.CreatePod{Name: "c-a", Peers: []string{"c-a"}, Version: "3.5.27", Joined: true}
		if err := r.do(t.Context(), types.NamespacedName{}, s, action); err != nil {
			t.Fatal(err)
		}
		if noted := slices.Contains(n.calls, "update claim"); noted == there || (n.made != nil) == there {
			t.Errorf("its pod exists %t: noted a version %t, made %v", there, noted, n.made)
		}
	}
}
