// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// actionRequest is the body of a request for an action. Its metadata may hold preconditions: the
// UID and the resource version of the EtcdCluster that the client has read.
type actionRequest interface {
	runtime.Object
	metav1.Object
}

// actionREST is the common part of the subresources that start an action on a cluster:
// /backup, /restore, /recover, /defrag, /restart, /replace and /moveleader. An action calls accept,
// which checks the request alone. Then it calls readCluster or updateCluster, which check the
// request against the cluster.
type actionREST[R actionRequest] struct {
	// subresource is the last part of the path, such as defrag.
	subresource string
	// empty is an empty request.
	empty R
}

// New returns an empty request.
func (r *actionREST[R]) New() runtime.Object { return r.empty.DeepCopyObject() }

// Destroy does nothing: the store belongs to the main resource.
func (r *actionREST[R]) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps metadata.uid of a request,
// which is a precondition. Without this method the generic API server removes it.
func (r *actionREST[R]) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// accept returns the request that obj holds. It checks, in this order: the type, then what
// check looks at, which is the name or the rights of the user, then admission.
func (r *actionREST[R]) accept(
	ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc,
	check func(ctx context.Context, name string, request R) error,
) (R, error) {
	request, ok := obj.(R)
	if !ok {
		return request, apierrors.NewBadRequest(fmt.Sprintf("the request body is a %T; etcdclusters/%s takes a %T", obj, r.subresource, r.empty))
	}
	if err := check(ctx, name, request); err != nil {
		return request, err
	}
	if admit != nil {
		return request, admit(ctx, obj.DeepCopyObject())
	}
	return request, nil
}

// checkName rejects a request whose metadata.name is not the name in the path.
func checkName[R actionRequest](_ context.Context, name string, request R) error {
	if given := request.GetName(); given != "" && given != name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"metadata.name of the request is %s, but its path names the EtcdCluster %s; remove metadata.name or use the same name", given, name))
	}
	return nil
}

// readCluster returns the cluster of a request if its preconditions hold.
func (r *actionREST[R]) readCluster(ctx context.Context, clusters rest.Getter, name string, request R) (*v1beta2.EtcdCluster, error) {
	cluster, err := getCluster(ctx, clusters, name)
	if err != nil {
		return nil, err
	}
	return cluster, r.checkPreconditions(cluster, request)
}

// updateCluster lets change edit the cluster of a request, if its preconditions hold, and
// stores the result. All of this is one transaction. With dryRun=All nothing is stored.
func (r *actionREST[R]) updateCluster(
	ctx context.Context, clusters rest.Updater, name string, request R, options *metav1.CreateOptions, change func(*v1beta2.EtcdCluster) error,
) (*v1beta2.EtcdCluster, error) {
	edit := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		cluster, err := asCluster(stored.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		if err := r.checkPreconditions(cluster, request); err != nil {
			return nil, err
		}
		return cluster, change(cluster)
	}
	updated, _, err := clusters.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, edit), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	return asCluster(updated)
}

// checkPreconditions rejects a request that names the UID of a deleted EtcdCluster of the
// same name, or an earlier resource version. Preconditions.Check of k8s.io/apiserver compares
// the same fields, but its errors name a storage key and no remedy.
func (r *actionREST[R]) checkPreconditions(cluster *v1beta2.EtcdCluster, request R) error {
	if uid := request.GetUID(); uid != "" && uid != cluster.UID {
		return r.conflict(cluster.Name, "EtcdCluster was recreated (UID changed from %s to %s); read it and send the request again", uid, cluster.UID)
	}
	if version := request.GetResourceVersion(); version != "" && version != cluster.ResourceVersion {
		return r.conflict(cluster.Name, "EtcdCluster was changed (resource version is %s, metadata.resourceVersion of the request is %s); read it and send the request again",
			cluster.ResourceVersion, version)
	}
	if cluster.DeletionTimestamp != nil {
		return r.conflict(cluster.Name, "EtcdCluster is being deleted since %s; no action can be started on it", cluster.DeletionTimestamp.UTC().Format(time.RFC3339))
	}
	return nil
}

// conflict returns the error for a request that the present state of the cluster does not allow.
func (r *actionREST[R]) conflict(cluster, format string, args ...any) error {
	return apierrors.NewConflict(v1beta2.Resource("etcdclusters/"+r.subresource), cluster, fmt.Errorf(format, args...))
}

// getCluster returns the cluster called name.
func getCluster(ctx context.Context, clusters rest.Getter, name string) (*v1beta2.EtcdCluster, error) {
	obj, err := clusters.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return asCluster(obj)
}

func asCluster(obj runtime.Object) (*v1beta2.EtcdCluster, error) {
	cluster, ok := obj.(*v1beta2.EtcdCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the store of EtcdClusters returned a %T", obj))
	}
	return cluster, nil
}

// requestUser returns the name of the user that sent the request; empty if it is not known.
func requestUser(ctx context.Context) string {
	user, known := genericrequest.UserFrom(ctx)
	if !known {
		return ""
	}
	return user.GetName()
}
