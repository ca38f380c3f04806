// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// recover does what a recovery needs besides the life of a cluster.
func (r *Reconciler) recover(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action) error {
	switch a := action.(type) {
	case planner.RecordRecovery:
		return r.recordRecovery(ctx, key, s, a)
	case planner.RequestRestore:
		return r.requestRestore(ctx, key, s, a)
	case planner.CreateReseed:
		return r.createReseed(ctx, key, s, &a.Recovery)
	case planner.ProveWrite:
		if a.Hidden {
			return r.Etcd.ProveWrite(ctx, s.reseed)
		}
		return r.Etcd.ProveWrite(ctx, s.voters)
	case planner.DropSeed:
		return r.dropSeed(ctx, s, a.Name)
	case planner.Retire:
		return r.retire(ctx, key, s, &a.Recovery)
	case planner.Reveal:
		return r.reveal(ctx, key, s, a.Name)
	case planner.DropRetired:
		return r.dropRetired(ctx, s, &a.Recovery)
	default:
		return r.changeMembership(ctx, key, s, action)
	}
}

// recordRecovery writes how far a recovery has come on the peer service. Of two
// controllers that have seen the same record only one can write the next.
func (r *Reconciler) recordRecovery(ctx context.Context, key types.NamespacedName, s *seen, a planner.RecordRecovery) error {
	if err := r.confirmRequest(ctx, s, &a.Recovery); err != nil {
		return err
	}
	if len(a.Lost) > 0 {
		if err := r.confirmStatus(ctx, s); err != nil {
			return err
		}
	}
	for _, name := range a.Lost {
		if err := r.confirmEnded(ctx, s, name); err != nil {
			return err
		}
		if err := r.confirmLost(ctx, key, s, name); err != nil {
			return err
		}
	}
	if a.Gone != "" {
		if err := r.confirmGone(ctx, s, a.Gone); err != nil {
			return err
		}
	}
	record, err := r.confirmUnchanged(ctx, s)
	if err != nil {
		return err
	}
	if before := recordOf(record); before != nil && before.Phase == v1beta2.RecoveryPhaseSeeding && a.Recovery.Phase == v1beta2.RecoveryPhaseSwitching &&
		a.Recovery.Trigger != v1beta2.RecoveryTriggerRestore {
		if err := r.confirmNoQuorum(ctx, s); err != nil {
			return err
		}
	}
	text, err := json.Marshal(&a.Recovery)
	if err != nil {
		return fmt.Errorf("write the record of the recovery: %w", err)
	}
	record = record.DeepCopy()
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, resources.AnnotationRecoveries, strings.Join(begun(record, a.Recovery.ID), " "))
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, resources.AnnotationRecovery, string(text))
	if a.Recovery.Phase == v1beta2.RecoveryPhaseCleaning {
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, resources.AnnotationClusterID, a.Recovery.ClusterID)
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, resources.AnnotationSeed, a.Recovery.Seed)
	}
	updated, err := r.Objects.UpdateService(ctx, record)
	if err != nil {
		return conflictIsStale(err)
	}
	r.Gate.Note(key, updated)
	r.announceRecovery(s, &a.Recovery)
	return nil
}

// confirmNoQuorum makes sure that the old members have not come back since they were
// observed, which may be a while ago if one of them was silent: then they go on untouched.
func (r *Reconciler) confirmNoQuorum(ctx context.Context, s *seen) error {
	if len(s.target.Endpoints) == 0 {
		return nil
	}
	statusCtx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answers, voters := r.Etcd.Statuses(statusCtx, s.target), s.to()
	for _, e := range s.target.Endpoints {
		if a := answers[e.Name]; a.Err == nil && !a.Health.Learner && a.Health.Leader != 0 {
			voters.Endpoints = append(voters.Endpoints, e)
		}
	}
	if len(voters.Endpoints) == 0 {
		return nil
	}
	membersCtx, cancelMembers := context.WithTimeout(ctx, membersTimeout)
	defer cancelMembers()
	if _, err := r.Etcd.Members(membersCtx, voters); err == nil {
		return fmt.Errorf("a quorum of the members answers again: %w", ErrStale)
	}
	return nil
}

// confirmUnchanged returns the record of the last recovery if it is, in the live API,
// what was observed.
func (r *Reconciler) confirmUnchanged(ctx context.Context, s *seen) (*corev1.Service, error) {
	record, err := r.Objects.GetService(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return nil, fmt.Errorf("read the record of the recovery: %w", err)
	}
	if s.peerService == nil || !resources.Owns(s.Cluster, record) ||
		record.Annotations[resources.AnnotationRecovery] != s.peerService.Annotations[resources.AnnotationRecovery] ||
		record.Annotations[resources.AnnotationClusterID] != s.peerService.Annotations[resources.AnnotationClusterID] {
		return nil, fmt.Errorf("the record of service %s is another one now: %w", s.Cluster.Name, ErrStale)
	}
	return record, nil
}

