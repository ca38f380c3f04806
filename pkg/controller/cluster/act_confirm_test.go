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

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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
		{"nobody has written", func(*v1beta2.EtcdCluster) {}, false},
		{"somebody has", func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "8" }, true},
		{"it is another cluster", func(c *v1beta2.EtcdCluster) { c.UID = "other" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.cluster.ResourceVersion = "7"
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.cluster)
			err := (&Reconciler{Config: Config{Objects: live}}).confirmStatus(t.Context(), s)
			if test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// TestUnseenMemberIsLookedFor: a member that is chosen to go because no pod of it is seen may
// have one that has only lost its labels, and lead the others.
func TestUnseenMemberIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, reason := range []planner.RemoveReason{planner.RemoveScaleDown, planner.RemoveReplaced, planner.RemoveUnwanted} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			live := stopped()
			live.pod.Labels = nil
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			r := &Reconciler{Config: Config{Objects: live, Etcd: live, Gate: live, Recorder: live}}
			err := r.removeMember(t.Context(), types.NamespacedName{}, s, planner.RemoveMember{ID: 1, Name: live.pod.Name, Reason: reason})
			if !errors.Is(err, ErrStale) || !slices.Contains(live.calls, "update pod") {
				t.Errorf("it did %q and answers %v", live.calls, err)
			}
		})
	}
}

// TestSeedIsGone: that the data was lost with a seed is recorded only if the live API has
// neither its pod nor its volume.
func TestSeedIsGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		pod, claim bool
	}{{"both are gone", false, false}, {"its pod is there", true, false}, {"its volume is there", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			name := live.pod.Name
			live.claim = resources.ReseedClaim(live.cluster, name)
			if !test.pod {
				live.pod = nil
			}
			if !test.claim {
				live.claim = nil
			}
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			err := (&Reconciler{Config: Config{Objects: live}}).confirmGone(t.Context(), s, name)
			if there := test.pod || test.claim; errors.Is(err, ErrStale) != there || (err != nil && !there) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// mute is a live API that does not say whether a pod or a claim is there.
type mute struct {
	*oneMember
	pods bool
}

var errMute = errors.New("no answer")

func (m *mute) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if m.pods {
		return m.oneMember.GetPod(ctx, namespace, name)
	}
	return nil, errMute
}

func (m *mute) GetClaim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return nil, errMute
}

// TestWhatIsNotKnownIsNotGone: an error is no proof, and no outdated observation.
func TestWhatIsNotKnownIsNotGone(t *testing.T) {
	t.Parallel()
	for _, pods := range []bool{false, true} {
		live := &mute{stopped(), pods}
		live.pod = nil
		r := &Reconciler{Config: Config{Objects: live}}
		s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
		for what, confirm := range map[string]func() error{
			"a seed":         func() error { return r.confirmGone(t.Context(), s, "c-a") },
			"a lost member":  func() error { return r.confirmLost(t.Context(), types.NamespacedName{}, s, "c-a") },
			"a kept claim":   func() error { return r.confirmClaim(t.Context(), s, "c-a") },
			"another member": func() error { return r.confirmStays(t.Context(), s, "c-a") },
		} {
			if err := confirm(); err == nil || (what != "another member" || !pods) && (!errors.Is(err, errMute) || errors.Is(err, ErrStale)) {
				t.Errorf("%s, pods are answered for %t: %v", what, pods, err)
			}
		}
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
		"nothing has happened":      {func(*v1beta2.EtcdCluster) {}, false},
		"its status was written":    {func(c *v1beta2.EtcdCluster) { c.ResourceVersion = "8" }, false},
		"somebody has annotated it": {asks("example.com/note"), false},
		"it is declared otherwise":  {func(c *v1beta2.EtcdCluster) { c.Generation++ }, true},
		"it is another cluster":     {func(c *v1beta2.EtcdCluster) { c.UID = "other" }, true},
		"it goes away":              {func(c *v1beta2.EtcdCluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"a restart is asked for":    {asks(resources.AnnotationRestart), true},
		"another authority is":      {asks(resources.AnnotationRotateAuthority), true},
		"the end of the old one is": {asks(resources.AnnotationDropAuthority), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			s := &seen{Observed: planner.Observed{Cluster: live.cluster.DeepCopy()}}
			test.since(live.cluster)
			err := (&Reconciler{Config: Config{Objects: live}}).confirmSpec(t.Context(), s)
			if test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
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
		"it is gone":                  {func(m *oneMember) { m.pod = nil }, true},
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
			if err := r.confirmOthers(t.Context(), s, "c-goes"); test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
			}
			if n := len(live.calls); n != 1 {
				t.Errorf("%d pods were looked at", n)
			}
		})
	}
}

// TestVolumeOutlivesThePod: a pod that shall come back to its volume goes only while that is
// there and stays.
func TestVolumeOutlivesThePod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since func(*oneMember)
		stale bool
	}{
		"it stays":                {func(*oneMember) {}, false},
		"it is gone":              {func(m *oneMember) { m.claim = nil }, true},
		"it goes":                 {func(m *oneMember) { m.claim.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"it is another cluster's": {func(m *oneMember) { m.claim.Annotations, m.claim.OwnerReferences = nil, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := stopped()
			test.since(live)
			s := &seen{Observed: planner.Observed{Cluster: live.cluster}}
			err := (&Reconciler{Config: Config{Objects: live}}).confirmClaim(t.Context(), s, "c-a")
			if test.stale != errors.Is(err, ErrStale) || (err != nil && !test.stale) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
