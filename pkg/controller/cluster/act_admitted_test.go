// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// policyAPI is a live API whose policy has pods pull from a mirror, and whose scheduler writes to a pod first.
type policyAPI struct {
	*oneMember
	conflicts, updates int
}

func (p *policyAPI) admit(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Image = "mirror/etcd@sha256:1"
	p.pod = pod
	return pod
}

func (p *policyAPI) CreatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	created := p.admit(pod)
	created.UID = "new"
	return created, nil
}

func (p *policyAPI) UpdatePod(_ context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	p.updates++
	if p.updates <= p.conflicts {
		return nil, apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("bound"))
	}
	return p.admit(pod), nil
}

func (p *policyAPI) ListPods(context.Context, string, string) ([]corev1.Pod, error) {
	return []corev1.Pod{*p.pod}, nil
}

// TestAdmittedImageIsNoted: what a policy makes of a pod is no change by something else.
func TestAdmittedImageIsNoted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		conflicts int
		stale     bool
	}{"at once": {}, "after the scheduler": {2, false}, "a pod that changes all the time": {99, true}} {
		api := &policyAPI{oneMember: stopped(), conflicts: test.conflicts}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: api, Gate: api, Recorder: api}}, seen: &seen{Observed: planner.Observed{Cluster: api.cluster}}}
		err := submitPod(t.Context(), r, resources.Pod(api.cluster, resources.MemberPod{Name: "c-a"}))
		if errors.Is(err, reconcile.ErrStale) != test.stale || err != nil && !test.stale {
			t.Errorf("%s: %v", name, err)
		}
		if noted := resources.ImageStateOf(api.pod) == resources.ImageAdmitted; noted == test.stale {
			t.Errorf("%s: the image is noted: %t", name, noted)
		}
	}
}

// deafAPI is an API that ends the connection at the first update of a pod.
type deafAPI struct {
	*policyAPI
	failed bool
}

func (d *deafAPI) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if !d.failed {
		d.failed = true
		return nil, errors.New("connection lost")
	}
	return d.policyAPI.UpdatePod(ctx, pod)
}

// TestAdmittedImageIsNotedLater: a note that could not be written with the creation of the pod is written later, and
// the image does not count as changed meanwhile.
func TestAdmittedImageIsNotedLater(t *testing.T) {
	t.Parallel()
	api := &deafAPI{policyAPI: &policyAPI{oneMember: stopped()}}
	r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: api, Gate: api, Recorder: api}}, seen: &seen{Observed: planner.Observed{Cluster: api.cluster}}}
	if err := submitPod(t.Context(), r, resources.Pod(api.cluster, resources.MemberPod{Name: "c-a"})); err == nil {
		t.Fatal("the note was written")
	}
	api.pod.Generation = 1
	if seen := observedPod(api.cluster, api.pod); seen.Image != resources.ImageUnnoted || !seen.FromPolicy {
		t.Errorf("the observed image is %v, from a policy: %t", seen.Image, seen.FromPolicy)
	}
	if err := labelPod(t.Context(), r, planner.LabelPod{Name: "c-a", UID: "new", Role: planner.PodVoter}); err != nil {
		t.Fatal(err)
	}
	api.pod.Generation = 2
	if seen := observedPod(api.cluster, api.pod); seen.Image != resources.ImageAdmitted || !seen.FromPolicy {
		t.Errorf("the observed image is %v, from a policy: %t", seen.Image, seen.FromPolicy)
	}
}

// TestWriteThatRestartsAPodEndsThePlan: a policy that is newer than the pods changes images with any write. So no
// second pod is written, and the first one counts as restarting.
func TestWriteThatRestartsAPodEndsThePlan(t *testing.T) {
	t.Parallel()
	refresh, label := planner.RefreshPod{Name: "c-a", UID: "pod-uid"}, planner.LabelObject{Object: planner.Object{Kind: planner.KindPod, Name: "c-a", UID: "pod-uid"}}
	for name, actions := range map[string][]planner.Action{"certificates": {refresh, label}, "labels": {label, refresh}} {
		api := &policyAPI{oneMember: stopped()}
		api.pod.Annotations[resources.AnnotationAdmittedImage] = resources.EtcdImage(api.pod)
		api.pod.Annotations[resources.AnnotationCertificates] = "before"
		delete(api.pod.Labels, resources.LabelProtected)
		api.cluster.Spec.DeletionProtection = ptr.To(true)
		api.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.ContainerName, ContainerID: "id", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: api, Gate: api, Recorder: api, Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0))}}, seen: &seen{Observed: planner.Observed{Cluster: api.cluster, Now: time.Unix(1, 0)}}}
		done, err := act(t.Context(), r, planner.Plan{Actions: actions})
		if err != nil || done.retryAfter == 0 || api.updates != 2 { // the write, and the note
			t.Errorf("%s: %d updates, outcome %+v, error %v", name, api.updates, done, err)
		}
		if o := observedPod(api.cluster, api.pod); !o.Restarting || !o.FromPolicy || o.Image != resources.ImageAdmitted {
			t.Errorf("%s: the pod is observed as %+v", name, o)
		}
		if done, err = act(t.Context(), r, planner.Plan{Actions: actions}); err != nil || done.retryAfter != 0 || api.updates != 3 {
			t.Errorf("%s, once more: %d updates, outcome %+v, error %v", name, api.updates, done, err)
		}
	}
}

