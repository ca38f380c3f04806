// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeRecoveryPod reads the pod and the PVC of the recovery member of a recovery under way.
func observeRecoveryPod(r *run) error {
	recovery := r.seen.Record.Recovery
	if !recovery.IsInProgress() || recovery.RecoveryMember == "" {
		return nil
	}
	if err := observeFenced(r, recovery); err != nil {
		return err
	}
	pvc, err := r.Cache.PVC(r.key.Namespace, recovery.RecoveryMember)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read PVC %s from the cache: %w", recovery.RecoveryMember, err)
	}
	if err == nil {
		r.seen.observeMark(pvc)
	}
	lost := isNotFound(err)
	owned := err == nil && resources.Owns(r.seen.Cluster, pvc)
	r.seen.RecoveryMember.HasPVC, r.seen.RecoveryMember.PVCDeleted = owned && pvc.DeletionTimestamp == nil, owned && pvc.DeletionTimestamp != nil
	r.seen.RecoveryMember.Unfilled = err == nil && resources.IsUnfilled(pvc)
	r.seen.RecoveryMember.Hidden = owned && resources.IsHidden(pvc.Labels, r.seen.Cluster.Name)
	pod, err := r.Cache.Pod(r.key.Namespace, recovery.RecoveryMember)
	if isNotFound(err) || err == nil && !resources.Owns(r.seen.Cluster, pod) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read pod %s from the cache: %w", recovery.RecoveryMember, err)
	}
	desired := atVersion(r.seen.Cluster, recovery.Version)
	if owned && recovery.Phase != v1beta2.RecoveryPhaseFilling {
		desired = keepMinor(desired, pvc) // as it is created again
	}
	observed := observedPod(desired, pod)
	observed.Outdated = observed.Outdated || isMisplaced(r, r.seen.Cluster, pod)
	observed.OtherInitImage = r.Platform.HasOtherInitImage(pod, r.AgentImage)
	r.seen.RecoveryMember.Pod, r.seen.recoveryPod = &observed, pod
	r.seen.RecoveryMember.LacksPVC = lost && mounts(pod.Spec.Volumes, recovery.RecoveryMember)
	r.seen.RecoveryMember.FailsToFill = resources.FailsToFill(pod)
	r.seen.RecoveryMember.MountsSource = recovery.Source.PVC != "" && mounts(pod.Spec.Volumes, recovery.Source.PVC)
	r.seen.RecoveryMember.Hidden = r.seen.RecoveryMember.Hidden || resources.IsHidden(pod.Labels, r.seen.Cluster.Name)
	return nil
}

// observeFenced finds the PVCs of old members that the fence has taken the label from. No list of the cluster has them, and
// they come back if the recovery is abandoned.
func observeFenced(r *run, recovery *v1beta2.RecoveryStatus) error {
	if recovery.Phase != v1beta2.RecoveryPhaseCutover {
		return nil
	}
	for _, name := range recovery.OldMembers {
		pvc, err := r.Cache.PVC(r.key.Namespace, name)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read PVC %s from the cache: %w", name, err)
		}
		if pvc.Labels[resources.LabelFenced] == r.seen.Cluster.Name && pvc.DeletionTimestamp == nil && resources.Owns(r.seen.Cluster, pvc) {
			r.seen.Fenced = append(r.seen.Fenced, name)
		}
	}
	return nil
}

// observeRecoveryMember looks at the recovery member of a recovery under way. It is not
// behind the Services, so requests to it use the address of its pod, apart from the
// members.
func observeRecoveryMember(ctx context.Context, r *run) error {
	observed, pod, recovery := r.seen.RecoveryMember.Pod, r.seen.recoveryPod, r.seen.Record.Recovery
	if pod == nil {
		return nil
	}
	if recovery.Phase == v1beta2.RecoveryPhaseFilling {
		observed.AwaySince, observed.AwayWhy = away(ctx, r, pod)
	}
	if !observed.Running || pod.Status.PodIP == "" || recovery.Phase == v1beta2.RecoveryPhaseCleaning {
		return nil
	}
	r.seen.recoveryMember = etcd.Target{Endpoints: []etcd.Endpoint{endpointOf(r.seen.Cluster, pod)}, TLS: r.seen.target.TLS, TLSIdentity: r.seen.target.TLSIdentity}
	limited, cancel := context.WithTimeout(ctx, statusTimeout) // the nodes are read from Kubernetes, which may take longer
	defer cancel()
	response := r.Etcd.Statuses(limited, r.seen.recoveryMember)[recovery.RecoveryMember]
	if response.Err != nil {
		r.Waker.Await(r.key, r.seen.recoveryMember, r.seen.recoveryMember.Endpoints[0])
		return nil
	}
	if recovery.ClusterID == "" {
		// The record is about to get the cluster ID from this response, and old members go because of it.
		if err := prove(limited, r.Etcd, r.seen.Cluster, r.seen.recoveryMember, r.seen.recoveryMember.Endpoints[0], response.Health); err != nil {
			klog.FromContext(ctx).Info("The response does not count as that of the recovery member", "member", recovery.RecoveryMember, "err", err)
			return nil
		}
	}
	r.seen.RecoveryMember.Serves = response.Health.Leader != 0 && response.Health.Leader == response.Health.ID
	r.seen.RecoveryMember.ClusterID = response.Health.ClusterID
	r.seen.recoveryMember.ClusterIDs = []uint64{response.Health.ClusterID}
	if r.seen.RecoveryMember.Serves && recovery.Phase == v1beta2.RecoveryPhaseFilling {
		return observeNodes(ctx, r)
	}
	return nil
}

