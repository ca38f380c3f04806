// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// recordRecovery writes how far a recovery has come. Of two
// controllers that have seen the same record only one can write the next.
func recordRecovery(ctx context.Context, r *run, a planner.RecordRecovery) error {
	if err := requireNotCancelled(ctx, r, &a.Recovery); err != nil {
		return err
	}
	live, err := readSeenRecord(ctx, r)
	if err != nil {
		return err
	}
	if len(a.Lost) > 0 {
		if err := requireSameStatus(ctx, r); err != nil {
			return err
		}
	}
	if err := requireLost(ctx, r, a.Lost); err != nil {
		return err
	}
	if a.Gone != "" {
		if err := requireRecoveryMemberDeleted(ctx, r, a.Gone); err != nil {
			return err
		}
	}
	if a.Recovery.Phase == v1beta2.RecoveryPhaseFilling && a.Recovery.Source.PVC != "" {
		if err := requireNoneServesUnseen(ctx, r); err != nil {
			return err
		}
	}
	before := resources.ParseRecord(live)
	if a.Recovery.Phase == v1beta2.RecoveryPhaseFilling && !slices.Contains(before.Recoveries, a.Recovery.ID) {
		if err := requireNotBegun(ctx, r, a.Recovery.ID); err != nil {
			return err
		}
	}
	if before.Recovery != nil && before.Recovery.Phase == v1beta2.RecoveryPhaseFilling && a.Recovery.Phase == v1beta2.RecoveryPhaseCutover &&
		a.Recovery.Trigger != v1beta2.RecoveryTriggerRestore {
		if err := requireNoneServesUnseen(ctx, r); err != nil {
			return err
		}
	}
	if a.Recovery.Phase == v1beta2.RecoveryPhaseCutover && a.Recovery.OnlyIfUnresponsive {
		if err := requireNoneResponds(ctx, r); err != nil {
			return err
		}
	}
	if a.Recovery.Phase == v1beta2.RecoveryPhaseCutover && planner.RepeatsRestore(&r.seen.Observed, &a.Recovery) {
		if err := requireNoQuorum(ctx, r); err != nil {
			return err
		}
	}
	if err := updateRecord(ctx, r, live, before.WithRecovery(&a.Recovery)); err != nil {
		return err
	}
	announceRecovery(r, &a.Recovery)
	return nil
}

// requireNoneServesUnseen makes sure that old members that do not respond to the controller do not serve
// as a quorum all the same.
func requireNoneServesUnseen(ctx context.Context, r *run) error {
	if err := requireNodesReport(ctx, r); err != nil {
		return err
	}
	if err := requireAllLabelled(ctx, r); err != nil {
		return err
	}
	if err := requireSamePods(ctx, r); err != nil {
		return err
	}
	return requireNoQuorum(ctx, r)
}

// requireNoneResponds makes sure that no old member has come back since they were observed: a restore without a
// pre-restore backup would replace the only copy of its data.
func requireNoneResponds(ctx context.Context, r *run) error {
	if err := requireSamePods(ctx, r); err != nil {
		return err
	}
	if len(r.seen.target.Endpoints) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for name, status := range r.Etcd.Statuses(ctx, r.seen.target) {
		if status.Err == nil || errors.Is(status.Err, etcd.ErrDenied) {
			return fmt.Errorf("member %s responds again: %w", name, reconcile.ErrStale)
		}
	}
	return nil
}

// requireNoQuorum makes sure that the old members have not come back since they were
// observed, which may be a while ago if a member did not respond. If they have, they stay
// untouched.
func requireNoQuorum(ctx context.Context, r *run) error {
	if len(r.seen.target.Endpoints) == 0 {
		return nil
	}
	statusCtx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	statuses, voters := r.Etcd.Statuses(statusCtx, r.seen.target), r.seen.to()
	for _, e := range r.seen.target.Endpoints {
		if a := statuses[e.Name]; a.Err == nil && !a.Health.Learner && a.Health.Leader != 0 {
			voters.Endpoints = append(voters.Endpoints, e)
		}
	}
	if len(voters.Endpoints) == 0 {
		return nil
	}
	membersCtx, cancelMembers := context.WithTimeout(ctx, membersTimeout)
	defer cancelMembers()
	if _, err := r.Etcd.Members(membersCtx, voters); err == nil {
		return fmt.Errorf("a quorum of the members responds again: %w", reconcile.ErrStale)
	}
	return nil
}

// requireNotCancelled makes sure, in the live API, that the cluster still is the observed
// cluster and that its recovery was not cancelled.
func requireNotCancelled(ctx context.Context, r *run, recovery *v1beta2.RecoveryStatus) error {
	live, err := r.Objects.GetCluster(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if isNotFound(err) {
		return fmt.Errorf("the EtcdCluster was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the EtcdCluster: %w", err)
	}
	if live.UID != r.seen.Cluster.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("the EtcdCluster was recreated or is being deleted: %w", reconcile.ErrStale)
	}
	if asked := live.Status.Recovery; asked != nil && asked.ID == recovery.ID && asked.Cancelled && !recovery.Cancelled {
		return fmt.Errorf("the recovery was cancelled: %w", reconcile.ErrStale)
	}
	return nil
}

