// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// desiredSize is the desired number of voters.
func desiredSize(cluster *v1beta2.EtcdCluster) int {
	if cluster.Spec.Replicas == nil {
		return 0
	}
	return int(*cluster.Spec.Replicas)
}

// isPersistent is true if each member keeps its data on a PVC.
func isPersistent(cluster *v1beta2.EtcdCluster) bool {
	return cluster.Spec.Pod != nil && cluster.Spec.Pod.PersistentVolumeClaimSpec != nil
}

// recoversAutomatically is true if the spec allows it, and no member may exist that another
// program runs: nothing proves that such a member is lost.
func recoversAutomatically(cluster *v1beta2.EtcdCluster) bool {
	policy := cluster.Spec.Recovery
	return policy != nil && policy.QuorumLoss == v1beta2.RecoveryAutomatic && !cluster.MayHaveOldMembers()
}

// takesOver is true for a cluster whose members join a running etcd.
func takesOver(cluster *v1beta2.EtcdCluster) bool { return cluster.Existing() != nil }

// removesOldMembers is true once the removal of the old members is requested.
func removesOldMembers(cluster *v1beta2.EtcdCluster) bool {
	return takesOver(cluster) && cluster.Existing().OldMembers == v1beta2.OldMembersRemove
}

// replacesLostMembers is true if the spec lets the controller replace members that are away.
func replacesLostMembers(cluster *v1beta2.EtcdCluster) bool {
	r := cluster.Spec.Recovery
	return r == nil || r.MemberLoss != v1beta2.RecoveryManual
}

// awaitsRestore is true for a cluster that was made to be filled from a backup. It must
// never start empty.
func awaitsRestore(cluster *v1beta2.EtcdCluster) bool {
	return cluster.Annotations[v1beta2.AnnotationRestore] != ""
}

// hasFinalizer is true if the finalizer is on the cluster.
func hasFinalizer(cluster *v1beta2.EtcdCluster) bool {
	return slices.Contains(cluster.Finalizers, resources.Finalizer)
}

// isReplacementRequested is true for a voter that a user has asked to replace. The rules about the
// membership do it, one voter at a time: scale-up adds another member, and scale-down removes
// the named member when the other votes.
func isReplacementRequested(cluster *v1beta2.EtcdCluster, m *Member) bool {
	op := cluster.Status.Operation
	return !m.Learner && !op.IsOver() && op.Type == v1beta2.OperationReplace && slices.Contains(op.Members, m.Name) &&
		cluster.Annotations[resources.AnnotationCancelOperation] != op.ID
}

// hasOtherImage is true for a pod that was made for another version, or from another
// repository.
func hasOtherImage(cluster *v1beta2.EtcdCluster, p *Pod) bool {
	target := parse(cluster.Spec.Version)
	return target != nil && (p.Outdated || !isSameVersion(p.Version, target))
}

// declaration is what decides whether a pod was created from what is declared now.
type declaration struct {
	cluster *v1beta2.EtcdCluster
	// template is the hash of what is declared about pods.
	template string
	// certificates say which CAs a pod must trust.
	certificates *certificates.Observed
}

func declarationOf(o *Observed) declaration {
	return declaration{cluster: o.Cluster, template: o.Template, certificates: certificateInput(o)}
}

// isOther is true for a pod that was created from an earlier declaration.
func (d declaration) isOther(p *Pod) bool {
	return p.Template != "" && d.template != "" && p.Template != d.template
}

// isStale is true for a pod that was created from an earlier declaration, before the last
// request to restart, or while members had to trust other CAs.
func (d declaration) isStale(p *Pod) bool {
	request := resources.RestartRequest(d.cluster)
	return d.isOther(p) || (request != "" && p.Restart != request) || d.certificates.Distrusts(p.Trust)
}
