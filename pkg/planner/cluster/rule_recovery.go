// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// recoveryGrace is how long a permanent loss of the quorum must have been proven before
	// a cluster with automatic recovery recovers. A user who has just deleted pods may still
	// notice it within that time.
	recoveryGrace = 30 * time.Second
	// sourceGrace is how long a requested recovery waits until the member that it recovers
	// from responds.
	sourceGrace = time.Minute
	// revisionBump is far more than a cluster writes in the time that may be lost.
	revisionBump = 1_000_000_000
)

// ruleRecovery continues the data of a cluster in new members, from a survivor of a lost
// quorum or from a backup. The recovery has these steps:
//  1. A new member, the recovery member, is filled. It must serve a write while it is
//     hidden from clients and members. Until then nothing that exists is changed.
//  2. The old members are decommissioned.
//  3. Only then is the recovery member published, so that clients never see both.
//
// The record of the cluster holds the step.
func ruleRecovery(o *Observed) (Plan, bool) {
	r := o.recovery()
	if r.InProgress() && o.Record.Recovery == nil && r.Phase != v1beta2.RecoveryPhasePending {
		return o.recordAgain(r), true
	}
	if !r.InProgress() {
		if r = o.automaticRecovery(); r == nil {
			return automaticRestore(o)
		}
	}
	switch r.Phase {
	case v1beta2.RecoveryPhasePending:
		return startRecovery(o, r), true
	case v1beta2.RecoveryPhaseSeeding:
		return fillRecoveryMember(o, r)
	case v1beta2.RecoveryPhaseCutover:
		return cutOver(o, r), true
	case v1beta2.RecoveryPhaseCleaning:
		return cleanLineage(o, r)
	case v1beta2.RecoveryPhaseSucceeded, v1beta2.RecoveryPhaseAbandoned:
		return Plan{}, false
	default:
		return Plan{}, false
	}
}

// recovery returns the recovery that counts, or nil. What stands in the record
// is newer than the status, but for a new request and a cancellation.
func (o *Observed) recovery() *v1beta2.RecoveryStatus {
	record, said := o.Record.Recovery, o.Cluster.Status.Recovery
	switch {
	case record == nil:
		return said
	case said == nil || record.InProgress() && said.ID != record.ID:
		return record
	case said.ID != record.ID && said.Phase == v1beta2.RecoveryPhasePending:
		return said
	default:
		r := record.DeepCopy()
		r.Cancelled = r.Cancelled || (said.ID == r.ID && said.Cancelled)
		return r
	}
}

// recordAgain records a recovery that only the status still shows, unless the cluster has continued
// without this recovery: then the status is of an earlier time than the cluster.
func (o *Observed) recordAgain(r *v1beta2.RecoveryStatus) Plan {
	id := o.Record.ClusterID
	known := id == "" || id == unknownClusterID || id == r.OldClusterID || id == r.ClusterID
	if current := hexID(o.Etcd.ClusterID); o.Etcd.Linearizable && current != r.OldClusterID && current != r.ClusterID {
		known = false
	}
	if o.pod(r.RecoveryMember) != nil || o.pvc(r.RecoveryMember) != nil {
		// It was published. Only the end is left to do: no member may be decommissioned again.
		known = known && r.Phase == v1beta2.RecoveryPhaseCleaning
	}
	if !known {
		return abandon(o, r, "the cluster has continued without this recovery")
	}
	return Plan{Actions: []Action{RecordRecovery{Recovery: *r.DeepCopy()}}, RequeueAfter: recheckWaiting}
}

// automaticRecovery returns a recovery that starts without a request, or nil. The spec must allow
// it, and the quorum must have been permanently lost for a while.
func (o *Observed) automaticRecovery() *v1beta2.RecoveryStatus {
	if !o.recoversNow() || o.source("") == nil {
		return nil
	}
	return &v1beta2.RecoveryStatus{
		ID: o.NewName, Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhasePending,
		RequestedAt: metav1.NewTime(o.Now.Truncate(time.Second)),
	}
}

// recoversByItself is true if the spec allows it.
func (o *Observed) recoversByItself() bool {
	policy := o.Cluster.Spec.Recovery
	return policy != nil && policy.QuorumLoss == v1beta2.RecoveryAutomatic
}

// recoversNow is true if the cluster may be recovered now without a request.
func (o *Observed) recoversNow() bool {
	if !o.recoversByItself() || !o.permanentlyLost() {
		return false
	}
	since := o.Cluster.Status.PermanentQuorumLossSince
	return since != nil && o.Now.Sub(since.Time) >= recoveryGrace
}

