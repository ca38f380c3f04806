// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// isSourceless is true for a recovery that waits, and reports that, because the last member was
// lost while it was read. No data of a voter is left, and a learner is no source. Only a person
// can know that the recovery member holds nothing either. The same holds if no other member responds, though a volume of
// one remains: the recovery member may hold a newer copy, so only a person chooses that volume. It also holds if the source restarted
// without a quorum: it never responds again, and without a volume nothing else can read its data.
func (c *Checks) isSourceless(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) bool {
	r, b := cluster.Status.Recovery, cluster.Status.BlockedBy
	if !r.IsInProgress() || r.Phase != v1beta2.RecoveryPhaseFilling || r.Trigger == v1beta2.RecoveryTriggerRestore || b == nil {
		return false
	}
	switch planner.Reason(b.Reason) {
	case planner.ReasonSourceLost:
		return !l.VoterRemains() || !c.respondsAny(l)
	case planner.ReasonWaitingForRecoveryMember:
		return c.isUnresponsive(r, l) && !c.w.HasReadableVolume()
	default:
		return false
	}
}

// respondsAny is true if a member of an etcd responds.
func (c *Checks) respondsAny(l *simetcd.Lineage) bool {
	return slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool { return p.Dir.Lineage == l && p.Serves })
}

// isUnresponsive is true for a recovery whose source runs and never responds, if no member of its etcd that
// responds has as much, or a person has chosen the source.
func (c *Checks) isUnresponsive(r *v1beta2.RecoveryStatus, l *simetcd.Lineage) bool {
	runs := false
	for _, p := range c.w.Etcd.Processes {
		if p.Dir.Lineage != l {
			continue
		}
		takesOver := r.Member == "" && int64(c.w.Etcd.Health(p).RaftIndex) >= r.Source.RaftIndex
		if p.Serves && (takesOver || p.Run.Name() == r.Source.Member) {
			return false
		}
		runs = runs || p.Run.Name() == r.Source.Member
	}
	return runs
}

// giveUpRecoveryMember ends such a recovery, as the status tells a user to do: the copy on a PVC goes with the PVC.
func (c *Checks) giveUpRecoveryMember(recoveryMember, remediation string) string {
	if pvc, found := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, recoveryMember); found && strings.Contains(remediation, "delete PVC "+recoveryMember) {
		_ = c.w.Store.DeleteObject(kubernetes.KindPVC, recoveryMember, metav1.Preconditions{UID: &pvc.UID})
	} else if pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, recoveryMember); found {
		_ = c.w.Store.DeleteObject(kubernetes.KindPod, recoveryMember, metav1.Preconditions{UID: &pod.UID})
	}
	return "a recovery was ended"
}

// askedToRecover is what is waited for after a person has asked for a recovery.
const askedToRecover = "a recovery was requested"

// goalRecovered returns what a cluster that has lost its quorum still waits for if it
// can go on from a member that responds.
func (c *Checks) goalRecovered(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	if c.isSourceless(cluster, l) {
		return c.giveUpRecoveryMember(cluster.Status.Recovery.RecoveryMember, cluster.Status.BlockedBy.Unblock)
	}
	if cluster.Status.Recovery.IsInProgress() {
		return fmt.Sprintf("a recovery is under way: %s, blocked by %+v", cluster.Status.Recovery.Phase, cluster.Status.BlockedBy)
	}
	survivors, gone, voters := 0, 0, 0
	for i := range cluster.Status.MemberStatuses {
		m := &cluster.Status.MemberStatuses[i]
		// A status of an API that was brought back calls a member a learner that votes by its own list.
		if m.Role != v1beta2.MemberRoleLearner && m.Role != v1beta2.MemberRolePending || c.votesByItself(m.Name) {
			voters++
			if m.Pod == "" && m.Claim == "" {
				gone++
			}
		}
	}
	for _, p := range c.w.Etcd.Processes {
		pod, found := p.Run.Pod()
		if p.Dir.Lineage == l && p.Serves && found && pod.DeletionTimestamp == nil && pod.Labels[resources.LabelApp] != "" {
			survivors++
		}
	}
	switch {
	case survivors == 0 && cluster.Status.BlockedBy != nil && cluster.Status.BlockedBy.Reason == string(planner.ReasonRestoreEnded):
		// It was done once for this loss, and the status asks a person for the next one.
		c.w.AskRestore(fmt.Sprintf("asked-%d", len(c.w.Restores)), cluster.Status.LastBackup.Name)
		return "another restore was requested"
	case survivors == 0 && c.w.Plan.Automatic && *cluster.Spec.Replicas > 0 && cluster.Status.LastBackup != nil && c.w.IsNothingLeft():
		return "it does not restore its last backup by itself"
	case survivors == 0 && *cluster.Spec.Replicas != 0 && c.w.HasReadableVolume():
		return c.goalRecoveredFromVolume(cluster)
	case survivors == 0 || *cluster.Spec.Replicas == 0:
		return ""
	case c.w.Plan.Recovers:
		c.w.RequestRecovery()
		return askedToRecover
	case c.w.Plan.Automatic && voters-gone < voters/2+1 && !c.mayHaveBeenPromoted(cluster) && !c.needsPerson(cluster, l) && !c.losesMore(cluster, l):
		return "it does not recover by itself"
	case c.w.Plan.Automatic && c.losesMore(cluster, l) && !c.isStalled():
		return "the status does not ask a person to accept the loss"
	case (c.w.Plan.Automatic || c.needsPerson(cluster, l)) && c.isStalled():
		c.w.RequestRecovery() // as the status tells a person to do
		return askedToRecover
	default:
		return ""
	}
}

