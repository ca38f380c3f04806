// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// MaxTakeOvers is how many clusters take over an etcd at the same time. Each keeps a connection to every endpoint that its
// spec and the member list name, and a user writes both.
const MaxTakeOvers = 64

// takeOvers holds a place for each cluster that takes over an etcd, until there is no old member any more. Without places it
// bounds nothing.
type takeOvers struct {
	places *share.Limiter

	mu   sync.Mutex
	held map[types.NamespacedName]func()
}

// hasBegun is true for a cluster with members of its own beside the old ones. It is looked after even if another controller
// gave the places to others before it; its members, which the namespace pays for, bound how many there are.
func hasBegun(c *v1beta2.EtcdCluster) bool {
	return c.Status.Phase != v1beta2.ClusterPhaseNone && c.Status.Phase != v1beta2.ClusterPhaseCreating
}

// begin takes a place for the cluster, unless it has one. It says what lacks; empty if nothing.
func (t *takeOvers) begin(key types.NamespacedName) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil || t.held[key] != nil {
		return ""
	}
	release, lack := t.places.Acquire(key.Namespace)
	switch lack {
	case share.Nothing:
	case share.OfNamespace:
		return fmt.Sprintf("the namespace %s has its share of the %d EtcdClusters that may take over an etcd at the same time", key.Namespace, t.places.Total())
	default:
		return fmt.Sprintf("%d EtcdClusters take over an etcd, as many as may at the same time", t.places.Total())
	}
	if t.held == nil {
		t.held = map[types.NamespacedName]func(){}
	}
	t.held[key] = release
	return ""
}

// forget gives the place of the cluster back.
func (t *takeOvers) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if release := t.held[key]; release != nil {
		release()
		delete(t.held, key)
	}
}
