// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// Reason of a failed attempt.
const (
	// ReasonAgentFailed: the agent ended without a result. The message names its container and exit code; the log of the pod says more. The next attempt follows by itself.
	ReasonAgentFailed = "AgentFailed"
	// ReasonPodFailed: the pod failed, and neither its containers nor Kubernetes say why. The next attempt follows by itself.
	ReasonPodFailed = "PodFailed"
)

// LostMessage is about a Job whose pod does not exist any more.
const LostMessage = "the pod was deleted before its result was read"

// Ended returns the condition with which a Job has ended, nil while it has not.
func Ended(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// PodsOf returns those of pods that a Job has made.
func PodsOf(job *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	var own []*corev1.Pod
	for _, p := range pods {
		if metav1.IsControlledBy(p, job) {
			own = append(own, p)
		}
	}
	return own
}

// NewestFinished returns the pod of a Job that ended last, one that succeeded before any
// other. Containers that others add to the pod may run on.
func NewestFinished(job *batchv1.Job, pods []*corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && !haveEnded(job, p) {
			continue
		}
		switch {
		case found == nil:
			found = p
		case HasSucceeded(job, p) != HasSucceeded(job, found):
			if HasSucceeded(job, p) {
				found = p
			}
		case found.CreationTimestamp.Before(&p.CreationTimestamp):
			found = p
		}
	}
	return found
}

// HasSucceeded is true if every container of the Job that ends its pod has ended well,
// whatever the state of containers that others have added, such as the proxy of a mesh.
func HasSucceeded(job *batchv1.Job, pod *corev1.Pod) bool {
	if !haveEnded(job, pod) {
		return pod.Status.Phase == corev1.PodSucceeded
	}
	for _, c := range Containers(job, pod) {
		if end := c.State.Terminated; end == nil || end.ExitCode != 0 {
			return false
		}
	}
	return true
}

// haveEnded is true if the containers of the Job that end its pod have ended. They are not
// restarted.
func haveEnded(job *batchv1.Job, pod *corev1.Pod) bool {
	ended := 0
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.State.Terminated != nil && has(job.Spec.Template.Spec.Containers, c.Name) {
			ended++
		}
	}
	return ended > 0 && ended == len(job.Spec.Template.Spec.Containers)
}

// Containers returns the statuses of those containers of a pod that its Job declares, in
// the order in which they run.
func Containers(job *batchv1.Job, pod *corev1.Pod) []corev1.ContainerStatus {
	desired := &job.Spec.Template.Spec
	return slices.DeleteFunc(statuses(pod), func(c corev1.ContainerStatus) bool {
		return !has(desired.InitContainers, c.Name) && !has(desired.Containers, c.Name)
	})
}

func has(containers []corev1.Container, name string) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}

// statuses returns the statuses of all containers of a pod in the order in which they run.
func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	byName := map[string]corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			byName[list[i].Name] = list[i]
		}
	}
	var statuses []corev1.ContainerStatus
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if s, ok := byName[list[i].Name]; ok {
				statuses = append(statuses, s)
			}
		}
	}
	return statuses
}

// HasStarted is true while a container of the Job runs in its pod, and after one has ended, unless Kubernetes says why it
// does not start the next container. Such a pod waits as one does that has not started: each container has its image, and
// nothing else ends a Job whose image cannot be pulled.
func HasStarted(job *batchv1.Job, pod *corev1.Pod) bool {
	ended := false
	for _, c := range Containers(job, pod) {
		if c.State.Running != nil {
			return true
		}
		ended = ended || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	}
	return ended && WaitingFor(pod) == ""
}

// lastEnd returns when the last container of the Job that has ended did; zero if none has. A time that is too far ahead
// comes from a wrong clock of the node, and would put off the end of the wait for the next container.
func lastEnd(job *batchv1.Job, pod *corev1.Pod, now time.Time) time.Time {
	var last time.Time
	limit := now.Add(planner.StartTimeout)
	for _, c := range Containers(job, pod) {
		if end := c.State.Terminated; end != nil && end.FinishedAt.After(last) && end.FinishedAt.Time.Before(limit) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

// lastStart returns when the newest container of the Job started; when the pod was created, if no container is newer. A time
// of the future comes from a wrong clock of the node.
func lastStart(job *batchv1.Job, pod *corev1.Pod, now time.Time) time.Time {
	last := pod.CreationTimestamp.Time
	for _, c := range Containers(job, pod) {
		if run := c.State.Running; run != nil && run.StartedAt.After(last) && !run.StartedAt.After(now) {
			last = run.StartedAt.Time
		}
	}
	return last
}

// WaitingFor says why a pod does not start, as far as Kubernetes knows.
func WaitingFor(pod *corev1.Pod) string {
	if reason, message, is := resources.Unscheduled(pod); is {
		return Shorten(reason + ": " + message)
	}
	for _, c := range statuses(pod) {
		// Every container passes through these.
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return Shorten(w.Reason + ": " + w.Message)
		}
	}
	return ""
}

// Explain adds which secret a file belongs to.
func Explain(job *batchv1.Job, e *agent.Error) string {
	if e.Class != agent.ClassCredentials {
		return e.Message
	}
	var secrets []string
	for i := range job.Spec.Template.Spec.Volumes {
		if s := job.Spec.Template.Spec.Volumes[i].Secret; s != nil {
			secrets = append(secrets, s.SecretName)
		}
	}
	if len(secrets) == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (Secrets that are used: %s)", e.Message, strings.Join(secrets, ", "))
}

// EndedSilently is about a container that left no result.
func EndedSilently(name string, end *corev1.ContainerStateTerminated) (reason, message string) {
	reason = end.Reason
	if reason == "" || reason == "Error" || reason == "Completed" {
		reason = ReasonAgentFailed
	}
	message = fmt.Sprintf("container %s ended with exit code %d and left no result", name, end.ExitCode)
	return camel(reason), message
}

// PodReason is about a pod that was ended from outside.
func PodReason(pod *corev1.Pod) (reason, message string) {
	if pod.Status.Reason != "" {
		return camel(pod.Status.Reason), Shorten(fmt.Sprintf("pod %s: %s", pod.Name, pod.Status.Message))
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return camel(c.Reason), Shorten(fmt.Sprintf("pod %s: %s", pod.Name, c.Message))
		}
	}
	return ReasonPodFailed, fmt.Sprintf("pod %s failed before its containers said why", pod.Name)
}

// camel makes a reason that a condition takes of what Kubernetes said.
func camel(reason string) string {
	kept := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') {
			return r
		}
		return -1
	}, reason)
	if kept == "" || (kept[0] >= '0' && kept[0] <= '9') {
		return "PodFailed"
	}
	return strings.ToUpper(kept[:1]) + kept[1:]
}

// Shorten makes a text that a program has left fit a status.
func Shorten(s string) string {
	return untrusted.Text(strings.TrimSuffix(strings.TrimSpace(s), ":"))
}

// ResultOf returns what the agent left when it ended.
func ResultOf(end *corev1.ContainerStateTerminated) (*agent.Result, error) {
	return agent.DecodeResult(end.Message)
}
