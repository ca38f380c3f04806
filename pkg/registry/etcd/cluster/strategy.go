// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// strategy prepares and validates EtcdClusters before they are stored.
type strategy = genericstore.Strategy[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]

// newStrategy returns the strategy for EtcdClusters. An EtcdCluster that is created without
// spec.version gets defaultVersion, which is stored. A server with another default therefore
// does not change the version of an existing cluster.
func newStrategy(typer runtime.ObjectTyper, defaultVersion string) strategy {
	return genericstore.NewStrategy(typer, genericstore.Definition[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]{
		GroupVersion:  v1beta2.SchemeGroupVersion,
		Spec:          func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterSpec { return &obj.Spec },
		Status:        func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterStatus { return &obj.Status },
		InitialStatus: initialStatus,
		DefaultOnCreate: func(obj *v1beta2.EtcdCluster) {
			obj.Spec.Version = cmp.Or(obj.Spec.Version, defaultVersion)
		},
		KeepOnUpdate: func(newer, older *v1beta2.EtcdCluster) {
			newer.Spec.Version = cmp.Or(newer.Spec.Version, older.Spec.Version)
			// A client that does not know the field must not lift the protection.
			newer.Spec.DeletionProtection = cmp.Or(newer.Spec.DeletionProtection, older.Spec.DeletionProtection)
			dropCancelledRestart(newer, older)
		},
		Validate:             validation.ValidateEtcdCluster,
		ValidateUpdate:       validation.ValidateEtcdClusterUpdate,
		ValidateStatusUpdate: validation.ValidateEtcdClusterStatusUpdate,
		Warnings:             validation.WarningsForEtcdCluster,
		ReplaceWarnings:      validation.RemovedFromEtcdCluster,
	})
}

// dropCancelledRestart removes the request of a restart that was cancelled, when the annotation that cancels it goes or
// names something else: the members that had not restarted would restart then.
func dropCancelledRestart(newer, older *v1beta2.EtcdCluster) {
	cancelled := older.Annotations[resources.AnnotationCancelOperation]
	if cancelled == "" || older.Annotations[resources.AnnotationRestart] != cancelled ||
		newer.Annotations[resources.AnnotationRestart] != cancelled || newer.Annotations[resources.AnnotationCancelOperation] == cancelled {
		return
	}
	newer.Annotations = maps.Clone(newer.Annotations)
	delete(newer.Annotations, resources.AnnotationRestart)
}

// initialStatus holds the condition Ready with status Unknown, until a controller observes the
// cluster. Many clients treat an object without the condition Ready as ready.
func initialStatus(created metav1.Time) v1beta2.ClusterStatus {
	at := created.UTC().Format(time.RFC3339)
	return v1beta2.ClusterStatus{Conditions: []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionUnknown,
		Reason: v1beta2.ReasonNotObserved, Message: genericstore.MessageNotObserved,
		LastUpdateTime: at, LastTransitionTime: at,
	}}}
}

// restartStrategy is the status strategy that also stores the restart annotation.
type restartStrategy struct {
	genericstore.StatusStrategy[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]
}

func newRestartStrategy(main strategy) restartStrategy {
	return restartStrategy{genericstore.NewStatusStrategy(main)}
}

// PrepareForUpdate takes the status and the restart annotation from obj, and everything else
// from the stored object.
func (s restartStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	newer, ok := obj.(*v1beta2.EtcdCluster)
	if !ok {
		return
	}
	request := resources.RestartRequest(newer)
	s.StatusStrategy.PrepareForUpdate(ctx, obj, old)
	newer.Annotations = maps.Clone(newer.Annotations)
	if request != resources.RestartRequest(newer) {
		setRestartAnnotation(newer, request)
	}
}
