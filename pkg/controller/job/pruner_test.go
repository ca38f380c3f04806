// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
)

// TestRunningPruners: a Job deletes until its pod has ended, also after the Job was deleted. A container that others have
// added to the pod does not count. A pod whose node does not report its end is named, because only a person ends the wait.
func TestRunningPruners(t *testing.T) {
	t.Parallel()
	const prunes, readable, newer = `{"id":"i","prune":{"layout":"Directory","count":1}}`, `{"id":"i"}`, `{"id":"i","new":1,"prune":{"layout":"Directory"}}`
	spec := func(request string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "save", Args: []string{"save", "--request=" + request}}}}
	}
	ended := func(j *batchv1.Job, _ *corev1.Pod) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	in := func(phase corev1.PodPhase) func(*batchv1.Job, *corev1.Pod) {
		return func(_ *batchv1.Job, p *corev1.Pod) { p.Status.Phase = phase }
	}
	terminated := func(_ *batchv1.Job, p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "save", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	}
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	deleted := func(ago time.Duration) func(*batchv1.Job, *corev1.Pod) {
		return func(_ *batchv1.Job, p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)} }
	}
	for name, test := range map[string]struct {
		request string
		edits   []func(*batchv1.Job, *corev1.Pod)
		jobless bool
		podless bool
		want    []string
	}{
		"runs":                           {request: prunes, want: []string{"j"}},
		"has no pod yet":                 {request: prunes, podless: true, want: []string{"j"}},
		"prunes nothing":                 {request: readable},
		"request of a later release":     {request: newer, want: []string{"j"}},
		"request that cannot be read":    {request: "{", want: []string{"j"}},
		"Job was deleted, pod runs":      {request: prunes, jobless: true, want: []string{"j"}},
		"Job was deleted, pod has ended": {request: prunes, jobless: true, edits: []func(*batchv1.Job, *corev1.Pod){in(corev1.PodFailed)}},
		"Job has ended, pod runs":        {request: prunes, edits: []func(*batchv1.Job, *corev1.Pod){ended}, want: []string{"j"}},
		"Job and pod have ended":         {request: prunes, edits: []func(*batchv1.Job, *corev1.Pod){ended, in(corev1.PodSucceeded)}},
		"pod has ended, Job not yet":     {request: prunes, edits: []func(*batchv1.Job, *corev1.Pod){in(corev1.PodSucceeded)}},
		"agent has ended, a proxy runs":  {request: prunes, edits: []func(*batchv1.Job, *corev1.Pod){in(corev1.PodRunning), terminated}},
		"pod is being deleted":           {request: prunes, jobless: true, edits: []func(*batchv1.Job, *corev1.Pod){deleted(59 * time.Second)}, want: []string{"j"}},
		"its node does not respond":      {request: prunes, jobless: true, edits: []func(*batchv1.Job, *corev1.Pod){deleted(time.Minute)}, want: []string{"j j-x on n"}},
		"the same, and the Job is left":  {request: prunes, edits: []func(*batchv1.Job, *corev1.Pod){deleted(time.Minute)}, want: []string{"j j-x on n"}},
		"it has ended, its pod is left":  {request: prunes, jobless: true, edits: []func(*batchv1.Job, *corev1.Pod){deleted(time.Hour), terminated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "uid-j"}}
			j.Spec.Template.Spec = spec(test.request)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "j-x", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}}, Spec: spec(test.request)}
			p.Spec.Containers, p.Spec.NodeName = append(p.Spec.Containers, corev1.Container{Name: "proxy"}), "n"
			for _, edit := range test.edits {
				edit(j, p)
			}
			jobs, pods := []*batchv1.Job{j}, []*corev1.Pod{p}
			if test.jobless {
				jobs = nil
			}
			if test.podless {
				pods = nil
			}
			var got []string
			for _, running := range job.RunningPruners(jobs, pods, now) {
				text := running.Job
				if running.Overdue != "" {
					text += " " + running.Overdue + " on " + running.Node
				}
				got = append(got, text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("these may delete: %q, want %q", got, test.want)
			}
		})
	}
}
