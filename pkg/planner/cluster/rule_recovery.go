// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// recoveryRechecks says when to look again.
var recoveryRechecks = map[recovery.Recheck]time.Duration{
	recovery.OnEvent:    recheckWaiting,
	recovery.OnResponse: recheckQuorum,
	recovery.AtOnce:     recheckNow,
	recovery.AtRest:     recheckSteady,
}

// ruleRecovery continues the data of a cluster in new members, from a survivor of a lost
// quorum or from a backup. Package recovery decides how; here are what it decides from, and the
// actions of each of its steps.
func ruleRecovery(o *Observed) (Plan, bool) {
	if !recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery).IsInProgress() && !recoversAutomatically(o.Cluster) {
		return Plan{}, false // nothing to gather the facts for
	}
	d, decides := recovery.Decide(recoveryInput(o))
	if !decides {
		return Plan{}, false
	}
	plan := Plan{Actions: recoveryActions(o, d.Step), RequeueAfter: recoveryRechecks[d.Recheck]}
	if w := d.Wait; w != nil {
		plan.Wait = &Wait{Reason: Reason(w.Reason), Message: w.Message, Remedy: w.Remedy}
	}
	return plan, true
}

// RecoveryRestore returns the name and the UID of the EtcdRestore that has asked for the recovery under way; empty if there
// is none.
func RecoveryRestore(o *Observed) (name, uid string) {
	r := recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery)
	if !r.IsInProgress() || r.Trigger != v1beta2.RecoveryTriggerRestore {
		return "", ""
	}
	return r.Source.Restore, r.ID
}

// LossRestoreName returns the name of the EtcdRestore that is created for the loss of all members;
// empty unless they are lost and the cluster may recover without a request.
func LossRestoreName(o *Observed) string {
	if !recoversAutomatically(o.Cluster) || !isPermanentlyLost(o) {
		return ""
	}
	if in := recoveryInput(o); len(in.Facts.Remains()) == 0 {
		return in.LossRestoreName()
	}
	return ""
}

// recoveryInput is what of the observation decides about a recovery.
func recoveryInput(o *Observed) *recovery.Input {
	in := &recovery.Input{
		Now: o.Now, NewName: o.NewName,
		Desired: recovery.Desired{
			Cluster: o.Cluster.Name, Size: desiredSize(o.Cluster), Automatic: recoversUnasked(o), Persistent: isPersistent(o.Cluster),
			Version: resources.Version(o.Cluster),
		},
		Recorded: o.Record.Recovery, Reported: reportedRecovery(o), Begun: o.Record.Recoveries,
		RecordedID: o.Record.ClusterID, ReplacedID: replacedID(o),
		Bootstrapped: isBootstrapped(o), LostSince: permanentLossSince(o), LastBackup: o.Cluster.Status.LastBackup, LossRestore: o.LossRestore,
		Repeats:      RepeatsRestore(o, recovery.Current(o.Record.Recovery, o.Cluster.Status.Recovery)),
		RestoreOver:  o.RecoveryRestoreOver,
		Unconfirmed:  o.RecoveryRestore != nil && o.RecoveryRestore.ReplacesUnconfirmed(),
		LacksBackup:  o.RecoveryRestore != nil && o.RecoveryRestore.LacksPreRestoreBackup(o.Now),
		Stored:       o.RecoveryRestore != nil && o.RecoveryRestore.HasPreRestoreBackup(o.Now) && o.Record.CorruptVoters == 0,
		BackedUp:     backedUp(o),
		Fenced:       o.Fenced,
		Linearizable: o.Etcd.Linearizable, ClusterID: hexID(o.Etcd.ClusterID), Facts: diagnosisInput(o),
		RecoveryMember: recovery.RecoveryMember{
			Pod: recoveryPodInput(o), Hidden: o.RecoveryMember.Hidden, HasPVC: o.RecoveryMember.HasPVC, PVCDeleted: o.RecoveryMember.PVCDeleted, Unfilled: o.RecoveryMember.Unfilled,
			Serves: o.RecoveryMember.Serves, ClusterID: hexID(o.RecoveryMember.ClusterID),
		},
	}
	_, in.QuorumLostFor = diagnosis.QuorumLostFor(&o.Cluster.Status, o.Now)
	if o.Record.ClusterID == unknownClusterID {
		in.RecordedID = ""
	}
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		in.Members = append(in.Members, recovery.Member{ID: hexID(m.ID), Name: m.Name, Version: upgradePathOf(o).recoveryVersion(m)})
	}
	if r := recoveryOfUnknownSource(o); r != nil {
		in.Members = append(in.Members, recovery.Member{Name: r.Source.Member, Version: r.Version})
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned {
			in.Pods = append(in.Pods, recovery.Pod{Name: p.Name, Node: p.Node, Evidence: evidenceOf(p), EndsBy: p.EndsBy, NodeNotReady: p.NodeNotReady, NodeUnread: p.NodeUnread, NodeAbsent: p.NodeAbsent})
		}
	}
	return in
}

// backedUp is the raft index up to which the pre-restore backup of the recovery has the log; 0 if there is none.
func backedUp(o *Observed) int64 {
	if o.RecoveryRestore == nil || o.RecoveryRestore.PreRestoreBackup == nil {
		return 0
	}
	return o.RecoveryRestore.PreRestoreBackup.RaftIndex
}

