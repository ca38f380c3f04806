// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The functions here read the live API before an action that cannot be undone. The planner decides
// from caches, which may lag behind, and another process may act on the same cluster. The functions
// return reconcile.ErrStale if the observation is outdated.

// readSameCluster returns the EtcdCluster in the live API, if it still is the one that was observed
// and stays.
func readSameCluster(ctx context.Context, r *run) (*v1beta2.EtcdCluster, error) {
	live, err := r.Objects.GetCluster(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if isNotFound(err) {
		return nil, fmt.Errorf("the EtcdCluster was deleted: %w", reconcile.ErrStale)
	}
	if err != nil {
		return nil, fmt.Errorf("read the EtcdCluster: %w", err)
	}
	if live.UID != r.seen.Cluster.UID || live.DeletionTimestamp != nil {
		return nil, fmt.Errorf("the EtcdCluster was recreated or is being deleted: %w", reconcile.ErrStale)
	}
	return live, nil
}

// requireNeverServed makes sure, in the live API, that the cluster still is the one that
// was observed, that it has never served, and that nothing but its bootstrap member exists.
func requireNeverServed(ctx context.Context, r *run, bootstrapMember string) error {
	live, err := readSameCluster(ctx, r)
	if err != nil {
		return err
	}
	if live.Status.Phase != v1beta2.ClusterPhaseNone && live.Status.Phase != v1beta2.ClusterPhaseCreating {
		return fmt.Errorf("the EtcdCluster has served before: %w", reconcile.ErrStale)
	}
	// The status is written after the cluster was published to clients, so it alone proves
	// nothing.
	service, err := r.Objects.GetService(ctx, r.seen.Cluster.Namespace, resources.ClientServiceName(r.seen.Cluster))
	if err == nil && !resources.Owns(r.seen.Cluster, service) {
		return fmt.Errorf("service %s exists: %w", service.Name, reconcile.ErrNotOwned)
	}
	if err == nil {
		// The cache does not show it if something has removed its labels.
		if err := repairService(ctx, r, service, resources.ClientServiceDrift); err != nil {
			return err
		}
		return fmt.Errorf("the client Service exists: %w", reconcile.ErrStale)
	}
	if !isNotFound(err) {
		return fmt.Errorf("read the client Service: %w", err)
	}
	return requireNoOtherObjects(ctx, r, bootstrapMember)
}

// requireNoOtherObjects makes sure that the cluster has no pod and no PVC except those of
// the bootstrap member. No cluster begins empty, or joins an etcd, beside the data of an earlier cluster of its name.
func requireNoOtherObjects(ctx context.Context, r *run, bootstrapMember string) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if pods[i].Name != bootstrapMember && !r.seen.isPrepared(&pods[i]) && resources.Owns(r.seen.Cluster, &pods[i]) {
			return fmt.Errorf("pod %s exists: %w", pods[i].Name, reconcile.ErrStale)
		}
	}
	pvcs, err := r.Objects.ListPVCs(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the PVCs: %w", err)
	}
	for i := range pvcs {
		if pvcs[i].Name != bootstrapMember && !r.seen.isPrepared(&pvcs[i]) && resources.Owns(r.seen.Cluster, &pvcs[i]) {
			return fmt.Errorf("PVC %s exists: %w", pvcs[i].Name, reconcile.ErrStale)
		}
		if !planner.BeginsOtherwise(&r.seen.Observed) && resources.MayHoldFormerMember(r.seen.Cluster, &pvcs[i]) {
			return fmt.Errorf("PVC %s of an earlier cluster of this name exists: %w", pvcs[i].Name, reconcile.ErrStale)
		}
	}
	return nil
}

// requireBootstrapMember makes sure, in the live API, that the record names this bootstrap member and that
// the cluster has never served.
func requireBootstrapMember(ctx context.Context, r *run, name string) error {
	_, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	if record.BootstrapMember != name || record.ClusterID != "" {
		return fmt.Errorf("the record names another bootstrap member or a finished bootstrap: %w", reconcile.ErrStale)
	}
	if err := requireNoRecovery(&record); err != nil {
		return err
	}
	return requireNeverServed(ctx, r, name)
}

// requireNoRecovery makes sure that no restore fills the cluster instead of its bootstrap member.
func requireNoRecovery(record *resources.Record) error {
	if record.Recovery.IsInProgress() {
		return fmt.Errorf("recovery %s has begun since the cluster was observed: %w", record.Recovery.ID, reconcile.ErrStale)
	}
	return nil
}

func requireNoPodOrPVC(ctx context.Context, r *run, name string) error {
	if err := requireNoPod(ctx, r, name); err != nil {
		return err
	}
	return requireNoPVC(ctx, r, name)
}

