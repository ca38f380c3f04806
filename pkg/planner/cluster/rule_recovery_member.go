// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// maxRecoveryMemberPause is how long a restore rests at most between two recovery members.
const maxRecoveryMemberPause = 10 * time.Minute

// fillRecoveryMember creates the recovery member, whose agent fills it, and waits until it serves.
func fillRecoveryMember(o *Observed, r *v1beta2.RecoveryStatus) (Plan, bool) {
	restores := r.Trigger == v1beta2.RecoveryTriggerRestore
	switch {
	case r.Cancelled:
		return abandon(o, r, "it was cancelled"), true
	case o.size() == 0:
		return abandon(o, r, "the cluster is declared to have no members"), true
	case !restores && o.Etcd.Linearizable:
		return abandon(o, r, "a quorum of the members responds again"), true
	}
	if o.recoveryMemberPauses(r) {
		return wait(recheckWaiting, ReasonWaitingForRecoveryMember,
			"recovery member "+r.RecoveryMember+" has ended"+waitingFor(o.RecoveryMember.Pod)+"; the next attempt starts after a delay",
			"Remove the cause. A change of the spec starts the next attempt at once."), !o.bootstrapped()
	}
	if why := o.recoveryMemberUnfit(r); why != "" {
		next := r.DeepCopy()
		next.Phase, next.Message = v1beta2.RecoveryPhasePending, why
		return Plan{Actions: []Action{DeleteRecoveryMember{Name: r.RecoveryMember}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}, true
	}
	switch {
	case o.RecoveryMember.Pod == nil:
		return Plan{Actions: []Action{CreateRecoveryMember{Recovery: *r}}, RequeueAfter: recheckWaiting}, true
	case o.RecoveryMember.Serves && hexID(o.RecoveryMember.ClusterID) != r.OldClusterID:
		if unresponsive := o.unresponsivePods(); unresponsive != "" {
			return wait(recheckWaiting, v1beta2.ReasonOldMemberMayRun,
				"recovery member "+r.RecoveryMember+" is ready, and the old members are not replaced yet: "+unresponsive,
				"Bring the node back. "+diagnosis.ConfirmNodeOff), true
		}
		if unseen := o.facts().UnseenQuorum(); !restores && unseen != "" {
			return wait(recheckWaiting, v1beta2.ReasonOldMemberMayRun,
				"recovery member "+r.RecoveryMember+" is ready, and the old members are not replaced yet: "+unseen,
				"Bring these members back into reach. If they cannot come back, delete their pods: what they have acknowledged meanwhile is lost then."), true
		}
		next := r.DeepCopy()
		next.Phase, next.ClusterID, next.Message = v1beta2.RecoveryPhaseCutover, hexID(o.RecoveryMember.ClusterID), ""
		next.OldMembers = o.oldMembers(r)
		return Plan{Actions: []Action{VerifyWrite{Of: WriteToRecoveryMember}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}, true
	case restores && o.bootstrapped():
		return Plan{}, false // the cluster lives on meanwhile
	}
	plan := o.waitForRecoveryMember(r)
	if back, spoke := ruleRecreatePods(o); spoke {
		plan.Actions = back.Actions // a quorum that can come back must come back
	} else if repair, spoke := ruleRepair(o); spoke {
		plan.Actions = repair.Actions // and a corrected spec may repair the members that it had stopped
	}
	return plan, true
}

// waitForRecoveryMember says what keeps the recovery member from serving. If its source no longer
// exists, it may have been filled before, and then holds the only copy. Only a person may
// discard that copy, by deleting its pod.
func (o *Observed) waitForRecoveryMember(r *v1beta2.RecoveryStatus) Plan {
	message := "recovery member " + r.RecoveryMember + " does not serve yet" + waitingFor(o.RecoveryMember.Pod)
	if o.refills(r) || o.source("") != nil {
		return wait(recheckQuorum, ReasonWaitingForRecoveryMember, message, noActionNeeded)
	}
	if o.mayComeBack(r.Source.Member) {
		return wait(recheckQuorum, ReasonWaitingForRecoveryMember, message+"; member "+r.Source.Member+", its source, does not respond",
			"No action needed if that member comes back. "+abandonRemedy(r))
	}
	return wait(recheckQuorum, ReasonSourceLost,
		message+"; member "+r.Source.Member+", its source, no longer exists, and no other member responds",
		"No action needed if another member responds again: then the recovery starts again from that member. "+abandonRemedy(r))
}

// abandonRemedy says how a person ends a recovery that cannot continue.
func abandonRemedy(r *v1beta2.RecoveryStatus) string {
	return "To abandon the recovery, delete pod " + r.RecoveryMember + ": pods and PVCs of the old members are kept, and an EtcdRestore can restore a backup."
}

// recoveryMemberPauses is true while a recovery member that Kubernetes has ended is not created
// again, for example one that used too much of the disk of its node. Each attempt fetches
// the whole backup, and what has ended one attempt may end the next. The second attempt
// starts at once. The longer the recovery takes, the longer later attempts wait.
// A change of the spec may help, so it starts the next attempt at once.
func (o *Observed) recoveryMemberPauses(r *v1beta2.RecoveryStatus) bool {
	p := o.RecoveryMember.Pod
	if r.Trigger != v1beta2.RecoveryTriggerRestore || p == nil || !p.Finished || p.Terminating || p.Outdated || o.stale(p) {
		return false
	}
	pause := min(p.Made.Sub(r.RequestedAt.Time)/2, maxRecoveryMemberPause)
	// A clock that was set back does not make it longer.
	age := o.Now.Sub(p.Made)
	return age >= 0 && age < pause
}

// recoveryMemberUnfit says why the recovery member must be created again, from the present source;
// empty if it need not.
func (o *Observed) recoveryMemberUnfit(r *v1beta2.RecoveryStatus) string {
	if p := o.RecoveryMember.Pod; p.gone() && p != nil {
		return "the pod of recovery member " + r.RecoveryMember + " was deleted" + waitingFor(p)
	}
	if p := o.RecoveryMember.Pod; o.refills(r) && !o.RecoveryMember.Serves && o.overdue(p) && p.Node != "" {
		return "recovery member " + r.RecoveryMember + " is away: " + p.AwayWhy
	}
	if o.RecoveryMember.Pod == nil && o.pvc(r.RecoveryMember) == nil && !o.refills(r) {
		return "member " + r.Source.Member + " no longer responds, and no data was copied from it yet"
	}
	if o.recoveryMemberOutdated() && o.refills(r) {
		return "recovery member " + r.RecoveryMember + " does not run, and the spec has changed since its pod was created"
	}
	best := o.source("")
	if r.Trigger == v1beta2.RecoveryTriggerRestore || best == nil {
		return ""
	}
	source := o.source(r.Source.Member)
	switch {
	case source != nil && signed(source.RaftIndex) > r.Source.RaftIndex:
		return "member " + source.Name + " has accepted writes meanwhile"
	case r.Member != "":
		return ""
	case signed(best.RaftIndex) > r.Source.RaftIndex:
		return "member " + best.Name + " responds and has lost less"
	case source == nil && !o.RecoveryMember.Serves && o.pod(r.Source.Member).gone():
		return "member " + r.Source.Member + " no longer exists"
	default:
		return ""
	}
}

// recoveryMemberOutdated is true if the recovery member does not run and was made from another
// declaration than the one of now. Its etcd may never start; nothing in a pod says whether it would.
func (o *Observed) recoveryMemberOutdated() bool {
	p := o.RecoveryMember.Pod
	return !p.gone() && !p.Running && (p.Outdated || o.stale(p))
}

// refills is true while what fills the recovery member still exists. If it does not, the
// recovery member may hold the only copy.
func (o *Observed) refills(r *v1beta2.RecoveryStatus) bool {
	return r.Trigger == v1beta2.RecoveryTriggerRestore || o.source(r.Source.Member) != nil
}
