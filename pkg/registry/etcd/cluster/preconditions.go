// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// meant makes sure that a cluster is the one that a request is about: the metadata of
// the request may say which object, and in which state, its author had before him.
func meant(cluster *v1beta2.EtcdCluster, request metav1.Object, subresource string) error {
	resource := v1beta2.Resource("etcdclusters/" + subresource)
	if uid := request.GetUID(); uid != "" && uid != cluster.UID {
		return apierrors.NewConflict(resource, cluster.Name,
			fmt.Errorf("the request is for UID %s, the cluster has UID %s", uid, cluster.UID))
	}
	if version := request.GetResourceVersion(); version != "" && version != cluster.ResourceVersion {
		return apierrors.NewConflict(resource, cluster.Name,
			fmt.Errorf("the request is for resource version %s, the cluster has %s", version, cluster.ResourceVersion))
	}
	if cluster.DeletionTimestamp != nil {
		return apierrors.NewConflict(resource, cluster.Name, fmt.Errorf("the cluster is being deleted"))
	}
	return nil
}

// named makes sure that the name in a request, if there is one, is that of the URL.
func named(request metav1.Object, name string) error {
	if given := request.GetName(); given != "" && given != name {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %s and the request is for %s", given, name))
	}
	return nil
}
