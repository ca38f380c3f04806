// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agentjob

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	// ListJobEvents lists the events about a Job that tell of pods that were refused.
	ListJobEvents(ctx context.Context, namespace string, job types.UID) ([]corev1.Event, error)
	CreateJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error)
	// DeleteJob deletes a Job and, in the background, its pods.
	DeleteJob(ctx context.Context, namespace, name string, only metav1.Preconditions) error
}

// Gate knows which of the controller's own writes the cache has not shown yet.
type Gate interface {
	// Ready is true if the cache shows every write that was noted for the key.
	Ready(key types.NamespacedName) bool
	// Note remembers that an object was written for the key.
	Note(key types.NamespacedName, written metav1.Object)
	// Forget drops what was noted for the key.
	Forget(key types.NamespacedName)
}

// Recorder records events about an object.
type Recorder interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}

// Progress asks a running agent how far it has come.
type Progress interface {
	Of(ctx context.Context, podIP string) (*v1beta2.TransferProgress, error)
}
