// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// staleLong is how long an action may be stale before the status says so. A cache shows what the live API has within
// seconds, and a node reports to Kubernetes within a minute. So the next observation decides better, unless the two
// will never agree.
const staleLong = 5 * time.Minute

// staleActions remembers since when each cluster has tried the same action on observations that were stale. Nothing
// but the status and the time of the next attempt depends on it. The zero value is ready.
type staleActions struct {
	mu    sync.Mutex
	since map[types.NamespacedName]staleAction
}

// staleAction is the type of an action, and when it was first found stale.
type staleAction struct {
	action string
	since  time.Time
}

// note returns what a cluster waits for whose action is stale because of err; nil unless that has lasted for long. A
// clock that was set back begins the time again.
func (s *staleActions) note(key types.NamespacedName, action planner.Action, now time.Time, err error) *planner.Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[types.NamespacedName]staleAction{}
	}
	first, found := s.since[key]
	if kind := fmt.Sprintf("%T", action); !found || first.action != kind || now.Before(first.since) {
		first = staleAction{action: kind, since: now}
		s.since[key] = first
	}
	if now.Sub(first.since) < staleLong {
		return nil
	}
	return &planner.Wait{
		Reason: planner.ReasonStaleObservation,
		Message: fmt.Sprintf("the next step, %T, was not carried out for more than %s, because Kubernetes or etcd contradicts what the controller observed: %v",
			action, staleLong, err),
		Remedy: "Correct the object that the message names. If nothing is wrong with that object, restart the controller, which then reads all objects again.",
	}
}

// forget drops what is remembered of a cluster.
func (s *staleActions) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, key)
}
