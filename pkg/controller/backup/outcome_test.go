// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var begun = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func message(t *testing.T, command agent.Command, failed *agent.Error) string {
	t.Helper()
	r := agent.Result{Command: command, ID: "i", Started: begun, Finished: begun.Add(time.Second), Error: failed, URI: "s3://b/k", Verified: true, Revision: 4}
	raw, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func terminated(code int32, reason, text string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: text, FinishedAt: metav1.NewTime(begun.Add(time.Second)),
	}}
}

// proxy is a container that the Job does not declare.
const proxy = "proxy"

func without(name string, containers []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(c corev1.Container) bool { return c.Name == name })
}

// TestOutcomes reads what pods of every fate have left.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	saved := message(t, agent.CommandSave, nil)
	denied := message(t, agent.CommandSave, &agent.Error{Class: agent.ClassCredentials, Message: "credentials: no such file"})
	corrupt := message(t, agent.CommandRestore, &agent.Error{Class: agent.ClassCorrupt, Message: "it cannot be restored"})
	for name, test := range map[string]struct {
		phase     corev1.PodPhase
		podReason string
		init      map[string]corev1.ContainerState
		main      map[string]corev1.ContainerState
		reason    string
		text      string
	}{
		"saved": {phase: corev1.PodSucceeded, main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(0, "Completed", saved)}},
		"proved": {
			phase: corev1.PodSucceeded,
			init: map[string]corev1.ContainerState{
				resources.ContainerSave: terminated(0, "Completed", saved), resources.ContainerInstall: terminated(0, "Completed", ""),
				resources.ContainerRestore: terminated(0, "Completed", message(t, agent.CommandRestore, nil)),
			},
			main: map[string]corev1.ContainerState{resources.ContainerComplete: terminated(0, "Completed", saved)},
		},
		"proved, and not made a backup": {
			phase: corev1.PodFailed, reason: "InvalidCredentials",
			init: map[string]corev1.ContainerState{
				resources.ContainerSave: terminated(0, "Completed", saved), resources.ContainerRestore: terminated(0, "Completed", message(t, agent.CommandRestore, nil)),
			},
			main: map[string]corev1.ContainerState{resources.ContainerComplete: terminated(1, "Error", denied)},
		},
		"not proved": {
			phase: corev1.PodFailed, reason: "Corrupt", text: "it cannot be restored",
			init: map[string]corev1.ContainerState{
				resources.ContainerSave: terminated(0, "Completed", saved), resources.ContainerInstall: terminated(0, "Completed", ""),
				resources.ContainerRestore: terminated(1, "Error", corrupt),
			},
		},
		"refused":                 {phase: corev1.PodFailed, reason: "InvalidCredentials", text: "Secrets that are used: aws", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(1, "Error", denied)}},
		"out of memory":           {phase: corev1.PodFailed, reason: "OOMKilled", text: "exit code 137", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(137, "OOMKilled", "")}},
		"killed":                  {phase: corev1.PodFailed, reason: "AgentFailed", text: "exit code 137", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(137, "Error", "")}},
		"no program":              {phase: corev1.PodFailed, reason: "StartError", text: "exit code 128", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(128, "StartError", "exec: no such file")}},
		"failed, and says it has": {phase: corev1.PodFailed, reason: "AgentFailed", text: "exit code 1", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(1, "Error", saved)}},
		"installed nothing": {
			phase: corev1.PodFailed, reason: "AgentFailed", text: "container install",
			init: map[string]corev1.ContainerState{resources.ContainerSave: terminated(0, "Completed", saved), resources.ContainerInstall: terminated(1, "Error", "")},
		},
		"says nothing":      {phase: corev1.PodSucceeded, reason: "AgentFailed", text: "no result", main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(0, "Completed", "")}},
		"evicted":           {phase: corev1.PodFailed, podReason: "Evicted", reason: "Evicted", text: "pod p"},
		"never a container": {phase: corev1.PodFailed, reason: "PodFailed", text: "pod p"},
		"saved, and a proxy runs on": {phase: corev1.PodRunning, main: map[string]corev1.ContainerState{
			resources.ContainerSave: terminated(0, "Completed", saved), proxy: {Running: &corev1.ContainerStateRunning{}},
		}},
		"saved, and a proxy was killed": {phase: corev1.PodFailed, main: map[string]corev1.ContainerState{
			resources.ContainerSave: terminated(0, "Completed", saved), proxy: terminated(137, "Error", ""),
		}},
		"saved, after a proxy was prepared": {
			phase: corev1.PodSucceeded, init: map[string]corev1.ContainerState{proxy: terminated(0, "Completed", "")},
			main: map[string]corev1.ContainerState{resources.ContainerSave: terminated(0, "Completed", saved)},
		},
		"denied, and a proxy still runs": {phase: corev1.PodRunning, reason: "InvalidCredentials", main: map[string]corev1.ContainerState{
			resources.ContainerSave: terminated(1, "Error", denied), proxy: {Running: &corev1.ContainerStateRunning{}},
		}},
		"saved, then evicted": {
			phase: corev1.PodFailed, podReason: "Evicted", reason: "Evicted",
			init: map[string]corev1.ContainerState{resources.ContainerSave: terminated(0, "Completed", saved)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", CreationTimestamp: metav1.NewTime(begun)}}
			job.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "aws"}}}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: test.phase, Reason: test.podReason, Message: "of the node"}}
			for _, c := range []string{resources.ContainerSave, resources.ContainerInstall, resources.ContainerFetch, resources.ContainerRestore, proxy} {
				if state, ok := test.init[c]; ok {
					pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: c})
					pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: c, State: state})
				}
			}
			for c, state := range test.main {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c})
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c, State: state})
			}
			job.Spec.Template.Spec.InitContainers = without(proxy, pod.Spec.InitContainers)
			job.Spec.Template.Spec.Containers = without(proxy, pod.Spec.Containers)
			o := finished(outcomeOf(job, planner.Attempt{}, pod), begun.Add(time.Hour))
			if o.Succeeded != (test.reason == "") || o.Reason != test.reason || !strings.Contains(o.Message, test.text) {
				t.Errorf("outcome %+v", o)
			}
			if o.Completion.Before(o.Start) || o.Start.IsZero() {
				t.Errorf("from %s to %s", o.Start, o.Completion)
			}
			if o.Succeeded && (o.URI == "" || o.Revision != 4 || !o.Verified) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

