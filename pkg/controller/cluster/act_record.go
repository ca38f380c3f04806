// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// writeRecord creates the record, or completes it. Of two controllers only one can do either,
// and the other one reads what was written.
func writeRecord(ctx context.Context, r *run, a planner.WriteRecord) error {
	if a.Record.ClusterID == "" {
		if err := requireNeverServed(ctx, r, a.Record.BootstrapMember); err != nil {
			return err
		}
	}
	if r.seen.record != nil {
		live, err := readSeenRecord(ctx, r)
		if err != nil {
			return err
		}
		return updateRecord(ctx, r, live, a.Record)
	}
	if reportsNameConflict(r.seen.Cluster) {
		// As long as that name is taken, each attempt to create the record would fail.
		if err := useUncachedRecord(ctx, r); !isNotFound(err) {
			return err
		}
	}
	created, err := r.Objects.CreateConfigMap(ctx, resources.RecordConfigMap(r.seen.Cluster, a.Record))
	if apierrors.IsAlreadyExists(err) {
		return useUncachedRecord(ctx, r)
	}
	if err != nil {
		return reconcile.MarkTerminating(err)
	}
	r.Gate.Note(r.key, created)
	return nil
}

// reportsNameConflict is true if the status says that another object has a name that the cluster needs.
func reportsNameConflict(cluster *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(cluster.Status.Conditions, func(c v1beta2.ClusterCondition) bool {
		return c.Reason == string(planner.ReasonNameConflict)
	})
}

// useUncachedRecord gives a record that the cache does not show its labels, by which the
// cache finds it. The next observation has its content.
func useUncachedRecord(ctx context.Context, r *run) error {
	name := resources.RecordName(r.seen.Cluster)
	live, err := r.Objects.GetConfigMap(ctx, r.seen.Cluster.Namespace, name)
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	// The cache must show it as owned, too: it does not, while the ConfigMap is too large.
	if !resources.OwnsRecord(r.seen.Cluster, resources.CachedRecord(live)) {
		return fmt.Errorf("ConfigMap %s exists: %w", name, reconcile.ErrNotOwned)
	}
	// One without an owner stays until the cluster is deleted, so there must be a cluster.
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	if err := updateRecord(ctx, r, live, resources.ParseRecord(live)); err != nil {
		return err
	}
	return fmt.Errorf("ConfigMap %s was created by another process: %w", name, reconcile.ErrStale)
}

// readRecord reads the record in the live API. It returns reconcile.ErrStale if there is none.
func readRecord(ctx context.Context, r *run) (*corev1.ConfigMap, resources.Record, error) {
	name := resources.RecordName(r.seen.Cluster)
	live, err := r.Objects.GetConfigMap(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil, resources.Record{}, fmt.Errorf("the record, ConfigMap %s, was deleted: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return nil, resources.Record{}, fmt.Errorf("read the record, ConfigMap %s: %w", name, err)
	}
	if !resources.OwnsRecord(r.seen.Cluster, live) {
		return nil, resources.Record{}, fmt.Errorf("ConfigMap %s has another owner: %w", name, reconcile.ErrStale)
	}
	return live, resources.ParseRecord(live), nil
}

// readSeenRecord returns the record if it says, in the live API, what was observed.
func readSeenRecord(ctx context.Context, r *run) (*corev1.ConfigMap, error) {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.seen.record == nil || !record.Equal(r.seen.Record.Record) {
		return nil, fmt.Errorf("the record, ConfigMap %s, has changed since it was observed: %w", live.Name, reconcile.ErrStale)
	}
	return live, nil
}

// updateRecord writes the record into the ConfigMap that was read.
func updateRecord(ctx context.Context, r *run, live *corev1.ConfigMap, record resources.Record) error {
	updated, err := r.Objects.UpdateConfigMap(ctx, resources.WithRecord(r.seen.Cluster, live, record))
	if isNotFound(err) {
		return fmt.Errorf("the record, ConfigMap %s, was deleted: %w", live.Name, reconcile.ErrStale)
	}
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	r.Gate.Note(r.key, updated)
	return nil
}

// recordBootstrap writes the cluster ID into the record.
func recordBootstrap(ctx context.Context, r *run, a planner.RecordBootstrap) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if record.ClusterID == "" { // otherwise the cluster has served, and only its ID was lost
		if err := requireNoRecovery(&record); err != nil {
			return err
		}
		check := requireSameBootstrapPod
		if r.seen.Cluster.Existing() != nil { // the endpoints may change until now
			check = requireNeverJoined
		}
		if err := check(ctx, r); err != nil {
			return err
		}
	}
	record.ClusterID = strconv.FormatUint(a.ClusterID, 16)
	if a.Log.ClusterID != "" {
		record.Log = a.Log
	}
	if err := updateRecord(ctx, r, live, record); err != nil {
		return err
	}
	if r.seen.Cluster.Existing() != nil {
		normal(r, EventClusterStarted, "Members join the etcd with cluster ID %s", record.ClusterID)
		return nil
	}
	normal(r, EventClusterStarted, "Cluster started with member %s", record.BootstrapMember)
	return nil
}

