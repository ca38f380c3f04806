// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/kind"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newRestart returns the endpoint that asks for a restart of all members. The request
// itself is an annotation, as if a user had set it: it outlives the operation, which
// only tells how it goes. Both are written at once.
func newRestart(store *genericregistry.Store, rules strategy) *OperationREST {
	own := *store
	strategy := restartStrategy{kind.NewStatusStrategy(rules)}
	own.UpdateStrategy, own.ResetFieldsStrategy = strategy, strategy
	return &OperationREST{
		clusters: &own, operation: v1beta2.OperationRestart, subresource: "restart", clock: clock.RealClock{},
		whole: true, begin: beginRestart,
	}
}

// beginRestart writes a request that no pod of the cluster was made after.
func beginRestart(cluster *v1beta2.EtcdCluster, operation *v1beta2.ClusterOperation) {
	operation.ID = operation.RequestedAt.UTC().Format(time.RFC3339) + "-" + operation.ID[:idDigits]
	request := maps.Clone(cluster.Annotations)
	if request == nil {
		request = map[string]string{}
	}
	request[resources.AnnotationRestart] = operation.ID
	cluster.Annotations = request
	enter(cluster, operation)
}

// idDigits of an ID tell requests of the same second from each other.
const idDigits = 8

// restartStrategy lets the status through, and the one annotation.
type restartStrategy struct {
	kind.StatusStrategy[*v1beta2.EtcdCluster, v1beta2.ClusterSpec, v1beta2.ClusterStatus]
}

// PrepareForUpdate takes all else from storage.
func (s restartStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	newer, ok := obj.(*v1beta2.EtcdCluster)
	if !ok {
		return
	}
	request := resources.RestartRequest(newer)
	s.StatusStrategy.PrepareForUpdate(ctx, obj, old)
	kept := maps.Clone(newer.Annotations)
	if request != resources.RestartRequest(newer) {
		if kept == nil {
			kept = map[string]string{}
		}
		kept[resources.AnnotationRestart] = request
	}
	newer.Annotations = kept
}
