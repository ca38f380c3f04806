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

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// restoredKubernetes has pods that wait for their membership by their annotations. In some of them etcd runs.
type restoredKubernetes struct {
	*oneMember
	responds []string
	quorum   bool
	probed   []string
}

func (k *restoredKubernetes) Statuses(_ context.Context, target etcd.Target) map[string]etcd.StatusResult {
	statuses := map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		k.probed = append(k.probed, e.Name)
		statuses[e.Name] = etcd.StatusResult{Err: &etcd.Error{Op: "status", Member: e.Name, Kind: etcd.ErrUnavailable}}
		if slices.Contains(k.responds, e.Name) {
			statuses[e.Name] = etcd.StatusResult{Health: etcd.MemberHealth{ID: idOf(e.Name), ClusterID: 5, Leader: 1}}
		}
	}
	return statuses
}

// idOf is the ID of a member by the last letter of its name.
func idOf(name string) uint64 { return uint64(name[len(name)-1] - 'a' + 1) }

func (k *restoredKubernetes) list(names ...string) etcd.Membership {
	list := etcd.Membership{ClusterID: 5}
	for _, name := range names {
		list.Members = append(list.Members, etcd.Member{ID: idOf(name), Name: name, PeerURLs: []string{resources.PeerURL(k.cluster, name)}})
	}
	return list
}

func (k *restoredKubernetes) Members(context.Context, etcd.Target) (etcd.Membership, error) {
	if !k.quorum {
		return etcd.Membership{}, &etcd.Error{Op: "list members", Kind: etcd.ErrNoQuorum}
	}
	return k.list("c-a", "c-b"), nil
}

func (k *restoredKubernetes) OwnMembers(context.Context, etcd.Target, etcd.Endpoint) (etcd.Membership, error) {
	return k.list("c-a", "c-b"), nil
}

func (k *restoredKubernetes) FailedReads(context.Context, etcd.Target) map[string]error { return nil }

func (k *restoredKubernetes) ClusterVersion(context.Context, etcd.Target, etcd.Endpoint) (string, error) {
	return "3.6.0", nil
}

func (k *restoredKubernetes) Await(types.NamespacedName, etcd.Target, etcd.Endpoint)    {}
func (k *restoredKubernetes) AwaitEnd(types.NamespacedName, etcd.Target, etcd.Endpoint) {}

// TestStartedMembersAreObserved: members run in pods that wait for their membership by their annotations. They are
// observed like other members, by the list, by what responds, and by the list of one member. A pod in which nothing
// responds, and that no list names, waits. While a quorum confirms the list it is not probed.
func TestStartedMembersAreObserved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		responds []string
		quorum   bool
		started  []string
		probed   []string
	}{
		"a quorum lists one that responds":            {[]string{"c-a", "c-b"}, true, []string{"c-a", "c-b"}, []string{"c-a", "c-b"}},
		"a quorum lists one that does not respond":    {[]string{"c-a"}, true, []string{"c-a", "c-b"}, []string{"c-a", "c-b"}},
		"only that one responds, and has a quorum":    {[]string{"c-b"}, true, []string{"c-a", "c-b"}, []string{"c-a", "c-b", "c-w"}},
		"only that one responds, and has no quorum":   {[]string{"c-b"}, false, []string{"c-a", "c-b"}, []string{"c-a", "c-b", "c-w"}},
		"another member names it, and has no quorum":  {[]string{"c-a"}, false, []string{"c-a", "c-b"}, []string{"c-a", "c-b", "c-w"}},
		"none responds, and the status names another": {nil, false, []string{"c-a"}, []string{"c-a", "c-b", "c-w"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &restoredKubernetes{oneMember: stopped(), responds: test.responds, quorum: test.quorum}
			k.cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{ID: "1", Name: "c-a", Role: v1beta2.MemberRoleLeader}}
			s := &seen{Observed: planner.Observed{Cluster: k.cluster, Record: planner.Record{Record: resources.Record{ClusterID: "5"}}}}
			r := &run{Reconciler: &Reconciler{Config: Config{Etcd: k, Objects: k, Waker: k}}, seen: s}
			var pods []*corev1.Pod
			for _, name := range []string{"c-a", "c-b", "c-w"} {
				pod := resources.Pod(k.cluster, resources.MemberPod{Name: name, Prepared: name != "c-a"})
				pod.UID, pod.Status.PodIP = types.UID(name), "10.0.0.1"
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: resources.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				}}
				pods = append(pods, pod)
				o := observedPod(k.cluster, pod)
				if resources.IsPrepared(pod.Annotations) {
					s.Prepared = append(s.Prepared, o)
				} else {
					s.Pods = append(s.Pods, o)
				}
			}
			observeEtcd(t.Context(), r, pods)
			var started []string
			for _, p := range s.Pods {
				started = append(started, p.Name)
				if p.Unadmitted == (p.Name == "c-a") {
					t.Errorf("pod %s must be admitted: %t", p.Name, p.Unadmitted)
				}
			}
			if !slices.Equal(started, test.started) || !slices.Equal(k.probed, test.probed) || s.Etcd.Linearizable != (test.quorum && len(test.responds) > 0) {
				t.Errorf("members in pods %q, probed %q, list %t", started, k.probed, s.Etcd.Linearizable)
			}
			if test.quorum && s.isHealthy("c-b") != slices.Contains(test.responds, "c-b") {
				t.Errorf("members %+v", s.Etcd.Members)
			}
		})
	}
}

