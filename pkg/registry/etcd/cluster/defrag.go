// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// DefragREST requests a defragmentation of the members that the request names, or of all.
type DefragREST struct {
	operationREST
}

var (
	_ rest.NamedCreater                   = &DefragREST{}
	_ rest.SubresourceObjectMetaPreserver = &DefragREST{}
)

// Create writes the operation into the status of the cluster and returns it.
func (r *DefragREST) Create(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, err := r.accept(ctx, name, obj, admit, checkName)
	if err != nil {
		return nil, err
	}
	operation := r.newOperation(ctx, v1beta2.OperationDefrag)
	operation.Members = slices.Clone(request.Spec.Members)
	cluster, err := r.updateCluster(ctx, r.clusters, name, request, options, func(cluster *v1beta2.EtcdCluster) error {
		if err := r.checkNoOperation(cluster); err != nil {
			return err
		}
		if err := r.checkHasMembers(cluster); err != nil {
			return err
		}
		if err := r.checkNoOldMembers(cluster, ", or run etcdctl defrag at one member after the other"); err != nil {
			return err
		}
		if errs := validateMembers(cluster, request.Spec.Members); len(errs) > 0 {
			return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdClusterOperation").GroupKind(), cluster.Name, errs)
		}
		cluster.Status.Operation = operation.DeepCopy()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return operationReply(cluster, request), nil
}

func validateMembers(cluster *v1beta2.EtcdCluster, members []string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, member := range members {
		path := field.NewPath("spec", "members").Index(i)
		known := slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Name == member })
		switch {
		case seen[member]:
			errs = append(errs, field.Duplicate(path, member))
		case !known:
			errs = append(errs, field.Invalid(path, member, "the cluster has no member of this name; status.memberStatuses lists its members"))
		}
		seen[member] = true
	}
	return errs
}
