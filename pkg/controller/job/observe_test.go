// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// api is a live API with some pods, some events and one way to fail.
type api struct {
	Objects

	pods   []corev1.Pod
	events []corev1.Event
	fails  error
	// gone are the names and UIDs of what was deleted.
	gone []string
}

func (a *api) ListJobPods(context.Context, string, types.UID) ([]corev1.Pod, error) {
	return a.pods, a.fails
}

func (a *api) ListJobEvents(context.Context, string, types.UID) ([]corev1.Event, error) {
	return a.events, a.fails
}

func (a *api) DeleteJob(_ context.Context, _, name string, only metav1.Preconditions) error {
	a.gone = append(a.gone, name+" "+string(*only.UID))
	return a.fails
}

// asked is a Progress that records the addresses that it is called with.
type asked struct {
	ips  []string
	fail error
}

func (a *asked) Of(_ context.Context, ip string) (*v1beta2.TransferProgress, error) {
	a.ips = append(a.ips, ip)
	if a.fail != nil {
		return nil, a.fail
	}
	return &v1beta2.TransferProgress{Bytes: 5}, nil
}

func newJob(edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(epoch)}}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "save"}}
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func condition(t batchv1.JobConditionType, status corev1.ConditionStatus) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: status})
	}
}

func newPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(epoch.Add(time.Second)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newJob(), batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "save"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func notOwned(p *corev1.Pod)  { p.OwnerReferences[0].UID = "other" }
func addressed(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func madeLater(p *corev1.Pod) {
	p.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(time.Hour))
}

func state(s corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "save", State: s}}
	}
}

func running(p *corev1.Pod) {
	state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(p)
}

func waiting(reason string) func(*corev1.Pod) {
	return state(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}})
}

// steps is a Job that runs one container before its last.
func steps() *batchv1.Job {
	return newJob(func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	})
}

// beforeSave is the state of the pod of such a Job whose first container has ended.
func beforeSave(reason string, end time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "first"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(end)},
		}}}
		waiting(reason)(p)
	}
}

// TestObserveReadsTheStateOfAJobFromItsPodsFirst: whatever the Job itself says.
func TestObserveReadsTheStateOfAJobFromItsPodsFirst(t *testing.T) {
	t.Parallel()
	failed, complete := condition(batchv1.JobFailed, corev1.ConditionTrue), condition(batchv1.JobComplete, corev1.ConditionTrue)
	made := epoch.Add(time.Second)
	// The test observes a minute after epoch.
	deletedBefore := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Spec.NodeName = ptr.To(metav1.NewTime(epoch.Add(time.Minute-ago))), "n1"
		}
	}
	on := func(name string, since time.Time) *planner.RunningPod {
		return &planner.RunningPod{Name: name, Since: since}
	}
	startedAt := func(at time.Time) func(*corev1.Pod) {
		return state(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}})
	}
	lost := &planner.LostNode{Since: epoch.Add(time.Minute), Message: "node n1 does not report the end of pod a, which Kubernetes deletes"}
	for name, test := range map[string]struct {
		job      *batchv1.Job
		pods     []*corev1.Pod
		fails    error
		want     planner.Job
		finished string
		lost     bool
		asked    int
	}{
		"nothing yet":                                 {newJob(), nil, nil, planner.Job{Rejected: true}, "", false, 0},
		"the read fails":                              {newJob(), nil, errors.New("x"), planner.Job{Rejected: true}, "", false, 0},
		"it goes":                                     {newJob(func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }), nil, nil, planner.Job{Deleting: true}, "", false, 0},
		"its next container has no image":             {steps(), []*corev1.Pod{newPod("a", beforeSave("ErrImagePull", epoch.Add(20*time.Second)), addressed)}, nil, planner.Job{PodMade: made, StepEnded: epoch.Add(20 * time.Second), Waiting: "ErrImagePull: m"}, "", false, 0},
		"its node's clock is ahead":                   {steps(), []*corev1.Pod{newPod("a", beforeSave("ErrImagePull", epoch.Add(time.Hour)))}, nil, planner.Job{PodMade: made, Waiting: "ErrImagePull: m"}, "", false, 0},
		"its next container is prepared":              {steps(), []*corev1.Pod{newPod("a", beforeSave("PodInitializing", epoch))}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 0},
		"it is scheduled":                             {newJob(), []*corev1.Pod{newPod("a", waiting("ContainerCreating"))}, nil, planner.Job{PodMade: made}, "", false, 0},
		"it is prepared":                              {newJob(), []*corev1.Pod{newPod("a", waiting("PodInitializing"))}, nil, planner.Job{PodMade: made}, "", false, 0},
		"it has no image":                             {newJob(), []*corev1.Pod{newPod("a", waiting("ErrImagePull"))}, nil, planner.Job{PodMade: made, Waiting: "ErrImagePull: m"}, "", false, 0},
		"it runs":                                     {newJob(), []*corev1.Pod{newPod("a", running, addressed)}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made), Progress: &v1beta2.TransferProgress{Bytes: 5}}, "", false, 1},
		"it is unresponsive":                          {newJob(), []*corev1.Pod{newPod("a", running, addressed)}, errors.New("x"), planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 1},
		"its container is younger":                    {newJob(), []*corev1.Pod{newPod("a", startedAt(epoch.Add(30*time.Second)))}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", epoch.Add(30*time.Second))}, "", false, 0},
		"its container is of the future":              {newJob(), []*corev1.Pod{newPod("a", startedAt(epoch.Add(time.Hour)))}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 0},
		"it has no address":                           {newJob(), []*corev1.Pod{newPod("a", running)}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 0},
		"it is being killed":                          {newJob(), []*corev1.Pod{newPod("a", running, addressed, deletedBefore(0))}, nil, planner.Job{PodMade: made, Started: true}, "", false, 0},
		"its pod is on a lost node":                   {newJob(), []*corev1.Pod{newPod("a", running, addressed, deletedBefore(reportGrace))}, nil, planner.Job{PodMade: made, Started: true, LostNode: lost}, "", false, 0},
		"its Job fails on a lost node":                {newJob(condition(batchv1.JobFailureTarget, corev1.ConditionTrue)), []*corev1.Pod{newPod("a", running, deletedBefore(reportGrace))}, nil, planner.Job{PodMade: made, Started: true, LostNode: lost}, "", false, 0},
		"its pod has its grace":                       {newJob(), []*corev1.Pod{newPod("a", running, deletedBefore(reportGrace-time.Second))}, nil, planner.Job{PodMade: made, Started: true}, "", false, 0},
		"one of its pods is on a lost node":           {newJob(), []*corev1.Pod{newPod("a", running, deletedBefore(reportGrace)), newPod("b", running)}, nil, planner.Job{PodMade: made, Started: true, Running: on("b", made)}, "", false, 0},
		"its pod ended before the node left":          {newJob(), []*corev1.Pod{newPod("a", phase(corev1.PodFailed), deletedBefore(time.Hour))}, nil, planner.Job{Started: true}, "a", false, 0},
		"its pod has ended":                           {newJob(), []*corev1.Pod{newPod("a", phase(corev1.PodFailed))}, nil, planner.Job{Started: true}, "a", false, 0},
		"its pod has ended, and the Job has failed":   {newJob(failed), []*corev1.Pod{newPod("a", phase(corev1.PodFailed))}, nil, planner.Job{Started: true}, "a", false, 0},
		"its pod is deleted":                          {newJob(failed), nil, nil, planner.Job{Started: true}, "", true, 0},
		"its pod is deleted, and the Job is complete": {newJob(complete), nil, nil, planner.Job{Started: true}, "", true, 0},
		"it has not failed":                           {newJob(condition(batchv1.JobFailed, corev1.ConditionFalse)), []*corev1.Pod{newPod("a", running)}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 0},
		"it is suspended":                             {newJob(condition(batchv1.JobSuspended, corev1.ConditionTrue)), []*corev1.Pod{newPod("a", running)}, nil, planner.Job{PodMade: made, Started: true, Running: on("a", made)}, "", false, 0},
	} {
		progress := &asked{fail: test.fails}
		got := Observer{Objects: &api{fails: test.fails}, Progress: progress}.Observe(t.Context(), test.job, test.pods, epoch.Add(time.Minute))
		test.want.Name, test.want.Created = "j", epoch
		if diff := cmp.Diff(test.want, got.Job); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		finished := ""
		if got.Finished != nil {
			finished = got.Finished.Name
		}
		if finished != test.finished || (got.Lost != nil) != test.lost || len(progress.ips) != test.asked {
			t.Errorf("%s: finished %q, lost %v, %d requests", name, finished, got.Lost, len(progress.ips))
		}
	}
}