func announceRecovery(r *run, recovery *v1beta2.RecoveryStatus) {
	from := "member " + recovery.Source.Member
	if recovery.Source.PVC != "" {
		from = "the PVC of member " + recovery.Source.Member
	}
	if recovery.Trigger == v1beta2.RecoveryTriggerRestore {
		from = "EtcdRestore " + recovery.Source.Restore
	}
	by, aside := "", ""
	if recovery.RequestedBy != "" {
		by = ", as requested by " + recovery.RequestedBy
		aside = by + ","
	}
	switch recovery.Phase {
	case v1beta2.RecoveryPhaseFilling:
		warning(r, EventRecoveryStarted, "Recovery from %s started in recovery member %s%s", from, recovery.RecoveryMember, by)
	case v1beta2.RecoveryPhaseCutover:
		warning(r, EventRecoveryCutover, "Recovery member %s has committed a write; the old members are decommissioned", recovery.RecoveryMember)
	case v1beta2.RecoveryPhaseSucceeded:
		normal(r, EventRecovered, "The cluster was recovered from %s with cluster ID %s", from, recovery.ClusterID)
	case v1beta2.RecoveryPhaseAbandoned:
		normal(r, EventRecoveryAbandoned, "The recovery%s was abandoned: %s", aside, recovery.Message)
	case v1beta2.RecoveryPhasePending:
		normal(r, EventRecoveryStarted, "The recovery starts again: %s", recovery.Message)
	case v1beta2.RecoveryPhaseCleaning:
	}
}

// createRecoveryMember creates the recovery member, if that is what the record says now. The
// recovery member knows all recoveries that have begun: while the old members are decommissioned,
// no other object tells of them if the record is lost.
func createRecoveryMember(ctx context.Context, r *run, a planner.CreateRecoveryMember) error {
	recovery := &a.Recovery
	record, err := requireSamePhase(ctx, r, recovery)
	if err != nil {
		return err
	}
	if err := requireSourceStopped(ctx, r, recovery, a.WithoutSource); err != nil {
		return err
	}
	c, filled := atVersion(r.seen.Cluster, recovery.Version), *recovery
	if a.WithoutSource || recovery.Phase == v1beta2.RecoveryPhaseCutover && recovery.Source.Backup == nil {
		// It holds the only copy: on an empty PVC it would never start.
		live, err := requireRecoveryPVC(ctx, r, recovery.RecoveryMember)
		if err != nil {
			return err
		}
		c = keepMinor(c, live)
		if err := recordRecoveryVersion(ctx, r, c, live); err != nil {
			return err
		}
	} else if pvc := resources.RecoveryPVC(c, recovery); pvc != nil {
		metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, resources.AnnotationVersion, resources.Version(c))
		resources.CopyRecoveries(pvc, record.Recoveries)
		if recovery.Phase == v1beta2.RecoveryPhaseCutover {
			resources.MarkUnfilled(pvc)
		}
		live, err := createRecoveryPVC(ctx, r, pvc)
		if err != nil {
			return err
		}
		if resources.IsUnfilled(live) {
			filled.Phase = v1beta2.RecoveryPhaseFilling
		}
		c = keepMinor(c, live)
		if err := recordRecoveryVersion(ctx, r, c, live); err != nil {
			return err
		}
	}
	pod, err := resources.RecoveryPod(c, &filled, r.seen.certified(resources.MemberPod{}), r.AgentImage)
	if err != nil {
		return err
	}
	if a.WithoutSource {
		resources.DropSource(pod)
	}
	resources.CopyRecoveries(pod, record.Recoveries)
	err = submitPod(ctx, r, r.Platform.Member(c, pod))
	if apierrors.IsAlreadyExists(err) {
		return findRecoveryPod(ctx, r, pod.Name)
	}
	return reconcile.MarkRejected(err)
}

// keepMinor returns c at the version that its recovery member has run on this PVC, if the desired one is of
// another minor version. As for every other member, a change of the minor version is for a rollout.
func keepMinor(c *v1beta2.EtcdCluster, pvc *corev1.PersistentVolumeClaim) *v1beta2.EtcdCluster {
	ran, err := version.ParseGeneric(pvc.Annotations[resources.AnnotationVersion])
	if err != nil || resources.IsUnfilled(pvc) {
		return c
	}
	desired, err := version.ParseGeneric(resources.Version(c))
	if err == nil && desired.Major() == ran.Major() && desired.Minor() == ran.Minor() {
		return c
	}
	return atVersion(c, pvc.Annotations[resources.AnnotationVersion]) // its image may not be known by the number alone
}

// recordRecoveryVersion records on the PVC of the recovery member which version runs on it, before that version does.
func recordRecoveryVersion(ctx context.Context, r *run, c *v1beta2.EtcdCluster, live *corev1.PersistentVolumeClaim) error {
	if live.Annotations[resources.AnnotationVersion] == resources.Version(c) {
		return nil
	}
	return recordVersion(ctx, r, live.Name, resources.Version(c))
}

