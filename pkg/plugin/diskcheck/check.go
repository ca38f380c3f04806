// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diskcheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// mostEvents is how many events are read.
const mostEvents = 500

// ErrFailed means that the disk was not measured.
var ErrFailed = errors.New("the disk was not measured")

// Check is one that runs.
type Check struct {
	clients *connect.Clients
	job     *batchv1.Job
}

// State is how far a check is.
type State struct {
	// Text says what happens now.
	Text string
	// Test is what the agent has measured; nil before it started.
	Test *agent.DiskTest
	// Node that the pod is on.
	Node string
}

// Start creates the Job. The caller must call Remove.
func Start(ctx context.Context, clients *connect.Clients, d resources.DiskCheck) (*Check, error) {
	job, err := clients.Kube.BatchV1().Jobs(d.Namespace).Create(ctx, d.Job(), metav1.CreateOptions{})
	if err != nil {
		return nil, failure.With(err, failure.Right{Verb: "create", Resource: "jobs", Namespace: d.Namespace})
	}
	return &Check{clients, job}, nil
}

// Name returns the name of the Job, with which the names of the pod and of the PVC begin.
func (c *Check) Name() string { return c.job.Name }

// Look reads how far the check is. An error that wraps ErrFailed is its end.
func (c *Check) Look(ctx context.Context) (State, error) {
	pod, err := c.pod(ctx)
	if err != nil {
		return State{}, err
	}
	if pod == nil {
		job, err := c.clients.Kube.BatchV1().Jobs(c.job.Namespace).Get(ctx, c.job.Name, metav1.GetOptions{})
		if err != nil {
			return State{}, failure.With(err, c.right("get", "jobs"))
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
				return State{}, fmt.Errorf("%w: Job %s: %s", ErrFailed, job.Name, condition.Message)
			}
		}
		text, err := c.waiting(ctx, "waits for the pod")
		return State{Text: text}, err
	}
	state := State{Node: pod.Spec.NodeName}
	container := containerOf(pod)
	switch {
	case container.State.Terminated != nil:
		state.Test, err = resultOf(container.State.Terminated.Message)
		return state, err
	case pod.Status.Phase == corev1.PodFailed:
		return State{}, fmt.Errorf("%w: pod %s: %s", ErrFailed, pod.Name, cmp.Or(pod.Status.Message, pod.Status.Reason, "it failed"))
	case container.State.Running != nil:
		state.Test, state.Text = c.progress(ctx, pod.Name)
	default:
		state.Text, err = c.waiting(ctx, podWaits(pod, container))
	}
	return state, err
}

// resultOf reads the result of the agent.
func resultOf(message string) (*agent.DiskTest, error) {
	result, err := agent.DecodeDiskTest([]byte(message))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the agent ended without a result; its image may be older than this plugin. Its log: %s", ErrFailed, strings.TrimSpace(message))
	case result.Error != "":
		return nil, fmt.Errorf("%w: %s", ErrFailed, result.Error)
	case !result.Done || result.Writes == 0:
		return nil, fmt.Errorf("%w: the agent ended after %d writes", ErrFailed, result.Writes)
	default:
		return result, nil
	}
}

// progress reads the last line of the log. Without it the check goes on and shows less.
func (c *Check) progress(ctx context.Context, pod string) (*agent.DiskTest, string) {
	const text = "writes and syncs"
	log, err := c.clients.Kube.CoreV1().Pods(c.job.Namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: resources.ContainerDiskTest, TailLines: ptr.To[int64](1),
	}).DoRaw(ctx)
	if err != nil {
		return nil, text
	}
	test, err := agent.DecodeDiskTest(bytes.TrimSpace(log))
	if err != nil {
		return nil, text // there is no line yet
	}
	return test, text
}

func (c *Check) pod(ctx context.Context) (*corev1.Pod, error) {
	list, err := c.clients.Kube.CoreV1().Pods(c.job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + c.job.Name})
	if err != nil {
		return nil, failure.With(err, c.right("list", "pods"))
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

func (c *Check) right(verb, resource string) failure.Right {
	return failure.Right{Verb: verb, Resource: resource, Namespace: c.job.Namespace}
}

func containerOf(pod *corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == resources.ContainerDiskTest {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// podWaits says what a pod waits for.
func podWaits(pod *corev1.Pod, container corev1.ContainerStatus) string {
	if w := container.State.Waiting; w != nil && w.Message != "" {
		return "waits: " + w.Reason + ": " + w.Message
	}
	if _, message, is := resources.Unscheduled(pod); is {
		return "waits for a node: " + message
	}
	return "waits for the volume and the image"
}

// waiting adds the newest warning about the Job, the pod or the PVC, if the user may read events.
// The error is that of the context.
func (c *Check) waiting(ctx context.Context, text string) (string, error) {
	list, err := c.clients.Kube.CoreV1().Events(c.job.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning, Limit: mostEvents})
	if err != nil {
		return text, ctx.Err()
	}
	ours := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || !strings.HasPrefix(e.InvolvedObject.Name, c.job.Name)
	})
	if len(ours) == 0 {
		return text, nil
	}
	newest := slices.MaxFunc(ours, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return text + "; " + newest.Reason + ": " + newest.Message, nil
}

// Remove deletes the Job, and waits until Kubernetes has removed the pod and the PVC or the
// context ends. The context must not be that of the check, which an interruption ends.
func (c *Check) Remove(ctx context.Context, every time.Duration) error {
	foreground := metav1.DeletePropagationForeground
	err := c.clients.Kube.BatchV1().Jobs(c.job.Namespace).Delete(ctx, c.job.Name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove Job %s: %w", c.job.Name, failure.With(err, c.right("delete", "jobs")))
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		left, err := c.left(ctx)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("kubernetes has not yet removed %s; see kubectl -n %s get pods,pvc", strings.Join(left, " and "), c.job.Namespace), err)
		case <-ticker.C:
		}
	}
}

// left names the pod and the PVC of the check that still exist.
func (c *Check) left(ctx context.Context) ([]string, error) {
	var names []string
	pod, err := c.pod(ctx)
	if err != nil {
		return nil, err
	}
	if pod != nil {
		names = append(names, "pod "+pod.Name)
	}
	pvcs, err := c.clients.Kube.CoreV1().PersistentVolumeClaims(c.job.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, failure.With(err, c.right("list", "persistentvolumeclaims"))
	}
	for i := range pvcs.Items {
		if name := pvcs.Items[i].Name; strings.HasPrefix(name, c.job.Name+"-") {
			names = append(names, "PVC "+name)
		}
	}
	return names, nil
}
