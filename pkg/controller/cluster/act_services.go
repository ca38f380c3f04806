// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// createPeerService creates the headless Service.
func createPeerService(ctx context.Context, r *run, _ planner.CreatePeerService) error {
	service := resources.PeerService(r.seen.Cluster)
	resources.CopyRecoveries(service, r.seen.Record.Recoveries)
	created, err := r.Objects.CreateService(ctx, service)
	if apierrors.IsAlreadyExists(err) {
		if err := repairUncachedService(ctx, r, service.Name, r.seen.peerServiceDrift); err != nil {
			return err
		}
		return fmt.Errorf("Service %s was created by another process: %w", service.Name, reconcile.ErrStale)
	}
	if err != nil {
		return reconcile.MarkTerminating(err)
	}
	r.Gate.Note(r.key, created)
	return nil
}

// repairPeerService puts back what the controller owns of the headless Service.
func repairPeerService(ctx context.Context, r *run, _ planner.RepairPeerService) error {
	return repairService(ctx, r, r.seen.peerService, r.seen.peerServiceDrift)
}

// peerServiceDrift returns the headless Service as it should be, with the recoveries that have begun.
func (s *seen) peerServiceDrift(c *v1beta2.EtcdCluster, live *corev1.Service) (*corev1.Service, bool) {
	service, drifted := resources.PeerServiceDrift(c, live)
	if resources.KnowsRecoveries(live, s.Record.Recoveries) {
		return service, drifted
	}
	if !drifted {
		service = live.DeepCopy()
	}
	resources.CopyRecoveries(service, s.Record.Recoveries)
	return service, true
}

type drift func(*v1beta2.EtcdCluster, *corev1.Service) (*corev1.Service, bool)

func repairService(ctx context.Context, r *run, live *corev1.Service, repaired drift) error {
	if live == nil {
		return fmt.Errorf("the cache shows no Service to repair: %w", reconcile.ErrStale)
	}
	service, drifted := repaired(r.seen.Cluster, live)
	if !drifted {
		return nil
	}
	if len(live.OwnerReferences) != len(service.OwnerReferences) {
		// Without owner it stays until the cluster is deleted, so there must be one.
		if err := requireSameSpec(ctx, r); err != nil {
			return err
		}
	}
	updated, err := r.Objects.UpdateService(ctx, service)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	if before := live.DeepCopy(); mark(r.seen, before) && equality.Semantic.DeepEqual(before, service) {
		return nil // only the marks have changed, as an update of the controller changes them
	}
	normal(r, EventServiceRepaired, "Repaired Service %s: another program had changed it", service.Name)
	return nil
}

// errServiceRejected means that Kubernetes rejects the client Service as its template
// declares it, for example with an IP family that the Kubernetes cluster does not have.
var errServiceRejected = errors.New("the client Service was rejected by Kubernetes")

// ensureClientService creates the client Service or repairs it.
func ensureClientService(ctx context.Context, r *run, _ planner.EnsureClientService) error {
	err := createOrRepairClientService(ctx, r)
	if err = reconcile.MarkTerminating(err); reconcile.IsRejection(err) {
		return fmt.Errorf("%w: %w", errServiceRejected, err)
	}
	return err
}

func createOrRepairClientService(ctx context.Context, r *run) error {
	if r.seen.clientService != nil {
		return repairService(ctx, r, r.seen.clientService, resources.ClientServiceDrift)
	}
	// The Service of a cluster that was deleted since would lead clients to the members of the next
	// cluster of its name, which may not be ready for them.
	if _, err := readSameCluster(ctx, r); err != nil {
		return err
	}
	service := resources.ClientService(r.seen.Cluster)
	created, err := r.Objects.CreateService(ctx, service)
	if apierrors.IsAlreadyExists(err) {
		return repairUncachedService(ctx, r, service.Name, resources.ClientServiceDrift)
	}
	if err != nil {
		return err
	}
	r.Gate.Note(r.key, created)
	return nil
}