// createRecoveryPVC creates the PVC of the recovery member, or returns the one that exists.
func createRecoveryPVC(ctx context.Context, r *run, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	created, err := r.Objects.CreatePVC(ctx, pvc)
	if apierrors.IsAlreadyExists(err) {
		return requireRecoveryPVC(ctx, r, pvc.Name)
	}
	if err != nil {
		return nil, reconcile.MarkRejected(err)
	}
	r.Gate.Note(r.key, created)
	return created, nil
}

// findRecoveryPod looks at the pod that has the name of the recovery member. If it is that of the
// recovery member and has only lost its labels, the next observation shows it.
func findRecoveryPod(ctx context.Context, r *run, name string) error {
	live, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if err == nil && resources.RecoveryOf(live) != nil {
		if err := restorePodLabels(ctx, r, live); err != nil {
			return err
		}
	}
	return fmt.Errorf("pod %s was created by another process: %w", name, reconcile.ErrStale)
}

// requireRecoveryPVC returns a PVC that exists and makes sure that it is that of the recovery member, and not
// one that waits for another member.
func requireRecoveryPVC(ctx context.Context, r *run, name string) (*corev1.PersistentVolumeClaim, error) {
	live, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	switch {
	case isNotFound(err):
		return nil, fmt.Errorf("PVC %s no longer exists: %w", name, reconcile.ErrStale)
	case err != nil:
		return nil, fmt.Errorf("read PVC %s: %w", name, err)
	case !resources.Owns(r.seen.Cluster, live):
		return nil, fmt.Errorf("PVC %s exists: %w", name, reconcile.ErrNotOwned)
	case live.DeletionTimestamp != nil:
		return nil, fmt.Errorf("PVC %s is being deleted: %w", name, reconcile.ErrStale)
	case resources.IsPrepared(live.Annotations):
		return nil, fmt.Errorf("PVC %s waits for another member: %w", name, reconcile.ErrStale)
	}
	return live, nil
}

// requireSamePhase makes sure that a recovery is at the phase in which it was observed. It
// returns the record.
func requireSamePhase(ctx context.Context, r *run, recovery *v1beta2.RecoveryStatus) (resources.Record, error) {
	_, record, err := readRecord(ctx, r)
	if err != nil {
		return record, err
	}
	live := record.Recovery
	if live == nil || live.ID != recovery.ID || live.Phase != recovery.Phase || live.RecoveryMember != recovery.RecoveryMember {
		return record, fmt.Errorf("the recovery record has changed since it was observed: %w", reconcile.ErrStale)
	}
	return record, nil
}

// deleteRecoveryMember deletes a recovery member that was never published and that has not
// replaced the old members. After the cutover it holds the data, although it stays hidden
// for a while. A pod or PVC that the cache cannot show gets its labels back first: the recovery may
// delete its recovery member only because the cache did not show that member.
func deleteRecoveryMember(ctx context.Context, r *run, a planner.DeleteRecoveryMember) error {
	name := a.Name
	if _, err := readSeenRecord(ctx, r); err != nil {
		return err
	}
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if observed := r.seen.recoveryPod; isInCutover(r) && observed != nil && (err != nil || pod.ResourceVersion != observed.ResourceVersion) {
		// It may have been filled since, and be all that the cluster has.
		return fmt.Errorf("pod %s of the recovery member has changed since it was observed: %w", name, reconcile.ErrStale)
	}
	if err == nil && pod.DeletionTimestamp == nil && resources.Owns(r.seen.Cluster, pod) && isUnpublished(r, pod) {
		if hasLostLabels(r, &pod.ObjectMeta) {
			return cmp.Or(restorePodLabels(ctx, r, pod), errStillExists("pod", name, nil))
		}
		err := r.Objects.DeletePod(ctx, pod.Namespace, name, metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if err != nil && !isNotFound(err) {
			return reconcile.StaleOnConflict(err)
		}
	}
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if pvc.DeletionTimestamp != nil || !resources.Owns(r.seen.Cluster, pvc) || !isUnpublished(r, pvc) {
		return nil
	}
	if hasLostLabels(r, &pvc.ObjectMeta) {
		return cmp.Or(restorePVCLabels(ctx, r, pvc), errStillExists("PVC", name, nil))
	}
	return deleteOrReleasePVC(ctx, r, pvc)
}

// isInCutover is true if a recovery was observed that decommissions the old members.
func isInCutover(r *run) bool {
	recovery := r.seen.Record.Recovery
	return recovery != nil && recovery.Phase == v1beta2.RecoveryPhaseCutover
}

// proveWrite makes etcd commit a write: the members of the cluster, or the recovery member.
func proveWrite(ctx context.Context, r *run, a planner.VerifyWrite) error {
	if a.Of == planner.WriteToRecoveryMember {
		return r.Etcd.ProveFirstWrite(ctx, r.seen.recoveryMember)
	}
	return r.Etcd.ProveWrite(ctx, r.seen.voters)
}