// observeNodes finds out which old members are on nodes that are not ready, before a recovery
// takes their pods away. Such a node may only be cut off.
func observeNodes(ctx context.Context, r *run) error {
	for i := range r.seen.Pods {
		p := &r.seen.Pods[i]
		if !p.Owned || p.Finished || p.Node == "" {
			continue
		}
		node, err := readNode(ctx, r, p.Node)
		switch {
		case apierrors.IsForbidden(err):
			// Another attempt would fail, too. A member that responds shows that its node runs it.
			if !r.seen.responds(p.Name) {
				p.NodeNotReady, p.NodeUnread = true, whyUnread(err)
			}
			continue
		case err != nil:
			return err
		}
		p.NodeNotReady, p.NodeAbsent, p.NodeReadySince = node.notReady, !node.exists, node.readySince
	}
	return nil
}

// observeNodesOfUnresponsive finds out which members are on nodes that are not ready, if the quorum counts as lost
// and these members do not respond. The status says what helps against a lost node. If the loss else counts as permanent,
// these members may serve without the lost members, which may have been removed from etcd after the last status. A node
// that cannot be read proves nothing.
func observeNodesOfUnresponsive(ctx context.Context, r *run) {
	if !planner.HasCertainLoss(&r.seen.Observed) {
		return
	}
	permanent := planner.HasPermanentLoss(&r.seen.Observed)
	for i := range r.seen.Pods {
		p := &r.seen.Pods[i]
		if !p.Owned || p.Finished || p.Node == "" || r.seen.responds(p.Name) {
			continue
		}
		node, err := readNode(ctx, r, p.Node)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot read the node of a member that does not respond, so the loss of the quorum does not count as permanent", "pod", p.Name, "node", p.Node)
		}
		p.NodeNotReady = p.NodeNotReady || node.notReady || err != nil && permanent
		if err != nil && permanent {
			p.NodeUnread = whyUnread(err)
		}
	}
}

// whyUnread says why a node could not be read. Errors but that of a missing right may change at rest.
func whyUnread(err error) string {
	if apierrors.IsForbidden(err) {
		return err.Error() + "; give the controller the right to get nodes"
	}
	return "Kubernetes did not return it at the last attempt"
}

// observeLossRestore reads the EtcdRestore that was created for the loss of all members.
func observeLossRestore(r *run) error {
	name := planner.LossRestoreName(&r.seen.Observed)
	if name == "" {
		return nil
	}
	restore, err := r.Cache.Restore(r.key.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read EtcdRestore %s from the cache: %w", name, err)
	}
	r.seen.LossRestore = &restore.Status
	return nil
}

// observeRecoveryRestore reads the EtcdRestore that has asked for the recovery under way: it says whether what the members
// have accepted since the request is stored.
func observeRecoveryRestore(r *run) error {
	name, uid := planner.RecoveryRestore(&r.seen.Observed)
	if name == "" {
		return nil
	}
	restore, err := r.Cache.Restore(r.key.Namespace, name)
	switch {
	case isNotFound(err), err == nil && string(restore.UID) != uid:
		r.seen.RecoveryRestoreOver = true
	case err != nil:
		return fmt.Errorf("read EtcdRestore %s from the cache: %w", name, err)
	case restore.Status.Phase == v1beta2.RestorePhaseSucceeded, restore.Status.Phase == v1beta2.RestorePhaseFailed:
		r.seen.RecoveryRestoreOver = true
	default:
		r.seen.RecoveryRestore = &restore.Status
	}
	return nil
}

// observeAwaitedRestore reads the EtcdRestore whose data the cluster starts with.
func observeAwaitedRestore(r *run) error {
	name := r.seen.Cluster.Annotations[v1beta2.AnnotationRestore]
	if name == "" {
		return nil
	}
	restore, err := r.Cache.Restore(r.key.Namespace, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read EtcdRestore %s from the cache: %w", name, err)
	}
	r.seen.AwaitedRestore = restore
	return nil
}

// nodeState is what a node says of itself. Kubernetes removes the pods of a node that does not exist.
type nodeState struct {
	exists, notReady bool
	// readySince is when it became ready; zero if it is not.
	readySince time.Time
}

func readNode(ctx context.Context, r *run, name string) (nodeState, error) {
	node, err := r.Objects.GetNode(ctx, name)
	if isNotFound(err) {
		return nodeState{}, nil
	}
	if err != nil {
		return nodeState{}, fmt.Errorf("read node %s: %w", name, err)
	}
	state := nodeState{exists: true}
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if state.notReady = c.Status != corev1.ConditionTrue; !state.notReady {
			state.readySince = c.LastTransitionTime.Time
		}
	}
	return state, nil
}