// reportedRecovery is the recovery in the status. A user may have cancelled it; a restore is cancelled by the deletion of
// its EtcdRestore.
func reportedRecovery(o *Observed) *v1beta2.RecoveryStatus {
	r := o.Cluster.Status.Recovery
	if r == nil || r.ID == "" || r.Trigger == v1beta2.RecoveryTriggerRestore || o.Cluster.Annotations[resources.AnnotationCancelOperation] != r.ID {
		return r
	}
	cancelled := r.DeepCopy()
	cancelled.Cancelled = true
	return cancelled
}

// recoveryPodInput is what of the pod of the recovery member decides; nil if there is none.
func recoveryPodInput(o *Observed) *recovery.RecoveryPod {
	p := o.RecoveryMember.Pod
	if p == nil {
		return nil
	}
	outdated := p.Outdated || declarationOf(o).isStale(p) || lacksImageOfPolicy(o.Now, p, preparedPatience)
	// The declaration from before may have made it unreachable. No client has reached it.
	unreachable := outdated && !o.RecoveryMember.Serves && !o.Etcd.Unasked && !isFresh(o.Now, p)
	return &recovery.RecoveryPod{
		Finished: p.Finished, Terminating: p.Terminating, Running: p.Running && !unreachable, HasRun: p.Running || p.RestartCount > 0, Outdated: outdated,
		Away: isOverdue(o.Cluster, o.Now, p) && p.Node != "", AwayWhy: p.AwayWhy, Waiting: p.Waiting, Made: p.Made, Fills: p.Fills && !o.RecoveryMember.Unfilled, LacksPVC: o.RecoveryMember.LacksPVC,
		Node: p.Node, MountsSource: o.RecoveryMember.MountsSource, EndsBy: p.EndsBy, FailsToFill: o.RecoveryMember.FailsToFill,
	}
}

// recoveryActions are the actions of one step.
func recoveryActions(o *Observed, step recovery.Step) []Action {
	switch s := step.(type) {
	case recovery.Record:
		return []Action{RecordRecovery(s)}
	case recovery.Abandon:
		if s.Recovery.RecoveryMember == "" {
			return []Action{RecordRecovery{Recovery: s.Recovery}}
		}
		return []Action{DeleteRecoveryMember{Name: s.Recovery.RecoveryMember}, RecordRecovery{Recovery: s.Recovery}}
	case recovery.StartAgain:
		return []Action{DeleteRecoveryMember{Name: s.Recovery.RecoveryMember}, RecordRecovery{Recovery: s.Recovery}}
	case recovery.Fill:
		return append(reviveBesideRestore(o, s), CreateRecoveryMember{Recovery: s.Recovery, WithoutSource: s.WithoutSource})
	case recovery.StopSource:
		return []Action{StopSource(s)}
	case recovery.ReviveOldMembers:
		return exceptMember(reviveOldMembers(o), s.Except)
	case recovery.BeginCutover:
		return []Action{VerifyWrite{Of: WriteToRecoveryMember}, RecordRecovery{Recovery: s.Recovery}}
	case recovery.RestartRecoveryMember:
		return []Action{DeletePod{Name: o.RecoveryMember.Pod.Name, UID: o.RecoveryMember.Pod.UID, Why: DeleteUnpublished}}
	case recovery.Fence:
		return []Action{FenceOldMembers{Recovery: s.Recovery}, RecordRecovery{Recovery: s.Next}}
	case recovery.Publish:
		return []Action{PublishRecoveryMember{Name: s.RecoveryMember}}
	case recovery.CleanUp:
		return []Action{VerifyWrite{Of: WriteToCluster}, CleanUpOldPVCs{Recovery: s.Recovery, Kept: s.Kept}, RecordRecovery{Recovery: s.Next}}
	case recovery.RequestRestore:
		return []Action{RequestRestore(s)}
	default:
		return nil // it only waits
	}
}

// exceptMember leaves out what concerns the pod of one member: a recovery reads its PVC.
func exceptMember(actions []Action, name string) []Action {
	return slices.DeleteFunc(actions, func(a Action) bool {
		switch a := a.(type) {
		case CreatePod:
			return a.Name == name
		case DeletePod:
			return a.Name == name
		case RecreatePod:
			return a.Name == name
		case UpgradePod:
			return a.Name == name
		default:
			return false
		}
	})
}

// reviveBesideRestore starts old members of a restore that have stopped: Kubernetes may reject the recovery member.
func reviveBesideRestore(o *Observed, fill recovery.Fill) []Action {
	fenced := fill.Recovery.Phase != v1beta2.RecoveryPhaseFilling && !o.RecoveryMember.Hidden
	if fill.Recovery.Trigger != v1beta2.RecoveryTriggerRestore || fill.OldMembersStay || !isBootstrapped(o) || fenced {
		return nil
	}
	return reviveOldMembers(o)
}

// reviveOldMembers starts old members again while a recovery member does not serve yet. A quorum
// that can come back must come back. A corrected spec may repair the members that it had stopped.
func reviveOldMembers(o *Observed) []Action {
	if recreate, decides := ruleRecreatePods(o); decides {
		return recreate.Actions
	}
	repair, _ := ruleRepair(o)
	return repair.Actions
}
