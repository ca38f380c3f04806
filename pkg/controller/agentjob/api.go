// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agentjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// LabelsOf returns the labels of the Jobs of one owner, and of their pods.
type LabelsOf func(owner types.UID) map[string]string

func (l LabelsOf) selector(owner types.UID) labels.Selector {
	return labels.SelectorFromSet(l(owner))
}

// Listers is the cache of the Jobs of one kind of object, which informers fill.
type Listers struct {
	JobList    batchlisters.JobLister
	PodsOfJobs corelisters.PodLister
	Labels     LabelsOf
}

// Jobs lists the Jobs of one owner.
func (l Listers) Jobs(namespace string, owner types.UID) ([]*batchv1.Job, error) {
	return l.JobList.Jobs(namespace).List(l.Labels.selector(owner))
}

// JobPods lists their pods.
func (l Listers) JobPods(namespace string, owner types.UID) ([]*corev1.Pod, error) {
	return l.PodsOfJobs.Pods(namespace).List(l.Labels.selector(owner))
}

// API is Objects through a client.
type API struct {
	Kubernetes kubernetes.Interface
	Labels     LabelsOf
}

var _ Objects = API{}

// GetJob implements Objects.
func (a API) GetJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	return a.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListJobs implements Objects.
func (a API) ListJobs(ctx context.Context, namespace string, owner types.UID) ([]batchv1.Job, error) {
	list, err := a.Kubernetes.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: a.Labels.selector(owner).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListJobPods implements Objects.
func (a API) ListJobPods(ctx context.Context, namespace string, owner types.UID) ([]corev1.Pod, error) {
	list, err := a.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: a.Labels.selector(owner).String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListJobEvents implements Objects.
func (a API) ListJobEvents(ctx context.Context, namespace string, job types.UID) ([]corev1.Event, error) {
	about := fields.Set{"involvedObject.uid": string(job), "reason": EventRefused}
	list, err := a.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CreateJob implements Objects.
func (a API) CreateJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	return a.Kubernetes.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
}

// DeleteJob implements Objects.
func (a API) DeleteJob(ctx context.Context, namespace, name string, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return a.Kubernetes.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background,
	})
}
