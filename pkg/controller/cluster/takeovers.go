// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// MaxTakeOvers is how many clusters take over an etcd at the same time. Each keeps a connection to every endpoint that its
// spec and the member list name, and a user writes both.
const MaxTakeOvers = 64

var errTooManyTakeOvers = errors.New("as many EtcdClusters take over an etcd as the controller looks after at the same time, in this namespace or in all of them; this one follows when another has ended")

// takeOvers holds a place for each cluster that takes over an etcd, until the last old member has gone. Without places it
// bounds nothing.
type takeOvers struct {
	places *share.Limiter

	mu   sync.Mutex
	held map[types.NamespacedName]func()
}

// begin takes a place for the cluster, unless it has one.
func (t *takeOvers) begin(key types.NamespacedName) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil || t.held[key] != nil {
		return nil
	}
	release, lack := t.places.Acquire(key.Namespace)
	if lack != share.Nothing {
		return errTooManyTakeOvers
	}
	if t.held == nil {
		t.held = map[types.NamespacedName]func(){}
	}
	t.held[key] = release
	return nil
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
