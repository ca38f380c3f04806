// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// stateName returns the name of an object that a request creates. It is the same for all requests
// that find the cluster in the same state: the other objects of the kind, and the additional parts. Of
// several requests at the same time, to several servers, only one can therefore create an object.
func stateName(cluster *v1beta2.EtcdCluster, kind string, others []types.UID, parts ...string) string {
	state := append([]string{string(cluster.UID)}, parts...)
	others = slices.Sorted(slices.Values(others))
	for _, uid := range others {
		state = append(state, string(uid))
	}
	sum := sha256.Sum256([]byte(strings.Join(state, " ")))
	return cluster.Name + "-" + kind + "-" + hex.EncodeToString(sum[:5])
}

// createdMeta returns the metadata of the object that a request for the cluster creates: what
// the request sets, and the label of the cluster.
func createdMeta(cluster *v1beta2.EtcdCluster, request metav1.ObjectMeta) metav1.ObjectMeta {
	labels := request.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	labels[resources.LabelCluster] = cluster.Name
	return metav1.ObjectMeta{
		Name: request.Name, GenerateName: request.GenerateName, Namespace: cluster.Namespace,
		Labels: labels, Annotations: request.Annotations, ManagedFields: mainResourceManagers(request.ManagedFields),
	}
}

// mainResourceManagers removes the subresource of the request from its managed fields: the
// created object has no such subresource.
func mainResourceManagers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Subresource = ""
	}
	return entries
}

// contextOf returns the context of a request for the other resource itself.
func contextOf(ctx context.Context, resource string) context.Context {
	info, ok := genericrequest.RequestInfoFrom(ctx)
	if !ok {
		return ctx
	}
	own := *info
	own.Resource, own.Subresource, own.Name = resource, "", ""
	own.Parts = []string{own.Resource}
	return genericrequest.WithRequestInfo(ctx, &own)
}