// source returns the member that a recovery continues from: the requested one, or the best
// one if none is requested; nil if there is none.
func (o *Observed) source(requested string) *Member {
	plan, err := o.facts().PlanRecovery(requested)
	if err != nil {
		return nil
	}
	return o.member(plan.Source.Name)
}

// startRecovery makes the plan and records it. Nothing else happens before it is recorded.
func startRecovery(o *Observed, r *v1beta2.RecoveryStatus) Plan {
	next := r.DeepCopy()
	// The message stays: it says why there is another recovery member.
	next.Phase, next.RecoveryMember, next.ClusterID = v1beta2.RecoveryPhaseSeeding, o.NewName, ""
	next.OldMembers, next.OldClusterID = o.everyName(), o.Record.ClusterID
	if next.OldClusterID == unknownClusterID {
		next.OldClusterID = o.knownClusterID()
	}
	switch {
	case r.Cancelled:
		return abandon(o, r, "it was cancelled")
	case o.repeats(r):
		return abandon(o, r, "it was carried out before, and the cluster has changed since then: the state of the API was rolled back")
	case o.size() == 0:
		return abandon(o, r, "the cluster is declared to have no members")
	case !o.concerns(r):
		return abandon(o, r, "it is about members that this cluster has no more")
	case r.Trigger == v1beta2.RecoveryTriggerRestore:
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}
	case o.Etcd.Linearizable:
		return abandon(o, r, "a quorum of the members responds")
	}
	plan, err := o.facts().PlanRecovery(r.Member)
	if err != nil {
		if o.Now.Sub(r.RequestedAt.Time) > sourceGrace {
			return abandon(o, r, "no member responds from which the cluster could recover")
		}
		return wait(recheckQuorum, ReasonWaitingForSurvivor, "No member responds from which the cluster could recover.", noActionNeeded)
	}
	o.fillSource(next, plan)
	action := RecordRecovery{Recovery: *next}
	if r.Trigger == v1beta2.RecoveryTriggerAutomatic {
		action.Lost = o.facts().LostVoters()
	}
	return Plan{Actions: []Action{action}, RequeueAfter: recheckWaiting}
}

// fillSource writes into a recovery from which member it continues, and what that loses.
func (o *Observed) fillSource(r *v1beta2.RecoveryStatus, plan *diagnosis.RecoveryPlan) {
	r.Source.Member, r.Source.RaftIndex = plan.Source.Name, plan.Source.RaftIndex
	r.Version = o.recoveryVersion(o.member(plan.Source.Name))
	if resources.BumpsRevision(r.Version) {
		r.RevisionBump = revisionBump
	}
	r.Survivors, r.ExpectedLoss = plan.APISurvivors(), plan.EstimatedDataLoss
}

// signed is an index as the API holds it.
func signed(index uint64) int64 { return int64(min(index, math.MaxInt64)) }

// concerns is false for a request about members of another time: the API may have been
// restored from a backup of its own.
func (o *Observed) concerns(r *v1beta2.RecoveryStatus) bool {
	if len(r.OldMembers) == 0 {
		return true
	}
	return slices.ContainsFunc(r.OldMembers, func(name string) bool { return slices.Contains(o.everyName(), name) })
}

// repeats is true for a request that was begun before, and that others have followed: the
// API may have been restored from a backup of its own. To carry it out again would put
// older data in the place of newer.
func (o *Observed) repeats(r *v1beta2.RecoveryStatus) bool {
	record := o.Record.Recovery
	return (record == nil || record.ID != r.ID) && slices.Contains(o.Record.Recoveries, r.ID)
}