// keptObjects records what is deleted or written.
type keptObjects struct {
	*oneMember
	written *corev1.Pod
}

func (k *keptObjects) DeletePVC(context.Context, string, string, metav1.Preconditions) error {
	k.calls = append(k.calls, "delete PVC")
	return nil
}

func (k *keptObjects) UpdatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	k.written = pod
	return pod, nil
}

func (k *keptObjects) UpdatePVC(_ context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	k.pvc = pvc
	return pvc, nil
}

// preparedAgain returns a pod and a PVC that wait for their membership by their annotations.
func preparedAgain(started func(*seen)) (*run, *keptObjects) {
	live := stopped()
	live.pod.Annotations[resources.AnnotationMembership] = resources.MembershipAwaited
	live.pvc = resources.PreparedPVC(live.cluster, "c-a")
	live.pvc.UID = "pvc-uid"
	k := &keptObjects{oneMember: live}
	s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
	started(s)
	return &run{Reconciler: &Reconciler{Config: Config{Objects: k, Gate: live, Recorder: live}}, seen: s}, k
}

// TestStartedMembersAreNotDeleted: the annotation alone does not say that no member has used a pod or a PVC.
func TestStartedMembersAreNotDeleted(t *testing.T) {
	t.Parallel()
	reported := func(role v1beta2.MemberRole) func(*seen) {
		return func(s *seen) {
			s.Cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{ID: "1", Name: "c-a", Role: role}}
		}
	}
	listed := func(started bool) func(*seen) {
		return func(s *seen) { s.Etcd.Members = []planner.Member{{ID: 1, Name: "c-a", Started: started}} }
	}
	for name, test := range map[string]struct {
		observed func(*seen)
		started  bool
	}{
		"nothing names it":               {func(*seen) {}, false},
		"the list names it":              {listed(true), true},
		"the list says it has not begun": {listed(false), false},
		"the status calls it a leader":   {reported(v1beta2.MemberRoleLeader), true},
		"the status calls it a follower": {reported(v1beta2.MemberRoleFollower), true},
		"the status calls it pending":    {reported(v1beta2.MemberRolePending), false},
		"the record names it": {func(s *seen) {
			s.Record.BootstrapMember, s.Record.ClusterID = "c-a", "5"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, k := preparedAgain(test.observed)
			pod := deletePod(t.Context(), r, planner.DeletePod{Name: "c-a", UID: "pod-uid", Why: planner.DeletePrepared})
			pvc := deletePVC(t.Context(), r, planner.DeletePVC{Name: "c-a", UID: "pvc-uid", Why: planner.DeletePVCPrepared})
			deleted := slices.Contains(k.calls, "delete pod") || slices.Contains(k.calls, "delete PVC")
			if deleted == test.started || errors.Is(pod, reconcile.ErrStale) != test.started || errors.Is(pvc, reconcile.ErrStale) != test.started {
				t.Errorf("calls %q, pod: %v, PVC: %v", k.calls, pod, pvc)
			}
			if err := requireNoPVC(t.Context(), r, "c-a"); (err != nil) != test.started {
				t.Errorf("requireNoPVC: %v", err)
			}
		})
	}
}

// TestStartedMembersAreAdmitted: etcd starts on the data that it has, and the annotations no longer say that no
// member has used the objects.
func TestStartedMembersAreAdmitted(t *testing.T) {
	t.Parallel()
	r, k := preparedAgain(func(*seen) {})
	if err := confirmPVC(t.Context(), r, planner.ConfirmPVC{Name: "c-a", UID: "pvc-uid"}); err != nil || resources.IsPrepared(k.pvc.Annotations) {
		t.Errorf("the PVC says %q: %v", k.pvc.Annotations[resources.AnnotationMembership], err)
	}
	err := labelPod(t.Context(), r, planner.LabelPod{Name: "c-a", UID: "pod-uid", Role: planner.PodVoter, Admit: true})
	if err != nil || k.written == nil {
		t.Fatalf("the pod is not changed: %v", err)
	}
	if names := resources.InitialMembers(k.written); resources.IsPrepared(k.written.Annotations) || resources.MayFill(k.written) || !slices.Equal(names, []string{"c-a"}) {
		t.Errorf("the pod may start without data, beside %v: %v", names, k.written.Annotations)
	}
}
