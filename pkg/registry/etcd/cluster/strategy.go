// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

// strategy normalises and checks EtcdCluster objects on their way to storage.
type strategy = kind.Strategy[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]

// newStrategy returns the strategy for clusters. A cluster that is created without a
// version gets defaultVersion, which is stored, so that no update of the server changes it.
func newStrategy(typer runtime.ObjectTyper, defaultVersion string) strategy {
	return kind.NewStrategy(typer, kind.Definition[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]{
		GroupVersion:  v1beta2.SchemeGroupVersion,
		Spec:          func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterSpec { return &obj.Spec },
		Status:        func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterStatus { return &obj.Status },
		InitialStatus: initialStatus,
		DefaultOnCreate: func(obj *v1beta2.EtcdCluster) {
			obj.Spec.Version = cmp.Or(obj.Spec.Version, defaultVersion)
		},
		KeepOnUpdate: func(newer, older *v1beta2.EtcdCluster) {
			newer.Spec.Version = cmp.Or(newer.Spec.Version, older.Spec.Version)
		},
		Validate:             validation.ValidateEtcdCluster,
		ValidateUpdate:       validation.ValidateEtcdClusterUpdate,
		ValidateStatusUpdate: validation.ValidateEtcdClusterStatusUpdate,
		Warnings:             validation.WarningsForEtcdCluster,
	})
}

// initialStatus says that no controller has looked at the cluster yet. Without a Ready
// condition many clients take an object for ready.
func initialStatus(created metav1.Time) v1beta2.ClusterStatus {
	at := created.UTC().Format(time.RFC3339)
	return v1beta2.ClusterStatus{Conditions: []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionUnknown,
		Reason: v1beta2.ReasonNotObserved, Message: kind.MessageNotObserved,
		LastUpdateTime: at, LastTransitionTime: at,
	}}}
}
