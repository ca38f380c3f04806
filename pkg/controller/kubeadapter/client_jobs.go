// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
)

// LabelsOf returns the labels of the Jobs of one owner, and of their pods.
type LabelsOf func(owner types.UID) map[string]string

func (l LabelsOf) selector(owner types.UID) labels.Selector {
	return labels.SelectorFromSet(l(owner))
}

// JobClient is a Client that also reads and writes the Jobs of one kind of object.
type JobClient struct {
	Client

	Labels LabelsOf
}

var _ job.Objects = JobClient{}

// GetJob implements job.Objects.
func (c JobClient) GetJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	return c.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListJobs implements job.Objects.
func (c JobClient) ListJobs(ctx context.Context, namespace string, owner types.UID) ([]batchv1.Job, error) {
	list, err := c.Kubernetes.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: c.Labels.selector(owner).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListJobPods implements job.Objects.
func (c JobClient) ListJobPods(ctx context.Context, namespace string, owner types.UID) ([]corev1.Pod, error) {
	list, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: c.Labels.selector(owner).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListBackupJobs implements restore.Objects.
func (c JobClient) ListBackupJobs(ctx context.Context, namespace string) ([]*batchv1.Job, error) {
	list, err := c.Kubernetes.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: ofBackups.String()})
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// ListBackupJobPods implements restore.Objects.
func (c JobClient) ListBackupJobPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	list, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: ofBackups.String()})
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	list := make([]*T, 0, len(items))
	for i := range items {
		list = append(list, &items[i])
	}
	return list
}

// ListJobEvents implements job.Objects.
func (c JobClient) ListJobEvents(ctx context.Context, namespace string, uid types.UID) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.uid": string(uid), "reason": job.EventRejected}
	list, err := c.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreateJob implements job.Objects.
func (c JobClient) CreateJob(ctx context.Context, made *batchv1.Job) (*batchv1.Job, error) {
	return c.Kubernetes.BatchV1().Jobs(made.Namespace).Create(ctx, made, metav1.CreateOptions{})
}

// DeleteJob implements job.Objects.
func (c JobClient) DeleteJob(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return c.Kubernetes.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}