// TestSnapshotOfAnEarlierAttempt: a backup that an earlier attempt has stored has the times of that attempt, not those
// of the attempt that finds it. It is neither older than its scheduled time nor newer than its discovery.
func TestSnapshotOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	due, end := begun.Add(-time.Hour), begun.Add(time.Second)
	for name, test := range map[string]struct {
		found, proved     bool
		made              time.Time
		start, completion time.Time
	}{
		"made now":                                  {made: begun, start: begun, completion: end},
		"found":                                     {found: true, made: due.Add(time.Minute), start: due, completion: due.Add(time.Minute)},
		"found, and proved by restore":              {found: true, proved: true, made: due.Add(time.Minute), start: due, completion: due.Add(time.Minute)},
		"found, by a clock that is off":             {found: true, made: due.Add(-time.Hour), start: due, completion: due},
		"found, by a clock ahead":                   {found: true, made: end.Add(time.Hour), start: due, completion: end},
		"found, by an agent that does not say when": {found: true, start: due, completion: end},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := agent.Result{Command: agent.CommandSave, ID: "i", Started: begun, Finished: begun, URI: "s3://b/k", Verified: true, AlreadyDone: test.found}
			if !test.made.IsZero() {
				r.FinishedAt = &test.made
			}
			said := func() corev1.ContainerState {
				raw, err := r.Encode()
				if err != nil {
					t.Fatal(err)
				}
				return terminated(0, "Completed", string(raw))
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", CreationTimestamp: metav1.NewTime(begun)}}
			spec, status := &job.Spec.Template.Spec, corev1.PodStatus{Phase: corev1.PodSucceeded}
			if saver := (corev1.ContainerStatus{Name: resources.ContainerSave, State: said()}); test.proved {
				r.Command, r.AlreadyDone = agent.CommandComplete, false
				spec.InitContainers, spec.Containers = []corev1.Container{{Name: saver.Name}}, []corev1.Container{{Name: resources.ContainerComplete}}
				status.InitContainerStatuses = []corev1.ContainerStatus{saver}
				status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.ContainerComplete, State: said()}}
			} else {
				spec.Containers, status.ContainerStatuses = []corev1.Container{{Name: saver.Name}}, []corev1.ContainerStatus{saver}
			}
			o := finished(outcomeOf(job, planner.Attempt{ScheduledTime: due, Number: 2}, &corev1.Pod{Spec: *spec, Status: status}), begun.Add(time.Hour))
			if !o.Succeeded || !o.Start.Equal(test.start) || !o.Completion.Equal(test.completion) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