// requireNeverJoined makes sure, in the live API, that the spec still names the etcd that was observed, and that no pod or PVC
// of a member exists. PVCs of an earlier cluster of this name come first.
func requireNeverJoined(ctx context.Context, r *run) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	return requireNoOtherObjects(ctx, r, r.seen.BootstrapName)
}

// requireSameBootstrapPod makes sure, in the live API, that the bootstrap member that responded still is
// the one of its pod. Until the record says that it has responded, another controller creates a pod again
// that was deleted, and that pod starts a cluster without data.
func requireSameBootstrapPod(ctx context.Context, r *run) error {
	name := r.seen.BootstrapName
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if seen := r.seen.podOf(name); err != nil || seen == nil || seen.UID != string(pod.UID) || pod.DeletionTimestamp != nil {
		return fmt.Errorf("the pod of the bootstrap member %s is not the one that was observed: %w", name, reconcile.ErrStale)
	}
	return nil
}

// recordDeclaration brings the record up to date with what the EtcdCluster declares.
func recordDeclaration(ctx context.Context, r *run, _ planner.RecordDeclaration) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	return updateRecord(ctx, r, live, record)
}

// recordPutBack writes down that images are put back once more.
func recordPutBack(ctx context.Context, r *run, a planner.RecordPutBack) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if record.PutBack.String() != r.seen.Record.PutBack.String() {
		return fmt.Errorf("the record of images that were put back has changed since it was observed: %w", reconcile.ErrStale)
	}
	record.PutBack = a.PutBack
	if err := updateRecord(ctx, r, live, record); err != nil {
		return err
	}
	r.seen.Record.PutBack = a.PutBack // the pods that the rest of the plan creates are of this round
	return nil
}

// recordCorruptVoters writes down how many voters the alarm CORRUPT was raised in, unless another controller has.
func recordCorruptVoters(ctx context.Context, r *run, a planner.RecordCorruptVoters) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if record.CorruptVoters != r.seen.Record.CorruptVoters {
		return fmt.Errorf("the record of the voters whose data differs has changed since it was observed: %w", reconcile.ErrStale)
	}
	record.CorruptVoters = a.Voters
	return updateRecord(ctx, r, live, record)
}

// recordRemoved writes down that a member was removed from etcd.
func recordRemoved(ctx context.Context, r *run, name string) error {
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	return updateRecord(ctx, r, live, record.WithRemoved(name))
}

// requireNotBegun makes sure, in the live API, that no pod, no PVC and no peer Service knows of a
// recovery that the record does not have. The record may have been lost, and the cache may be behind.
func requireNotBegun(ctx context.Context, r *run, id string) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	pvcs, err := r.Objects.ListPVCs(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the PVCs: %w", err)
	}
	var objects []metav1.Object
	for i := range pods {
		objects = append(objects, &pods[i])
	}
	for i := range pvcs {
		objects = append(objects, &pvcs[i])
	}
	peer, err := r.Objects.GetService(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read Service %s: %w", r.seen.Cluster.Name, err)
	}
	if err == nil {
		objects = append(objects, peer)
	}
	w := witnesses(r.seen.Cluster, objects)
	if slices.Contains(w.Recoveries, id) || slices.ContainsFunc(w.RecoveryMembers, func(m planner.RecoveryWitness) bool { return m.Recovery.ID == id }) {
		return fmt.Errorf("recovery %s has begun before: %w", id, reconcile.ErrStale)
	}
	return nil
}

// copyRecovery notes on the recovery member that the cutover has begun. It comes before
// anything of the old members is changed: without a record, this is what tells that there is
// no way back. It also notes the IDs of all recoveries that have begun, which the old members
// know: they are no members from then on.
func copyRecovery(ctx context.Context, r *run, recovery *v1beta2.RecoveryStatus, began []string) error {
	note := func(object metav1.Object) bool {
		copied := resources.CopyRecovery(object, recovery)
		return resources.CopyRecoveries(object, began) || copied
	}
	name := recovery.RecoveryMember
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if err == nil && resources.Owns(r.seen.Cluster, pvc) {
		if pvc = pvc.DeepCopy(); note(pvc) {
			if err := updatePVC(ctx, r, pvc); err != nil {
				return err
			}
		}
	}
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return fmt.Errorf("pod %s no longer exists: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, pod) {
		return fmt.Errorf("pod %s was replaced since it was observed: %w", name, reconcile.ErrStale)
	}
	if noted := pod.DeepCopy(); note(noted) {
		return updatePod(ctx, r, pod, noted)
	}
	return nil
}
