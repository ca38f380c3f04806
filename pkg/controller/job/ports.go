// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Objects reads and writes the Jobs of one kind of object in the live API. A read here is
// never older than the moment at which it is made.
type Objects interface {
	GetJob(ctx context.Context, namespace, name string) (*batchv1.Job, error)
	// ListJobs lists the Jobs of one owner, and ListJobPods their pods.
	ListJobs(ctx context.Context, namespace string, owner types.UID) ([]batchv1.Job, error)
	ListJobPods(ctx context.Context, namespace string, owner types.UID) ([]corev1.Pod, error)
	// ListJobEvents lists the events about a Job whose pods were rejected.
	ListJobEvents(ctx context.Context, namespace string, uid types.UID) ([]corev1.Event, error)
	CreateJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error)
	// DeleteJob deletes a Job and, in the background, its pods.
	DeleteJob(ctx context.Context, namespace, name string, only metav1.Preconditions) error
}

// Progress asks a running agent for its progress.
type Progress interface {
	Of(ctx context.Context, podIP string) (*v1beta2.TransferProgress, error)
}
