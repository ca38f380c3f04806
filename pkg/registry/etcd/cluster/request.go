// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// requestTime is how the moment stands in the name of what a request has made.
const requestTime = "20060102-150405"

// generateName begins the name of what a request about a cluster makes.
func generateName(cluster *v1beta2.EtcdCluster, now clock.PassiveClock) string {
	return cluster.Name + "-" + now.Now().UTC().Format(requestTime) + "-"
}

// resourceContext is that of a request for another resource itself.
func resourceContext(ctx context.Context, resource string) context.Context {
	info, ok := request.RequestInfoFrom(ctx)
	if !ok {
		return ctx
	}
	own := *info
	own.Resource, own.Subresource, own.Name = resource, "", ""
	own.Parts = []string{own.Resource}
	return request.WithRequestInfo(ctx, &own)
}

// managedFields returns the managers of the fields of a request as those of the object that
// is created from it: they did not write to a subresource of that.
func managedFields(asked metav1.Object) []metav1.ManagedFieldsEntry {
	entries := slices.Clone(asked.GetManagedFields())
	for i := range entries {
		entries[i].Subresource = ""
	}
	return entries
}

// busy holds the clusters for which a request is being carried out. The zero value holds
// none.
type busy struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]bool
}

// claim keeps two requests for one cluster from overtaking each other.
func (b *busy) claim(cluster *v1beta2.EtcdCluster, subresource string) (release func(), err error) {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clusters[key] {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/"+subresource), cluster.Name,
			fmt.Errorf("another request for a %s is being carried out", subresource))
	}
	if b.clusters == nil {
		b.clusters = map[types.NamespacedName]bool{}
	}
	b.clusters[key] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.clusters, key)
	}, nil
}