// requireSamePods makes sure, in the live API, that every pod of the cluster that has not ended
// was observed, and that none has become ready since. A cache that is behind may not show the
// pods of a quorum that serves.
func requireSamePods(ctx context.Context, r *run) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		live := observedPod(r.seen.Cluster, &pods[i])
		if !live.Owned || live.Finished || r.seen.isPrepared(&pods[i]) || resources.IsHidden(pods[i].Labels, r.seen.Cluster.Name) {
			continue
		}
		if seen := r.seen.podOf(live.Name); seen == nil || seen.UID != live.UID || live.Ready && !seen.Ready {
			return fmt.Errorf("pod %s was created or has become ready since it was observed: %w", live.Name, reconcile.ErrStale)
		}
	}
	return nil
}

// requireEnded makes sure that no member runs in a pod of this name, also not in one that is about to
// be deleted. A pod that has only lost its labels gets them back, so that the next observation shows
// its member.
func requireEnded(ctx context.Context, r *run, name string) error {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	if live := observedPod(r.seen.Cluster, pod); live.Owned && !live.Finished {
		if err := restorePodLabels(ctx, r, pod); err != nil {
			return err
		}
		return fmt.Errorf("pod %s has not ended: %w", name, reconcile.ErrStale)
	}
	return nil
}

// requireNoPod makes sure that a pod that was not observed does not exist. A pod that has only lost
// its labels gets them back.
func requireNoPod(ctx context.Context, r *run, name string) error {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	live := observedPod(r.seen.Cluster, pod)
	if live.Owned && !live.Terminating && !live.Finished {
		if r.seen.isPrepared(pod) && r.seen.showsPrepared(string(pod.UID)) {
			return nil // no member has used it
		}
		if err := restorePodLabels(ctx, r, pod); err != nil {
			return err
		}
		return fmt.Errorf("pod %s exists: %w", name, reconcile.ErrStale)
	}
	return nil
}

// requireNoPVC makes sure that the data was deleted with the pod.
func requireNoPVC(ctx context.Context, r *run, name string) error {
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if pvc.DeletionTimestamp == nil && resources.Owns(r.seen.Cluster, pvc) && !r.seen.isPrepared(pvc) {
		if err := requireNotKept(ctx, r, pvc); err != nil {
			return err
		}
		if err := restorePVCLabels(ctx, r, pvc); err != nil {
			return err
		}
		return fmt.Errorf("PVC %s exists: %w", name, reconcile.ErrStale)
	}
	return nil
}

// requireOtherVotersServe makes sure that the voters that were seen to serve still do, and
// stay, before a voter that could also stay is removed or restarted. The list has left voters afterwards.
func requireOtherVotersServe(ctx context.Context, r *run, except string, left int) error {
	if err := requireOtherVotersStay(ctx, r, except, left); err != nil {
		return err
	}
	return requireOtherVotersCommit(ctx, r, except)
}

// requireOtherVotersCommit has a write committed, and then applied by each of the other voters
// that were seen to serve. In a cluster at rest, nothing else shows that the disk of a voter
// takes no writes.
func requireOtherVotersCommit(ctx context.Context, r *run, except string) error {
	others := r.seen.to()
	for _, e := range r.seen.voters.Endpoints {
		if e.Name != except && r.seen.isHealthy(e.Name) {
			others.Endpoints = append(others.Endpoints, e)
		}
	}
	if len(others.Endpoints) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	// While etcd has found its data to be corrupt it commits writes and applies none.
	if err := r.Etcd.ProveWrite(ctx, r.seen.voters); err != nil && !errors.Is(err, etcd.ErrCorrupt) {
		return fmt.Errorf("commit a write before a member goes: %w", err)
	}
	failed := r.Etcd.FailedReads(ctx, others)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		return fmt.Errorf("voter %s does not serve (%w): %w", name, failed[name], reconcile.ErrStale)
	}
	return nil
}

// errNotApplied: a learner did not apply a write that was committed just now.
var errNotApplied = errors.New("it has not applied a write that was committed just now: its disk may not take writes")

