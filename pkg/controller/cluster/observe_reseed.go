// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeReseed looks at the seed of a recovery under way. It is not behind the services,
// so it is asked at its address, apart from the members.
func (r *Reconciler) observeReseed(ctx context.Context, key types.NamespacedName, s *seen) error {
	recovery := s.PeerService.Recovery
	if !recovery.InProgress() || recovery.Seed == "" {
		return nil
	}
	claim, err := r.Cache.Claim(key.Namespace, recovery.Seed)
	if err != nil && !notFound(err) {
		return fmt.Errorf("read claim %s from the cache: %w", recovery.Seed, err)
	}
	if err == nil {
		s.observeMark(claim)
	}
	s.Reseed.Hidden = err == nil && resources.Owns(s.Cluster, claim) && resources.Hidden(claim.Labels, s.Cluster.Name)
	pod, err := r.Cache.Pod(key.Namespace, recovery.Seed)
	if notFound(err) || err == nil && !metav1.IsControlledBy(pod, s.Cluster) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s from the cache: %w", recovery.Seed, err)
	}
	observed := observedPod(atVersion(s.Cluster, recovery.Version), pod)
	observed.Outdated = observed.Outdated || r.misplaced(s.Cluster, pod)
	s.Reseed.Pod = &observed
	s.Reseed.Hidden = s.Reseed.Hidden || resources.Hidden(pod.Labels, s.Cluster.Name)
	if !observed.Running || pod.Status.PodIP == "" || recovery.Phase == v1beta2.RecoveryPhaseCleaning {
		return nil
	}
	s.reseed = etcd.Target{Endpoints: []etcd.Endpoint{endpointOf(s.Cluster, pod)}, TLS: s.target.TLS, TLSIdentity: s.target.TLSIdentity}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answer := r.Etcd.Statuses(ctx, s.reseed)[recovery.Seed]
	if answer.Err != nil {
		r.Waker.Await(key, s.reseed, s.reseed.Endpoints[0])
		return nil
	}
	s.Reseed.Serves = answer.Health.Leader != 0 && answer.Health.Leader == answer.Health.ID
	s.Reseed.ClusterID = answer.Health.ClusterID
	return nil
}
