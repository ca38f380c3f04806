// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// maxMessage bounds what is taken over into the status, in bytes.
const maxMessage = 1024

// viewOf says what has become of a Job. Its pod knows more than the Job, and earlier.
func (r *Reconciler) viewOf(ctx context.Context, job *batchv1.Job, attempt planner.Attempt, pods []*corev1.Pod) planner.Job {
	v := planner.Job{
		Name: job.Name, Attempt: attempt, Created: job.CreationTimestamp.Time, Deleting: job.DeletionTimestamp != nil,
	}
	if pod := newestFinished(pods); pod != nil {
		v.Started = true
		v.Outcome = outcomeOf(job, pod)
		return v
	}
	if end := ended(job); end != nil {
		v.Started = true
		v.Outcome = withoutPod(job, end)
		return v
	}
	for _, pod := range pods {
		if started(pod) {
			v.Started = true
			if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
				progress, err := r.Progress.Of(ctx, pod.Status.PodIP)
				if err != nil {
					klog.FromContext(ctx).V(4).Info("The agent did not say how far it is", "pod", klog.KObj(pod), "error", err)
				}
				v.Progress = progress
			}
		} else if v.Waiting == "" {
			v.Waiting = waitingFor(pod)
		}
	}
	return v
}

// ended returns the condition with which a Job has ended, nil while it has not.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

func podsOf(job *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	var own []*corev1.Pod
	for _, p := range pods {
		if metav1.IsControlledBy(p, job) {
			own = append(own, p)
		}
	}
	return own
}

// newestFinished returns the pod that ended last, one that succeeded before any other.
func newestFinished(pods []*corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			continue
		}
		switch {
		case found == nil:
			found = p
		case (p.Status.Phase == corev1.PodSucceeded) != (found.Status.Phase == corev1.PodSucceeded):
			if p.Status.Phase == corev1.PodSucceeded {
				found = p
			}
		case found.CreationTimestamp.Before(&p.CreationTimestamp):
			found = p
		}
	}
	return found
}

// containers returns the statuses of a pod's containers in the order in which they run.
func containers(pod *corev1.Pod) []corev1.ContainerStatus {
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

func started(pod *corev1.Pod) bool {
	for _, c := range containers(pod) {
		if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// waitingFor says why a pod does not start, as far as Kubernetes knows.
func waitingFor(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return shorten(c.Reason + ": " + c.Message)
		}
	}
	for _, c := range containers(pod) {
		// Every container passes through these.
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return shorten(w.Reason + ": " + w.Message)
		}
	}
	return ""
}

// outcomeOf reads what the agent said when it ended: one container that failed is a
// backup that failed.
func outcomeOf(job *batchv1.Job, pod *corev1.Pod) *planner.Outcome {
	o := &planner.Outcome{Start: job.CreationTimestamp.Time}
	var saved *agent.Result
	verified := true
	for _, c := range containers(pod) {
		end := c.State.Terminated
		if end == nil {
			continue // a container before it has failed
		}
		o.Completion = end.FinishedAt.Time
		result, err := agent.DecodeResult(end.Message)
		switch {
		case c.Name == resources.ContainerInstall && end.ExitCode == 0:
			continue
		case err == nil && result.Error != nil:
			o.Reason, o.Message = string(result.Error.Class), shorten(explain(job, result.Error))
			return finished(o)
		case end.ExitCode != 0 || err != nil:
			o.Reason, o.Message = endedSilently(c.Name, end)
			return finished(o)
		case c.Name == resources.ContainerSave:
			saved = result
			verified = result.Verified
		}
	}
	if saved == nil || pod.Status.Phase != corev1.PodSucceeded {
		o.Reason, o.Message = podReason(pod)
		return finished(o)
	}
	o.Succeeded = true
	o.URI, o.EtcdVersion, o.Revision, o.Member = saved.URI, saved.EtcdVersion, saved.Revision, saved.Member
	o.SnapshotSize, o.StoredSize, o.SHA256, o.Verified = saved.Size, saved.StoredSize, saved.SHA256, verified
	o.Warning = shorten(saved.Warning)
	return finished(o)
}

// finished makes sure that an attempt does not end before it began, whatever the clocks
// of the nodes say.
func finished(o *planner.Outcome) *planner.Outcome {
	if o.Completion.Before(o.Start) {
		o.Completion = o.Start
	}
	return o
}

// explain adds which secret a file belongs to.
func explain(job *batchv1.Job, e *agent.Error) string {
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

// endedSilently is about a container that left no result.
func endedSilently(name string, end *corev1.ContainerStateTerminated) (reason, message string) {
	reason = end.Reason
	if reason == "" || reason == "Error" || reason == "Completed" {
		reason = "AgentFailed"
	}
	message = fmt.Sprintf("container %s ended with exit code %d and left no result", name, end.ExitCode)
	return camel(reason), message
}

// podReason is about a pod that was ended from outside.
func podReason(pod *corev1.Pod) (reason, message string) {
	if pod.Status.Reason != "" {
		return camel(pod.Status.Reason), shorten(fmt.Sprintf("pod %s: %s", pod.Name, pod.Status.Message))
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return camel(c.Reason), shorten(fmt.Sprintf("pod %s: %s", pod.Name, c.Message))
		}
	}
	return "PodFailed", fmt.Sprintf("pod %s failed before its containers said why", pod.Name)
}

// withoutPod is about a Job whose pod is gone.
func withoutPod(job *batchv1.Job, end *batchv1.JobCondition) *planner.Outcome {
	o := &planner.Outcome{Start: job.CreationTimestamp.Time, Completion: end.LastTransitionTime.Time}
	o.Reason, o.Message = planner.ReasonJobLost, "the pod was deleted before it said what came of it"
	if end.Type == batchv1.JobFailed && end.Reason == batchv1.JobReasonDeadlineExceeded {
		o.Reason = end.Reason
		o.Message = fmt.Sprintf("the attempt took longer than spec.backupPolicy.timeoutInSecond (%s)",
			time.Duration(timeoutOf(job))*time.Second)
	}
	return finished(o)
}

func timeoutOf(job *batchv1.Job) int64 {
	if t := job.Spec.ActiveDeadlineSeconds; t != nil {
		return *t
	}
	return 0
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

func shorten(s string) string {
	s = strings.ToValidUTF8(strings.TrimSuffix(strings.TrimSpace(s), ":"), "?")
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "")
}