// TestPodsSayTheirRound: pods that are created and images that are put back in place say in which round of the record.
func TestPodsSayTheirRound(t *testing.T) {
	t.Parallel()
	api := &policyAPI{oneMember: stopped()}
	r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: api, Gate: api, Recorder: api}}, seen: &seen{Observed: planner.Observed{Cluster: api.cluster}}}
	round := func(number int) string {
		r.seen.Record.PutBack = resources.PutBackRecord{Round: number, Since: time.Unix(1, 0)}
		return r.seen.Record.PutBack.String()
	}
	want := round(1)
	if err := submitPod(t.Context(), r, resources.Pod(api.cluster, resources.MemberPod{Name: "c-a"})); err != nil {
		t.Fatal(err)
	}
	if got := observedPod(api.cluster, api.pod).PutBack; got != want {
		t.Errorf("a new pod says %q, want %q", got, want)
	}
	api.pod.Spec.Containers[0].Image, api.pod.Status.ContainerStatuses = "by/hand:1", nil
	want = round(2)
	if err := upgradePod(t.Context(), r, planner.UpgradePod{Name: "c-a", UID: "new", Mode: planner.RestartIdle}); err != nil {
		t.Fatal(err)
	}
	if got := observedPod(api.cluster, api.pod).PutBack; got != want {
		t.Errorf("a pod whose image was put back says %q, want %q", got, want)
	}
	round(3)
	api.cluster.Spec.Version = "3.6.99"
	if err := upgradePod(t.Context(), r, planner.UpgradePod{Name: "c-a", UID: "new", Mode: planner.RestartIdle}); err != nil {
		t.Fatal(err)
	}
	if got := observedPod(api.cluster, api.pod).PutBack; got != want {
		t.Errorf("a pod that was upgraded says %q, want %q", got, want)
	}
}

// responses of members by name.
type respondingAPI struct {
	*policyAPI
	responses map[string]etcd.StatusResult
}

func (r *respondingAPI) Statuses(context.Context, etcd.Target) map[string]etcd.StatusResult {
	return r.responses
}

// TestUnresponsiveMemberRestarts only while it does not respond and the pods are those that were observed.
func TestUnresponsiveMemberRestarts(t *testing.T) {
	t.Parallel()
	unresponsive, serves := etcd.StatusResult{Err: etcd.ErrTimeout}, etcd.StatusResult{Health: etcd.MemberHealth{Leader: 1}}
	for name, test := range map[string]struct {
		change   func(api *respondingAPI, s *seen)
		restarts bool
	}{
		"no member responds":          {func(*respondingAPI, *seen) {}, true},
		"it responds":                 {func(api *respondingAPI, _ *seen) { api.responses["c-a"] = etcd.StatusResult{} }, false},
		"it rejects the request":      {func(api *respondingAPI, _ *seen) { api.responses["c-a"] = etcd.StatusResult{Err: etcd.ErrDenied} }, false},
		"another member has a leader": {func(api *respondingAPI, _ *seen) { api.responses["c-b"] = serves }, false},
		"another member has a leader, as was observed": {func(api *respondingAPI, s *seen) {
			api.responses["c-b"], s.Etcd.Linearizable = serves, true
		}, true},
		"another member knows no leader": {func(api *respondingAPI, _ *seen) { api.responses["c-b"] = etcd.StatusResult{} }, true},
		"its container has restarted": {func(api *respondingAPI, _ *seen) {
			api.pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(9, 0))}
		}, false},
		"its pod was replaced": {func(api *respondingAPI, _ *seen) { api.pod.UID = "another" }, false},
	} {
		api := &respondingAPI{&policyAPI{oneMember: stopped()}, map[string]etcd.StatusResult{"c-a": unresponsive, "c-b": unresponsive}}
		api.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1, 0))}}
		s := &seen{Observed: planner.Observed{Cluster: api.cluster, Pods: []planner.Pod{observedPod(api.cluster, api.pod)}}}
		test.change(api, s)
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: api, Gate: api, Recorder: api}}, seen: s}
		err := requireRestartAllowed(t.Context(), r, "c-a", planner.RestartUnresponsive)
		if test.restarts && err != nil || !test.restarts && !errors.Is(err, reconcile.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
