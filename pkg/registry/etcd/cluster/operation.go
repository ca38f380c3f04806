// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// operationREST is the common part of DefragREST, RestartREST and ReplaceREST. An operation takes longer
// than a request. The request therefore writes it into status.operation of the cluster, where
// the controller finds it and where it survives every restart.
type operationREST struct {
	actionREST[*v1beta2.EtcdClusterOperation]

	clusters rest.Updater
	clock    clock.PassiveClock
}

func newOperationREST(subresource string, clusters rest.Updater) operationREST {
	return operationREST{
		actionREST: actionREST[*v1beta2.EtcdClusterOperation]{subresource: subresource, empty: &v1beta2.EtcdClusterOperation{}},
		clusters:   clusters, clock: clock.RealClock{},
	}
}

func (r *operationREST) newOperation(ctx context.Context, kind v1beta2.OperationType) *v1beta2.ClusterOperation {
	return &v1beta2.ClusterOperation{
		Type: kind,
		ID:   string(uuid.NewUUID()),
		// Stored times have whole seconds. The reply has the same time as the stored operation.
		RequestedAt: metav1.NewTime(r.clock.Now().Truncate(time.Second)),
		Phase:       v1beta2.OperationPending,
		RequestedBy: requestUser(ctx),
	}
}

// checkNoOperation rejects a request while an operation is pending or running.
func (r *operationREST) checkNoOperation(cluster *v1beta2.EtcdCluster) error {
	running := cluster.Status.Operation
	if running.IsOver() {
		return nil
	}
	return r.conflict(cluster.Name, "operation %s %s, requested at %s, is %s; wait until status.operation shows that it has ended",
		running.Type, running.ID, running.RequestedAt.UTC().Format(time.RFC3339), running.Phase)
}

// checkHasMembers rejects a request for a cluster without members, or without a controller
// that acts on them.
func (r *operationREST) checkHasMembers(cluster *v1beta2.EtcdCluster) error {
	if ptr.Deref(cluster.Spec.Replicas, 0) == 0 {
		return r.conflict(cluster.Name, "the cluster is hibernated (spec.size is 0) and has no members; set spec.size first")
	}
	if cluster.Spec.Paused {
		return r.conflict(cluster.Name, "spec.paused is true, so the controller does not start the operation; set spec.paused=false first")
	}
	return nil
}

// checkNoOldMembers rejects a request that the controller carries out only after the old members of a running etcd are
// removed, which may be in weeks. Until then the operation would keep every other operation from being requested.
func (r *operationREST) checkNoOldMembers(cluster *v1beta2.EtcdCluster, instead string) error {
	if !cluster.MayHaveOldMembers() {
		return nil
	}
	return r.conflict(cluster.Name, "the cluster takes over a running etcd whose old members may still vote, and beside them the controller stops no member that serves; "+
		"have the old members removed first (spec.bootstrap.existing.oldMembers=Remove)%s", instead)
}

// operationReply shows the operation that is stored in the cluster.
func operationReply(cluster *v1beta2.EtcdCluster, request *v1beta2.EtcdClusterOperation) *v1beta2.EtcdClusterOperation {
	return &v1beta2.EtcdClusterOperation{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID, ResourceVersion: cluster.ResourceVersion,
		},
		Spec:   request.Spec,
		Status: *cluster.Status.Operation.DeepCopy(),
	}
}