// TestEndByAClockThatIsWrong: a long backup ends when it has ended by the clock of Kubernetes, whatever the clock of its node
// says. It would otherwise be too old for a restore as soon as it is stored.
func TestEndByAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	const scheduled, took = 2 * time.Minute, 20 * time.Minute
	for name, test := range map[string]struct {
		behind   time.Duration // at the start of the pod
		stepped  time.Duration // until its end
		unstated bool          // the pod has no start
		noted    time.Duration // when Kubernetes noted the end of the Job, since its creation
		want     time.Duration // since the creation of the Job
	}{
		"clock that is right":                          {want: scheduled + took},
		"clock that is an hour behind":                 {behind: time.Hour, want: scheduled + took},
		"clock that is a little behind":                {behind: 8 * time.Minute, want: scheduled + took},
		"clock that is ahead":                          {behind: -time.Hour, want: time.Hour},
		"clock that was set right":                     {behind: 10 * time.Minute, stepped: 10 * time.Minute, want: scheduled + took + 10*time.Minute},
		"clock that was set right, Job that has ended": {behind: 10 * time.Minute, stepped: 10 * time.Minute, noted: scheduled + took + time.Second, want: scheduled + took + time.Second},
		"clock that was set back":                      {behind: -time.Hour, stepped: -time.Hour, want: scheduled + took},
		"pod that does not say its start":              {behind: time.Hour, unstated: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := begun.Add(scheduled).Add(-test.behind)
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", CreationTimestamp: metav1.NewTime(begun)}}
			j.Spec.Template.Spec.Containers = []corev1.Container{{Name: resources.ContainerSave}}
			end := terminated(0, "Completed", message(t, agent.CommandSave, nil))
			end.Terminated.FinishedAt = metav1.NewTime(started.Add(took + test.stepped))
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(begun.Add(scheduled))}, Spec: j.Spec.Template.Spec,
				Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: resources.ContainerSave, State: end}}},
			}
			if test.noted > 0 {
				j.Status.Conditions = []batchv1.JobCondition{{
					Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(begun.Add(test.noted)),
				}}
			}
			if !test.unstated {
				pod.Status.StartTime = ptr.To(metav1.NewTime(started))
			}
			o := finished(outcomeOf(j, planner.Attempt{}, pod), begun.Add(time.Hour))
			if got := o.Completion.Sub(begun); !o.Succeeded || got != test.want {
				t.Errorf("it ended %s after the creation of its Job, want %s", got, test.want)
			}
		})
	}
}

// TestOutcomeIsWhatWasSaid: each fact of the agent arrives as what it is.
func TestOutcomeIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	r := agent.Result{
		Command: agent.CommandSave, ID: "i", Started: begun, Finished: begun.Add(time.Second), URI: "s3://b/k", Revision: 4, EtcdVersion: "3.6.16", Member: "m",
		Size: 100, StoredSize: 50, SHA256: "a", StoredSHA256: "b", Unconfirmed: true, DataDiffers: true, Warning: "w", Unproved: 3, UnprovedAt: "s3://b/k/", Spared: "s3://b/l",
	}
	raw, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", CreationTimestamp: metav1.NewTime(begun.Add(time.Minute))}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: resources.ContainerSave}}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: resources.ContainerSave}}},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
			{Name: resources.ContainerSave, State: terminated(0, "Completed", string(raw))},
		}},
	}
	want := &planner.Outcome{
		Succeeded: true, Start: begun.Add(time.Minute), Completion: begun.Add(time.Minute), URI: "s3://b/k", Revision: 4, EtcdVersion: "3.6.16", Member: "m",
		SnapshotSize: 100, StoredSize: 50, SHA256: "a", Unconfirmed: true, DataDiffers: true, Warning: "w", Unproved: 3, UnprovedAt: "s3://b/k/", Spared: "s3://b/l",
	}
	if diff := cmp.Diff(want, finished(outcomeOf(job, planner.Attempt{}, pod), begun.Add(time.Hour))); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if o := finished(&planner.Outcome{Start: begun, Completion: begun.Add(24 * time.Hour)}, begun.Add(time.Hour)); !o.Completion.Equal(begun.Add(time.Hour)) {
		t.Errorf("by a node whose clock is ahead it ended at %s", o.Completion)
	}
	job.Spec.ActiveDeadlineSeconds = ptr.To[int64](90)
	end := &batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonDeadlineExceeded, LastTransitionTime: metav1.NewTime(begun.Add(time.Hour))}
	if o := withoutPod(job, end); o.Succeeded || o.Reason != "DeadlineExceeded" || !strings.Contains(o.Message, "1m30s") || !o.Completion.Equal(begun.Add(time.Hour)) {
		t.Errorf("it took too long: %+v", o)
	}
	end.Reason = "x"
	if o := withoutPod(job, end); o.Succeeded || o.Reason != planner.ReasonJobLost {
		t.Errorf("its pod no longer exists: %+v", o)
	}
}
