// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// idDigits of a UUID distinguish restarts that were requested in the same second.
const idDigits = 8

// RestartREST requests a restart of all members. It sets the same annotation that a user may
// set, and status.operation, which shows the progress. The annotation outlives the operation.
// Both are written at once.
type RestartREST struct {
	operationREST
}

var (
	_ rest.NamedCreater                   = &RestartREST{}
	_ rest.SubresourceObjectMetaPreserver = &RestartREST{}
)

func newRestartREST(store *genericregistry.Store, main strategy) *RestartREST {
	restarts := *store
	restarts.UpdateStrategy, restarts.ResetFieldsStrategy = newRestartStrategy(main), newRestartStrategy(main)
	return &RestartREST{newOperationREST("restart", &restarts)}
}

// Create starts a restart and returns it. A request during a restart returns that restart.
func (r *RestartREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, checkName)
	if err != nil {
		return nil, err
	}
	operation := r.newOperation(ctx, v1beta2.OperationRestart)
	operation.ID = operation.RequestedAt.UTC().Format(time.RFC3339) + "-" + operation.ID[:idDigits]
	cluster, err := r.updateCluster(ctx, r.clusters, name, request, options, func(cluster *v1beta2.EtcdCluster) error {
		restarting := isRestarting(cluster)
		if !restarting {
			if err := r.checkNoOperation(cluster); err != nil {
				return err
			}
		}
		if err := r.checkHasMembers(cluster); err != nil {
			return err
		}
		if err := r.checkNoOldMembers(cluster, ""); err != nil {
			return err
		}
		if len(request.Spec.Members) > 0 {
			return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterOperation").GroupKind(), cluster.Name, field.ErrorList{
				field.Forbidden(field.NewPath("spec", "members"), "a restart is always of all members, one after the other; remove this field"),
			})
		}
		if !restarting {
			cluster.Status.Operation = operation.DeepCopy()
			setRestartAnnotation(cluster, operation.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return operationReply(cluster, request), nil
}

func isRestarting(cluster *v1beta2.EtcdCluster) bool {
	operation := cluster.Status.Operation
	return !operation.IsOver() && operation.Type == v1beta2.OperationRestart
}

// setRestartAnnotation sets the annotation to a value that no pod of the cluster has yet.
func setRestartAnnotation(cluster *v1beta2.EtcdCluster, value string) {
	annotations := maps.Clone(cluster.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resources.AnnotationRestart] = value
	cluster.Annotations = annotations
}
