// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
)

// strategy normalises and checks EtcdCluster objects on their way to storage.
type strategy = kind.Strategy[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]

func newStrategy(typer runtime.ObjectTyper) strategy {
	return kind.NewStrategy(typer, kind.Definition[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]{
		GroupVersion:         v1beta2.SchemeGroupVersion,
		Spec:                 func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterSpec { return &obj.Spec },
		Status:               func(obj *v1beta2.EtcdCluster) *v1beta2.ClusterStatus { return &obj.Status },
		Validate:             validation.ValidateEtcdCluster,
		ValidateUpdate:       validation.ValidateEtcdClusterUpdate,
		ValidateStatusUpdate: validation.ValidateEtcdClusterStatusUpdate,
		Warnings:             validation.WarningsForEtcdCluster,
	})
}