// TestPods: those of others are never taken; those of a Job that has ended are read live
// where the cache does not show how.
func TestPods(t *testing.T) {
	t.Parallel()
	failed := condition(batchv1.JobFailed, corev1.ConditionTrue)
	live := &api{pods: []corev1.Pod{*newPod("live", phase(corev1.PodFailed)), *newPod("x", notOwned)}}
	for name, test := range map[string]struct {
		job    *batchv1.Job
		cached []*corev1.Pod
		want   string
	}{
		"it runs":              {newJob(), []*corev1.Pod{newPod("a", running), newPod("x", notOwned, running)}, "a"},
		"it has ended":         {newJob(failed), []*corev1.Pod{newPod("a", phase(corev1.PodFailed))}, "a"},
		"the cache is behind":  {newJob(failed), []*corev1.Pod{newPod("a", running)}, "live"},
		"only others are seen": {newJob(failed), []*corev1.Pod{newPod("x", notOwned, phase(corev1.PodFailed))}, "live"},
	} {
		pods, err := Observer{Objects: live}.Pods(t.Context(), newJob(), test.job, test.cached)
		if err != nil || len(pods) != 1 || pods[0].Name != test.want {
			t.Errorf("%s: %v, %v", name, pods, err)
		}
	}
	broken := errors.New("x")
	if _, err := (Observer{Objects: &api{fails: broken}}).Pods(t.Context(), newJob(), newJob(failed), nil); !errors.Is(err, broken) {
		t.Errorf("the API fails: %v", err)
	}
}

// TestDelete deletes the one Job that was observed, by its UID.
func TestDelete(t *testing.T) {
	t.Parallel()
	jobs := []*batchv1.Job{newJob(), newJob(func(j *batchv1.Job) { j.Name, j.UID = "k", "v" })}
	resource := schema.GroupResource{Resource: "jobs"}
	for name, test := range map[string]struct{ err, want error }{
		"there":   {nil, nil},
		"gone":    {apierrors.NewNotFound(resource, "k"), nil},
		"another": {apierrors.NewConflict(resource, "k", errors.New("UID")), nil},
		"refused": {apierrors.NewForbidden(resource, "k", errors.New("x")), apierrors.NewForbidden(resource, "k", errors.New("x"))},
	} {
		live := &api{fails: test.err}
		err := Observer{Objects: live}.Delete(t.Context(), jobs, "k")
		if (err != nil) != (test.want != nil) || len(live.gone) != 1 || live.gone[0] != "k v" {
			t.Errorf("%s: deleted %q, %v", name, live.gone, err)
		}
	}
}