// confirmRequest makes sure, in the live API, that the cluster still is the one that was
// observed and that nobody has cancelled.
func (r *Reconciler) confirmRequest(ctx context.Context, s *seen, recovery *v1beta2.RecoveryStatus) error {
	live, err := r.Objects.GetCluster(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if notFound(err) {
		return fmt.Errorf("the cluster was deleted: %w", ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if live.UID != s.Cluster.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("the cluster is another one now: %w", ErrStale)
	}
	if asked := live.Status.Recovery; asked != nil && asked.ID == recovery.ID && asked.Cancelled && !recovery.Cancelled {
		return fmt.Errorf("the recovery was cancelled: %w", ErrStale)
	}
	return nil
}

func (r *Reconciler) announceRecovery(s *seen, recovery *v1beta2.RecoveryStatus) {
	from := "member " + recovery.Source.Member
	if recovery.Trigger == v1beta2.RecoveryTriggerRestore {
		from = "EtcdRestore " + recovery.Source.Restore
	}
	by, aside := "", ""
	if recovery.RequestedBy != "" {
		by = ", as requested by " + recovery.RequestedBy
		aside = by + ","
	}
	switch recovery.Phase {
	case v1beta2.RecoveryPhaseSeeding:
		r.warning(s, EventRecoveryStarted, "The cluster goes on from %s in the new member %s%s", from, recovery.Seed, by)
	case v1beta2.RecoveryPhaseSwitching:
		r.warning(s, EventRecoverySwitching, "New member %s has served a write; the old members go out of service", recovery.Seed)
	case v1beta2.RecoveryPhaseSucceeded:
		r.normal(s, EventRecovered, "The cluster has gone on from %s with cluster ID %s", from, recovery.ClusterID)
	case v1beta2.RecoveryPhaseAbandoned:
		r.normal(s, EventRecoveryAbandoned, "The recovery%s was abandoned: %s", aside, recovery.Message)
	case v1beta2.RecoveryPhasePending:
		r.normal(s, EventRecoveryStarted, "The recovery begins again: %s", recovery.Message)
	case v1beta2.RecoveryPhaseCleaning:
	}
}

// createReseed makes the seed of a recovery, if that is what stands on the peer service
// now.
func (r *Reconciler) createReseed(ctx context.Context, key types.NamespacedName, s *seen, recovery *v1beta2.RecoveryStatus) error {
	if err := r.confirmRecord(ctx, s, recovery); err != nil {
		return err
	}
	c, filled := atVersion(s.Cluster, recovery.Version), *recovery
	if claim := resources.ReseedClaim(c, recovery.Seed); claim != nil {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, resources.AnnotationVersion, resources.Version(c))
		created, err := r.Objects.CreateClaim(ctx, claim)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return notMade(err)
		}
		if err == nil {
			r.Gate.Note(key, created)
			if recovery.Source.Backup != nil {
				// It had a volume before, if it has served: what was on that is lost, and the
				// backup is still there.
				filled.Phase = v1beta2.RecoveryPhaseSeeding
			}
		}
	}
	pod, err := resources.ReseedPod(c, &filled, s.certified(resources.MemberPod{}), r.AgentImage)
	if err != nil {
		return err
	}
	created, err := r.Objects.CreatePod(ctx, r.Platform.Member(c, pod))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("pod %s was made meanwhile: %w", pod.Name, ErrStale)
	}
	if err != nil {
		return notMade(err)
	}
	r.Gate.Note(key, created)
	return nil
}

// confirmRecord makes sure that a recovery is at the phase in which it was observed.
func (r *Reconciler) confirmRecord(ctx context.Context, s *seen, recovery *v1beta2.RecoveryStatus) error {
	service, err := r.Objects.GetService(ctx, s.Cluster.Namespace, s.Cluster.Name)
	if err != nil {
		return fmt.Errorf("read the record of the recovery: %w", err)
	}
	live := recordOf(service)
	if !resources.Owns(s.Cluster, service) || live == nil || live.ID != recovery.ID || live.Phase != recovery.Phase || live.Seed != recovery.Seed {
		return fmt.Errorf("the record of the recovery is another one now: %w", ErrStale)
	}
	return nil
}

// recordOf returns what stands on the peer service, or nil if that cannot be read.
func recordOf(service *corev1.Service) *v1beta2.RecoveryStatus {
	text, found := service.Annotations[resources.AnnotationRecovery]
	if !found {
		return nil
	}
	record := &v1beta2.RecoveryStatus{}
	if err := json.Unmarshal([]byte(text), record); err != nil || record.ID == "" {
		return nil
	}
	return record
}

// mostRecoveries is how many recoveries are remembered. An API is not restored from before
// as many.
const mostRecoveries = 200

// recoveriesOf returns the IDs of the recoveries that were ever begun.
func recoveriesOf(service *corev1.Service) []string {
	return strings.Fields(service.Annotations[resources.AnnotationRecoveries])
}

// begun returns the IDs of the recoveries that were ever begun, with another one. The one
// of the record is among them, whoever has written it.
func begun(service *corev1.Service, id string) []string {
	list := recoveriesOf(service)
	if before := recordOf(service); before != nil && !slices.Contains(list, before.ID) {
		list = append(list, before.ID)
	}
	if !slices.Contains(list, id) {
		list = append(list, id)
	}
	return list[max(0, len(list)-mostRecoveries):]
}

// dropSeed deletes a seed that nobody was let in to, and that has not taken the place of
// the old members meanwhile: from then on it holds the data, and is hidden for a while yet.
func (r *Reconciler) dropSeed(ctx context.Context, s *seen, name string) error {
	if _, err := r.confirmUnchanged(ctx, s); err != nil {
		return err
	}
	pod, err := r.Objects.GetPod(ctx, s.Cluster.Namespace, name)
	if err != nil && !notFound(err) {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if err == nil && pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, s.Cluster) && resources.Hidden(pod.Labels, s.Cluster.Name) {
		err := r.Objects.DeletePod(ctx, pod.Namespace, name, metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if err != nil && !notFound(err) {
			return conflictIsStale(err)
		}
	}
	claim, err := r.Objects.GetClaim(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	if claim.DeletionTimestamp != nil || !resources.Owns(s.Cluster, claim) || !resources.Hidden(claim.Labels, s.Cluster.Name) {
		return nil
	}
	err = r.Objects.DeleteClaim(ctx, claim.Namespace, name, metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	if err != nil && !notFound(err) {
		return conflictIsStale(err)
	}
	return nil
}
