// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// diagnoseQuorumLoss diagnoses a quorum that could not be read.
func diagnoseQuorumLoss(o *Observed) diagnosis.Loss { return diagnosisInput(o).QuorumLoss() }

// diagnosisInput returns what package diagnosis needs to know of a cluster whose member list could
// not be read.
func diagnosisInput(o *Observed) *diagnosis.Cluster {
	c := &diagnosis.Cluster{
		HasLearners: upgradePathOf(o).knowsLearners(), UnreadFor: unreadFor(o.Cluster.Status.Conditions, o.Now), ReadError: o.Etcd.Err, Denied: o.Etcd.Denied, ListTooLarge: o.Etcd.ListTooLarge, MayHaveUnmanaged: o.Cluster.MayHaveOldMembers(),
		Options: diagnosis.Options{Cluster: o.Cluster.Name, Automatic: recoversUnasked(o) && !o.Cluster.Spec.Paused, Grace: recovery.Grace},
	}
	c.DataDiffers = findCorrupt(o.Etcd.Members) != nil
	c.TakenBack = awaitsConfirmation(o.PVCs)
	if b := o.Cluster.Status.LastBackup; resources.Restorable(b, true) == nil {
		c.Options.LastBackup, c.Options.Encrypted = b.Name, resources.Restorable(b, false) != nil
	}
	if r := recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery); r.IsInProgress() {
		c.RecoveryMember, c.Cutover = r.RecoveryMember, r.IsPlannedCutover() && hasRecoveryPod(o, r)
		if r.Source.PVC != "" && r.RecoveryMember != "" {
			c.StoppedSource = r.Source.Member
		}
	}
	for i := range o.Etcd.Members {
		c.Members = append(c.Members, diagnosisMember(upgradePathOf(o), &o.Etcd.Members[i]))
	}
	if r := recoveryOfUnknownSource(o); r != nil {
		c.Members = append(c.Members, diagnosis.Member{Name: r.Source.Member, Started: true, Limitation: resources.RevisionGoesBack(r.Version)})
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned {
			c.Pods = append(c.Pods, diagnosis.Pod{
				Name: p.Name, Node: p.Node, Evidence: evidenceOf(p), Running: p.Running, RunningFor: o.Now.Sub(p.Started), Ready: p.Ready, NodeNotReady: p.NodeNotReady, NodeUnread: p.NodeUnread,
				Age: o.Now.Sub(p.Made), NodeReadyFor: nodeReadyFor(o.Now, p), Failures: p.RestartCount, Overdue: p.Terminating && recovery.IsEndOverdue(o.Now, p.EndsBy),
				LabelledVoter: p.Role == PodVoter || p.Role == PodDraining, Waiting: p.Waiting,
			})
		}
	}
	for i := range o.PVCs {
		if pvc := &o.PVCs[i]; pvc.Owned {
			c.PVCs = append(c.PVCs, diagnosis.PVC{Name: pvc.Name, Terminating: pvc.Terminating})
		}
	}
	c.Options.Automatic = c.Options.Automatic && !recovery.NeedsRequest(o.Record.Recovery, replacedID(o), c)
	return c
}

// nodeReadyFor is for how long the node of a pod has been ready; 0 if that is not known. The clock of the node may be ahead a
// little.
func nodeReadyFor(now time.Time, p *Pod) time.Duration {
	if p.NodeReadySince.IsZero() {
		return 0
	}
	return max(now.Sub(p.NodeReadySince).Abs(), 1)
}

// replacedID is the cluster ID of the members that a recovery would replace. A record that was lost meanwhile does not
// name it. The recovery under way does, so that its next attempt can go back to these members.
func replacedID(o *Observed) string {
	if o.Record.ClusterID != unknownClusterID {
		return o.Record.ClusterID
	}
	if r := o.Record.Recovery; o.Etcd.ClusterID == 0 && r.IsInProgress() && r.OldClusterID != "" {
		return r.OldClusterID
	}
	return knownClusterID(o.Etcd.ClusterID)
}

// hasRecoveryPod is true while the pod of the recovery member exists, hidden from clients or published.
func hasRecoveryPod(o *Observed, r *v1beta2.RecoveryStatus) bool {
	hidden := o.RecoveryMember.Pod
	return hidden != nil && !hidden.Finished && !hidden.Terminating || !isGone(podByName(o.Pods, r.RecoveryMember))
}

// recoversUnasked is recoversAutomatically for a cluster whose members are known: of those that were taken back,
// others may come back later, with newer data.
func recoversUnasked(o *Observed) bool {
	return recoversAutomatically(o.Cluster) && !awaitsConfirmation(o.PVCs)
}

// recoveryOfUnknownSource returns the recorded recovery that fills its recovery member from a member that the
// last status does not name and that does not respond; nil if there is none. The status is of an earlier
// time, and the record shows that this member is one.
func recoveryOfUnknownSource(o *Observed) *v1beta2.RecoveryStatus {
	r := o.Record.Recovery
	switch {
	case o.Etcd.Linearizable, r == nil, r.RecoveryMember == "", r.Source.Member == "", memberByName(o.Etcd.Members, r.Source.Member) != nil:
		return nil
	case r.Phase != v1beta2.RecoveryPhaseFilling && r.Phase != v1beta2.RecoveryPhasePending:
		return nil // the old members are being decommissioned
	default:
		return r
	}
}

func diagnosisMember(u upgradePath, m *Member) diagnosis.Member {
	facts := diagnosis.Member{
		Name: m.Name, Unmanaged: m.Unmanaged, Started: m.Started, Learner: m.Learner, Response: responseOf(m),
		RaftIndex: signed(m.RaftIndex), DBSize: m.DBSize, Limitation: resources.RevisionGoesBack(u.recoveryVersion(m)),
	}
	if m.Unmanaged {
		facts.RaftIndex = 0 // no recovery continues from it
	}
	if m.View != nil {
		facts.View = &diagnosis.View{Learner: m.View.Learner}
		for i := range m.View.Members {
			listed := &m.View.Members[i]
			facts.View.Members = append(facts.View.Members, diagnosis.ListedMember{Name: listed.Name, Learner: listed.Learner, Unmanaged: listed.Unmanaged})
		}
	}
	return facts
}

// signed is an index as the API holds it.
func signed(index uint64) int64 { return int64(min(index, math.MaxInt64)) }