// requireLearnerApplies has a write committed, and makes sure that a learner applies entries of
// the log. etcd promotes a learner whose disk hangs if it had caught up before.
func requireLearnerApplies(ctx context.Context, r *run, a planner.PromoteMember) error {
	i := slices.IndexFunc(r.seen.Etcd.Members, func(m planner.Member) bool { return m.ID == a.ID })
	e, found := r.seen.endpoint(a.Name)
	if i < 0 || !found {
		return fmt.Errorf("learner %s was not seen: %w", a.Name, reconcile.ErrStale)
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := r.Etcd.ProveWrite(ctx, r.seen.voters); err != nil && !errors.Is(err, etcd.ErrCorrupt) {
		return fmt.Errorf("commit a write before a learner votes: %w", err)
	}
	// The leader tells a learner of a commit right after the commit.
	const looks = 5
	for range looks {
		now := r.Etcd.Statuses(ctx, r.seen.to(e))[a.Name]
		if now.Err != nil {
			return fmt.Errorf("learner %s: %w", a.Name, now.Err)
		}
		if now.Health.RaftApplied > r.seen.Etcd.Members[i].RaftApplied {
			return nil
		}
	}
	return fmt.Errorf("learner %s: %w", a.Name, errNotApplied)
}

// requirePodStays makes sure that the pod of a member is not about to be deleted, and that its
// container is not about to restart.
func requirePodStays(ctx context.Context, r *run, name string) (planner.Pod, error) {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return planner.Pod{}, fmt.Errorf("pod %s no longer exists: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return planner.Pod{}, fmt.Errorf("read pod %s: %w", name, err)
	}
	live := observedPod(r.seen.Cluster, pod)
	if !live.Owned || live.Terminating || live.Finished {
		return planner.Pod{}, fmt.Errorf("pod %s is being deleted or has ended: %w", name, reconcile.ErrStale)
	}
	if live.Restarting {
		return planner.Pod{}, fmt.Errorf("pod %s restarts: %w", name, reconcile.ErrStale)
	}
	return live, nil
}

// requirePVC makes sure that the volume of a member outlives its pod.
func requirePVC(ctx context.Context, r *run, name string) error {
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return fmt.Errorf("PVC %s no longer exists: %w", name, reconcile.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("read PVC %s: %w", name, err)
	}
	if pvc.DeletionTimestamp != nil || !resources.Owns(r.seen.Cluster, pvc) {
		return fmt.Errorf("PVC %s is being deleted or has another owner: %w", name, reconcile.ErrStale)
	}
	return requireNotDecommissioned(ctx, r, pvc)
}

// requireSameStatus makes sure that the status is the last status that was written: it
// proves which members vote.
func requireSameStatus(ctx context.Context, r *run) error {
	live, err := readSameCluster(ctx, r)
	if err != nil {
		return err
	}
	if live.ResourceVersion != r.seen.Cluster.ResourceVersion {
		return fmt.Errorf("the status of the EtcdCluster has changed since it was observed: %w", reconcile.ErrStale)
	}
	return nil
}

// requireRecoveryMemberDeleted makes sure that the recovery member has neither a pod nor a
// PVC. What has only lost its labels gets them back, so that the next observation shows it.
func requireRecoveryMemberDeleted(ctx context.Context, r *run, name string) error {
	pod, err := r.Objects.GetPod(ctx, r.seen.Cluster.Namespace, name)
	if err == nil {
		return cmp.Or(restorePodLabels(ctx, r, pod), errStillExists("pod", name, nil))
	}
	if !isNotFound(err) {
		return errStillExists("pod", name, err)
	}
	pvc, err := r.Objects.GetPVC(ctx, r.seen.Cluster.Namespace, name)
	if err == nil {
		return cmp.Or(restorePVCLabels(ctx, r, pvc), errStillExists("PVC", name, nil))
	}
	if !isNotFound(err) {
		return errStillExists("PVC", name, err)
	}
	return nil
}

func errStillExists(kind, name string, err error) error {
	if err != nil {
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return fmt.Errorf("%s %s exists: %w", kind, name, reconcile.ErrStale)
}

// requireSameSpec makes sure that the spec still is the observed spec, before an action
// that is only right for this spec. A cache that lags behind must not undo a later request
// of a user.
func requireSameSpec(ctx context.Context, r *run) error {
	live, err := readSameCluster(ctx, r)
	if err != nil {
		return err
	}
	// An API that was brought back counts generations again from what it was brought back to.
	if live.Generation != r.seen.Cluster.Generation || !equality.Semantic.DeepEqual(live.Spec, r.seen.Cluster.Spec) {
		return fmt.Errorf("the spec of the EtcdCluster has changed since it was observed: %w", reconcile.ErrStale)
	}
	for _, request := range []string{resources.AnnotationRestart, resources.AnnotationRotateCA, resources.AnnotationDropOldCA} {
		if live.Annotations[request] != r.seen.Cluster.Annotations[request] {
			return fmt.Errorf("annotation %s of the EtcdCluster has changed since it was observed: %w", request, reconcile.ErrStale)
		}
	}
	return nil
}
