// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// inFlight serializes requests for one cluster, so that each request finds the EtcdBackup or
// EtcdRestore that the one before has created. The zero value is ready to use.
type inFlight struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]bool
}

// begin marks the cluster until done is called. It returns a conflict if the cluster is marked.
func (f *inFlight) begin(cluster *v1beta2.EtcdCluster, subresource string) (done func(), err error) {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clusters[key] {
		return nil, apierrors.NewConflict(v1beta2.Resource("etcdclusters/"+subresource), cluster.Name,
			fmt.Errorf("another %s request for this EtcdCluster is in progress; wait for its response", subresource))
	}
	if f.clusters == nil {
		f.clusters = map[types.NamespacedName]bool{}
	}
	f.clusters[key] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.clusters, key)
	}, nil
}
