// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeRecord reads the record of the cluster, and what pods, PVCs and the peer Service repeat of it.
func observeRecord(r *run, pods []*corev1.Pod, pvcs []*corev1.PersistentVolumeClaim) error {
	c := r.seen.Cluster
	live, err := r.Cache.ConfigMap(r.key.Namespace, resources.RecordName(c))
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read ConfigMap %s from the cache: %w", resources.RecordName(c), err)
	}
	switch {
	case err != nil:
		r.seen.Record.State = planner.Missing
	case !resources.OwnsRecord(c, live):
		r.seen.Record.State = planner.NotOwned
		r.seen.observeFound(live)
	default:
		// The record of an earlier cluster does not describe this cluster.
		r.seen.record = live
		r.seen.Record = planner.Record{State: planner.Current, Undeclared: !resources.RecordsDeclaration(c, live), Record: resources.ParseRecord(live)}
		r.seen.observeMark(live)
	}
	hiddenPods, err := r.Cache.HiddenPods(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list the hidden pods from the cache: %w", err)
	}
	hiddenPVCs, err := r.Cache.HiddenPVCs(r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("list the hidden PVCs from the cache: %w", err)
	}
	var objects []metav1.Object
	for _, p := range slices.Concat(pods, hiddenPods) {
		objects = append(objects, p)
	}
	for _, p := range slices.Concat(pvcs, hiddenPVCs) {
		objects = append(objects, p)
	}
	for _, p := range hiddenPods {
		r.seen.observeFound(p)
	}
	for _, p := range hiddenPVCs {
		r.seen.observeFound(p)
	}
	peer, err := r.Cache.Service(r.key.Namespace, c.Name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read Service %s from the cache: %w", c.Name, err)
	}
	if err == nil {
		objects = append(objects, peer)
	}
	r.seen.Witnesses = witnesses(c, objects)
	return nil
}

// witnesses returns what objects of a cluster say about recoveries.
func witnesses(c *v1beta2.EtcdCluster, objects []metav1.Object) planner.Witnesses {
	w, members := planner.Witnesses{}, map[string]planner.RecoveryWitness{}
	for _, object := range objects {
		if !resources.Owns(c, object) {
			continue
		}
		w.Recoveries = resources.MergeRecoveries(w.Recoveries, resources.RecoveriesOn(object))
		recovery := resources.RecoveryOf(object)
		if recovery == nil || object.GetDeletionTimestamp() != nil {
			continue
		}
		// A pod and its PVC change one after the other.
		hidden, other := resources.IsHidden(object.GetLabels(), c.Name), members[recovery.RecoveryMember]
		if other.Recovery.Phase == v1beta2.RecoveryPhaseCutover {
			recovery = &other.Recovery
		}
		members[recovery.RecoveryMember] = planner.RecoveryWitness{Recovery: *recovery, Hidden: hidden || other.Hidden}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w.RecoveryMembers = append(w.RecoveryMembers, members[name])
	}
	return w
}
