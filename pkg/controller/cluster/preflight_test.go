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
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestLossIsProvedByTheLastStatus: nothing goes on by itself on a status that another process
// has written over meanwhile: a member may have started since.
func TestLossIsProvedByTheLastStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		since func(*v1beta2.EtcdCluster)
		stale bool
	}{
		{"nothing was written", func(*v1beta2.EtcdCluster) {}, false},
		{"the cluster was written", func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "8" }, true},
		{"it is another cluster", func(c *v1beta2.EtcdCluster) { c.UID = "other" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.cluster.ResourceVersion = "7"
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.cluster)
			err := requireSameStatus(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live}}, seen: s})
			if test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestUnseenMemberIsLookedFor: a member that is chosen to go because no pod of it is seen may
// have one that has only lost its labels, and lead the others.
func TestUnseenMemberIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, reason := range []planner.RemoveReason{planner.RemoveScaleDown, planner.RemoveReplaced, planner.RemoveSurplus} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pod.Labels = nil
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			r := &Reconciler{Config: Config{Objects: live, Etcd: live, Gate: live, Recorder: live}}
			err := removeMember(t.Context(), &run{Reconciler: r, seen: s}, planner.RemoveMember{ID: 1, Name: live.pod.Name, Reason: reason})
			if !errors.Is(err, reconcile.ErrStale) || !slices.Contains(live.calls, "update pod") {
				t.Errorf("it did %q, error %v", live.calls, err)
			}
		})
	}
}

// TestUnseenPodIsNoLoss: a member counts as lost because no pod of it is seen. Its pod may have only lost
// its labels. The cluster then gets the pod back instead of its last backup, also while the pod is deleted.
func TestUnseenPodIsNoLoss(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oneMember){
		"the pod runs":       func(*oneMember) {},
		"the pod is deleted": func(m *oneMember) { m.pod.DeletionTimestamp = ptr.To(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pod.Labels = nil
			change(live)
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: live, Etcd: live, Gate: live, Recorder: live}}, seen: s}
			err := requestRestore(t.Context(), r, planner.RequestRestore{Name: "c-first-aid", Backup: "b", Lost: []string{live.pod.Name}})
			if !errors.Is(err, reconcile.ErrStale) || !slices.Contains(live.calls, "update pod") {
				t.Errorf("it did %q, error %v", live.calls, err)
			}
		})
	}
}

// TestRecoveryMemberIsGone: that the data was lost with a recovery member is recorded only if the live API has
// neither its pod nor its volume.
func TestRecoveryMemberIsGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		pod, pvc bool
	}{{"both are deleted", false, false}, {"its pod is there", true, false}, {"its volume is there", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			name := live.pod.Name
			live.pvc = resources.RecoveryPVC(live.cluster, &v1beta2.RecoveryStatus{RecoveryMember: name})
			if !test.pod {
				live.pod = nil
			}
			if !test.pvc {
				live.pvc = nil
			}
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			err := requireRecoveryMemberDeleted(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live, Gate: live}}, seen: s}, name)
			if there := test.pod || test.pvc; errors.Is(err, reconcile.ErrStale) != there || (err != nil && !there) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// mute is a live API that fails to read a pod or a PVC.
type mute struct {
	*oneMember
	pods bool
}

var errMute = errors.New("no response")

func (m *mute) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if m.pods {
		return m.oneMember.GetPod(ctx, namespace, name)
	}
	return nil, errMute
}

func (m *mute) GetPVC(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return nil, errMute
}

// TestFailedReadProvesNoDeletion: an error is no proof, and no outdated observation.
func TestFailedReadProvesNoDeletion(t *testing.T) {
	t.Parallel()
	for _, pods := range []bool{false, true} {
		live := &mute{stopped(), pods}
		live.pod = nil
		r := &Reconciler{Config: Config{Objects: live}}
		s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
		for what, confirm := range map[string]func() error{
			"a recovery member": func() error { return requireRecoveryMemberDeleted(t.Context(), &run{Reconciler: r, seen: s}, "c-a") },
			"a lost member":     func() error { return requireNoPodOrPVC(t.Context(), &run{Reconciler: r, seen: s}, "c-a") },
			"a kept PVC":        func() error { return requirePVC(t.Context(), &run{Reconciler: r, seen: s}, "c-a") },
			"another member":    func() error { _, err := requirePodStays(t.Context(), &run{Reconciler: r, seen: s}, "c-a"); return err },
		} {
			if err := confirm(); err == nil || (what != "another member" || !pods) && (!errors.Is(err, errMute) || errors.Is(err, reconcile.ErrStale)) {
				t.Errorf("%s, pods can be read %t: %v", what, pods, err)
			}
		}
	}
}