// losesMore is true if every member that responds has lost more than the source of an abandoned recovery, and that
// source has its pod or PVC. Only a person accepts the loss.
func (c *Checks) losesMore(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) bool {
	r := cluster.Status.Recovery
	if r == nil || r.Phase != v1beta2.RecoveryPhaseAbandoned || r.Trigger == v1beta2.RecoveryTriggerRestore {
		return false
	}
	left := slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		return m.Name == r.Source.Member && (m.Pod != "" || m.Claim != "")
	})
	return left && !slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool {
		return p.Dir.Lineage == l && p.Serves && int64(c.w.Etcd.Health(p).RaftIndex) >= r.Source.RaftIndex
	})
}

// goalRecoveredFromVolume is goalRecovered if no member responds, and a voter has its PVC.
func (c *Checks) goalRecoveredFromVolume(cluster *v1beta2.EtcdCluster) string {
	left := 0
	for i := range cluster.Status.MemberStatuses {
		if m := &cluster.Status.MemberStatuses[i]; m.Pod != "" || m.Claim != "" {
			left++
		}
	}
	switch {
	case c.w.Plan.Recovers:
		c.w.RequestRecovery()
		return askedToRecover
	case c.w.Plan.Automatic && left == 1:
		return "it does not recover from the only volume by itself"
	default:
		return ""
	}
}

// mayHaveBeenPromoted is true if a status leaves open which members vote: a member that
// exists and does not respond was a learner, or had no name yet and votes from the beginning.
// A member without a name may also have been promoted if its pod is labelled a voter, as pods are
// that are created again without a quorum.
func (c *Checks) mayHaveBeenPromoted(cluster *v1beta2.EtcdCluster) bool {
	return slices.ContainsFunc(cluster.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool {
		pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, m.Pod)
		labelled := found && pod.Labels[resources.LabelRole] == resources.RoleVoter
		if m.Role == v1beta2.MemberRolePending && c.votesByItself(m.Name) {
			return true
		}
		open := m.Role == v1beta2.MemberRoleLearner ||
			m.Role == v1beta2.MemberRolePending && (labelled || c.w.Plan.Line()[0] == schedules.VersionLines[1][0])
		return open && (m.Pod != "" || m.Claim != "") && !diagnosis.HasResponded(&m)
	})
}

// votesByItself is true for a member whose own list says that it votes.
func (c *Checks) votesByItself(name string) bool {
	return slices.ContainsFunc(c.w.Etcd.Processes, func(p *simetcd.Process) bool {
		return p.Run.Name() == name && p.Members.IsVoter(p.Dir.Id)
	})
}

func (c *Checks) goalLost(cluster *v1beta2.EtcdCluster, l *simetcd.Lineage) string {
	if *cluster.Spec.Replicas == 0 {
		return ""
	}
	if wrong := c.goalRecovered(cluster, l); wrong != "" {
		return wrong
	}
	if !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) ||
		!kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse) || cluster.Status.Phase != v1beta2.ClusterPhaseFailed {
		return fmt.Sprintf("the quorum is lost and the status says %s, %+v", cluster.Status.Phase, cluster.Status.Conditions)
	}
	if cluster.Status.BlockedBy == nil {
		return "the quorum is lost and the status does not say what it waits for"
	}
	return ""
}