// everyName returns the names of all members, and of whatever else the cluster has.
func (o *Observed) everyName() []string {
	list := o.remains()
	for i := range o.Etcd.Members {
		list = append(list, o.Etcd.Members[i].Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// oldMembers returns the names of all members that a recovery decommissions: those that
// existed when it began, and those that have joined since, because a cluster serves on
// while it is restored.
func (o *Observed) oldMembers(r *v1beta2.RecoveryStatus) []string {
	list := append(o.everyName(), r.OldMembers...)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == r.RecoveryMember })
}

// cutOver decommissions the old members. The recovery member is hidden until all of
// them are.
func cutOver(o *Observed, r *v1beta2.RecoveryStatus) Plan {
	p := o.RecoveryMember.Pod
	switch {
	case p == nil && o.recoveryMemberLost(r):
		next := r.DeepCopy()
		next.Phase, next.CompletionTime = v1beta2.RecoveryPhaseAbandoned, o.nowTime()
		next.Message = "recovery member " + r.RecoveryMember + " was lost with its data before it was published to clients"
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next, Gone: r.RecoveryMember}}, RequeueAfter: recheckWaiting}
	case p == nil:
		// It starts again on its PVC. A restore fills a new PVC, because no client has written.
		return Plan{Actions: []Action{CreateRecoveryMember{Recovery: *r}}, RequeueAfter: recheckWaiting}
	case (p.Finished && !p.Terminating) || (o.recoveryMemberOutdated() && (o.persistent() || o.refills(r))):
		return Plan{Actions: []Action{DeletePod{Name: p.Name, UID: p.UID}}, RequeueAfter: recheckWaiting}
	}
	if !o.RecoveryMember.Serves || hexID(o.RecoveryMember.ClusterID) != r.ClusterID {
		return wait(recheckQuorum, ReasonWaitingForRecoveryMember,
			"recovery member "+r.RecoveryMember+" does not serve"+waitingFor(o.RecoveryMember.Pod), noActionNeeded)
	}
	next := r.DeepCopy()
	next.Phase, next.Message = v1beta2.RecoveryPhaseCleaning, ""
	next.OldMembers = o.oldMembers(r)
	return Plan{Actions: []Action{FenceOldMembers{Recovery: *r}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckWaiting}
}

// recoveryMemberLost is true if the recovery member has lost its data and is not filled a second time: the
// record holds its cluster ID, and another copy would have another cluster ID. No client has
// written to the recovery member, so the recovery is abandoned. The controller gives the PVCs of
// the old members back their labels, and these members start again. Then another recovery can begin.
func (o *Observed) recoveryMemberLost(r *v1beta2.RecoveryStatus) bool {
	return r.Trigger != v1beta2.RecoveryTriggerRestore && !o.RecoveryMember.Hidden && o.pvc(r.RecoveryMember) == nil
}

// cleanLineage publishes the recovery member and releases the PVCs of the old members once the
// new cluster has served a write.
func cleanLineage(o *Observed, r *v1beta2.RecoveryStatus) (Plan, bool) {
	if o.RecoveryMember.Hidden {
		return Plan{Actions: []Action{PublishRecoveryMember{Name: r.RecoveryMember}}, RequeueAfter: recheckNow}, true
	}
	next := r.DeepCopy()
	if !o.Etcd.Linearizable && o.pod(r.RecoveryMember).gone() && o.pvc(r.RecoveryMember) == nil && o.quorumLoss().Permanent {
		next.Phase, next.CompletionTime = v1beta2.RecoveryPhaseSucceeded, o.nowTime()
		next.Message = "the new members were lost before the PVCs of the old members were released; those PVCs are kept"
		return Plan{Actions: []Action{RecordRecovery{Recovery: *next}}, RequeueAfter: recheckNow}, true
	}
	if !o.Etcd.Linearizable || hexID(o.Etcd.ClusterID) != r.ClusterID {
		return Plan{}, false // it is looked after as every cluster is
	}
	next.Phase, next.Message = v1beta2.RecoveryPhaseSucceeded, ""
	next.CompletionTime = o.nowTime()
	return Plan{Actions: []Action{VerifyWrite{Of: WriteToCluster}, CleanUpOldPVCs{Recovery: *r}, RecordRecovery{Recovery: *next}}, RequeueAfter: recheckNow}, true
}

// abandon ends a recovery and leaves the old members as they are.
func abandon(o *Observed, r *v1beta2.RecoveryStatus, why string) Plan {
	next := r.DeepCopy()
	next.Phase, next.Message, next.CompletionTime = v1beta2.RecoveryPhaseAbandoned, why, o.nowTime()
	actions := []Action{RecordRecovery{Recovery: *next}}
	if r.RecoveryMember != "" {
		actions = append([]Action{DeleteRecoveryMember{Name: r.RecoveryMember}}, actions...)
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}
}

func (o *Observed) nowTime() *metav1.Time {
	t := metav1.NewTime(o.Now.Truncate(time.Second))
	return &t
}

func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// describeRecovery says for a reader what goes on.
func describeRecovery(r *v1beta2.RecoveryStatus) string {
	from := "member " + r.Source.Member
	if r.Trigger == v1beta2.RecoveryTriggerRestore {
		from = "EtcdRestore " + r.Source.Restore
	}
	text := "the cluster goes on from " + from
	if r.RecoveryMember != "" {
		text += " in the new member " + r.RecoveryMember
	}
	if r.RequestedBy != "" {
		text += ", as requested by " + r.RequestedBy
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}