// TestMemberThatWasNotAdmittedIsLost: a member was added to etcd, and its pod was not admitted before the
// quorum was lost. No etcd has run in that pod, so the pod does not keep a recovery from beginning.
func TestMemberThatWasNotAdmittedIsLost(t *testing.T) {
	t.Parallel()
	waits := func(m *oneMember) {
		m.pod.Annotations[resources.AnnotationMembership] = resources.MembershipAwaited
		m.pvc = resources.PreparedPVC(m.cluster, "c-a")
	}
	for name, test := range map[string]struct {
		live func(*oneMember)
		lost bool
	}{
		"its pod and its PVC wait":   {waits, true},
		"its pod waits without PVC":  {func(m *oneMember) { waits(m); m.pvc = nil }, true},
		"its PVC was admitted":       {func(m *oneMember) { waits(m); m.pvc = resources.PVC(m.cluster, "c-a") }, false},
		"it votes without learners":  {func(m *oneMember) { waits(m); m.cluster.Spec.Version = "3.3.27" }, false},
		"its pod was admitted":       {func(*oneMember) {}, false},
		"nothing is left of it":      {func(m *oneMember) { m.pod, m.pvc = nil, nil }, true},
		"another cluster owns a pod": {func(m *oneMember) { waits(m); m.pod.OwnerReferences[0].UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := stopped()
			test.live(m)
			r := &run{Reconciler: &Reconciler{Config: Config{Objects: m, Gate: m}}, seen: &seen{Observed: planner.Observed{Cluster: m.cluster}}}
			if err := requireLost(t.Context(), r, []string{"c-a"}); (err == nil) != test.lost || err != nil && !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSpecIsTheLast: what is declared, or asked for by annotation, since the observation
// may be the opposite of what is about to be done.
func TestSpecIsTheLast(t *testing.T) {
	t.Parallel()
	asks := func(annotation string) func(*v1beta2.EtcdCluster) {
		return func(c *v1beta2.EtcdCluster) { c.Annotations = map[string]string{annotation: "2"} }
	}
	for name, test := range map[string]struct {
		since func(*v1beta2.EtcdCluster)
		stale bool
	}{
		"nothing has happened":     {func(*v1beta2.EtcdCluster) {}, false},
		"its status was written":   {func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "8" }, false},
		"a user has annotated it":  {asks("example.com/note"), false},
		"it is declared otherwise": {func(c *v1beta2.EtcdCluster) { c.Generation++ }, true},
		"the API was brought back, and the same generation is declared otherwise": {func(c *v1beta2.EtcdCluster) { c.Spec.Version = "3.6.17" }, true},
		"it is another cluster":              {func(c *v1beta2.EtcdCluster) { c.UID = "other" }, true},
		"it goes away":                       {func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"a restart is requested":             {asks(resources.AnnotationRestart), true},
		"another CA is requested":            {asks(resources.AnnotationRotateCA), true},
		"the end of the old CA is requested": {asks(resources.AnnotationDropOldCA), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.cluster)
			err := requireSameSpec(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live}}, seen: s})
			if test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestOthersStay: before one member goes the others are looked at, because a pod serves until
// its very end, and a container that has another image runs until it is stopped.
func TestOthersStay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since func(*oneMember)
		stale bool
	}{
		"it stays":                    {func(*oneMember) {}, false},
		"it is deleted":               {func(m *oneMember) { m.pod = nil }, true},
		"it goes":                     {func(m *oneMember) { m.pod.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"it was evicted":              {func(m *oneMember) { m.pod.Status.Phase = corev1.PodFailed }, true},
		"it is another cluster's":     {func(m *oneMember) { m.pod.OwnerReferences[0].UID = "other" }, true},
		"another image is on its way": {func(m *oneMember) { m.pod, _ = resources.WithVersion(m.cluster, m.pod) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pod.Status.ContainerStatuses[0].ContainerID = "containerd://old"
			live.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			test.since(live)
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			s.Etcd.Members = []planner.Member{
				{Name: "c-a", Health: planner.Healthy}, {Name: "c-goes", Health: planner.Healthy},
				{Name: "c-ill"}, {Name: "c-learns", Health: planner.Healthy, Learner: true},
			}
			r := &Reconciler{Config: Config{Objects: live}}
			if err := requireOtherVotersStay(t.Context(), &run{Reconciler: r, seen: s}, "c-goes", 1); test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the error is %v", err)
			}
			if n := len(live.calls); n != 1 {
				t.Errorf("%d pods were looked at", n)
			}
		})
	}
}

// TestEndObservedBefore: two members whose nodes end no pod do not keep each other. The planner has counted neither.
func TestEndObservedBefore(t *testing.T) {
	t.Parallel()
	live := stopped()
	live.pod.DeletionTimestamp = ptr.To(metav1.Now())
	s := &seen{Observed: planner.Observed{Cluster: live.cluster, Pods: []planner.Pod{{Name: "c-a", Owned: true, Terminating: true}}}}
	s.Etcd.Members = []planner.Member{{Name: "c-a", Health: planner.Healthy}, {Name: "c-goes", Health: planner.Healthy}}
	r := &run{Reconciler: &Reconciler{Config: Config{Objects: live}}, seen: s}
	if err := requireOtherVotersStay(t.Context(), r, "c-goes", 1); err != nil {
		t.Error(err)
	}
}

// TestVolumeOutlivesThePod: a pod that comes back to its volume is deleted only while the
// volume exists and stays.
func TestVolumeOutlivesThePod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since func(*oneMember)
		stale bool
	}{
		"it stays":                {func(*oneMember) {}, false},
		"it is deleted":           {func(m *oneMember) { m.pvc = nil }, true},
		"it goes":                 {func(m *oneMember) { m.pvc.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"it is another cluster's": {func(m *oneMember) { m.pvc.Annotations, m.pvc.OwnerReferences = nil, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			test.since(live)
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			err := requirePVC(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: live}}, seen: s}, "c-a")
			if test.stale != errors.Is(err, reconcile.ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
