// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Grace is how long a permanent loss of the quorum must have been proven before a cluster with
// automatic recovery recovers. A user who has just deleted pods may still notice it within
// that time.
const Grace = 30 * time.Second

const (
	// sourceGrace is how long a requested recovery waits until the member that it recovers
	// from responds.
	sourceGrace = time.Minute
	// revisionBump is far more than a cluster writes in the time that may be lost.
	revisionBump = 1_000_000_000
)

// Decide says what happens next about the recovery of a cluster. It returns false if the
// cluster is looked after as every cluster is.
func Decide(in *Input) (Decision, bool) {
	r := Current(in.Recorded, in.Reported)
	if r.IsInProgress() && in.Recorded == nil && r.Phase != v1beta2.RecoveryPhasePending {
		return in.recordAgain(r), true
	}
	if !r.IsInProgress() {
		if r = in.automaticRecovery(); r == nil {
			return in.automaticRestore()
		}
	}
	switch r.Phase {
	case v1beta2.RecoveryPhasePending:
		return in.start(r), true
	case v1beta2.RecoveryPhaseFilling:
		return in.fill(r)
	case v1beta2.RecoveryPhaseCutover:
		return in.cutOver(r), true
	case v1beta2.RecoveryPhaseCleaning:
		return in.cleanUp(r)
	case v1beta2.RecoveryPhaseSucceeded, v1beta2.RecoveryPhaseAbandoned:
		return Decision{}, false
	default:
		return Decision{}, false
	}
}

// Current returns the recovery that counts, or nil. What stands in the record is newer than
// what the status reports, but for a new request and a cancellation. A tenant may write the record. So what a recovery
// member mounts, Source.Backup, counts only as the status has it, which the API authorized.
func Current(recorded, reported *v1beta2.RecoveryStatus) *v1beta2.RecoveryStatus {
	switch {
	case recorded == nil:
		return reported
	case reported == nil || recorded.IsInProgress() && reported.ID != recorded.ID:
		r := recorded.DeepCopy()
		r.Source.Backup = nil
		return r
	case reported.ID != recorded.ID && reported.Phase == v1beta2.RecoveryPhasePending:
		return reported
	default:
		r := recorded.DeepCopy()
		r.Source.Backup = nil
		if reported.ID == r.ID {
			r.Source.Backup, r.Cancelled = reported.Source.Backup.DeepCopy(), r.Cancelled || reported.Cancelled
		}
		return r
	}
}

// IsUnauthorized is true while a recovery may be filled from a backup that only the record names: until its recovery
// member is published, which may lose its data before. Its EtcdRestore names the backup again. A status that repeated
// such a recovery would keep the EtcdRestore from that.
func IsUnauthorized(r *v1beta2.RecoveryStatus) bool {
	return r.IsInProgress() && r.Trigger == v1beta2.RecoveryTriggerRestore && r.Source.Backup == nil && r.Phase != v1beta2.RecoveryPhaseCleaning
}

// recordAgain records a recovery that only the status still shows, unless the cluster has continued
// without this recovery: then the status is of an earlier time than the cluster.
func (in *Input) recordAgain(r *v1beta2.RecoveryStatus) Decision {
	isOf := func(id string) bool { return id == r.OldClusterID || id == r.ClusterID }
	known := in.RecordedID == "" || isOf(in.RecordedID)
	if in.Linearizable && !isOf(in.ClusterID) {
		known = false
	}
	if in.isPublished(r.RecoveryMember) {
		// Only the end is left to do: no member may be decommissioned again.
		known = known && r.Phase == v1beta2.RecoveryPhaseCleaning
	}
	if !known {
		return in.abandon(r, "the cluster has continued without this recovery")
	}
	return Decision{Step: Record{Recovery: *r.DeepCopy()}}
}

// automaticRecovery returns a recovery that starts without a request, or nil. The spec must allow
// it, and the quorum must have been permanently lost for a while.
func (in *Input) automaticRecovery() *v1beta2.RecoveryStatus {
	if !in.recoversNow() || in.source("") == nil && in.Facts.OnlyVolume() == nil || NeedsRequest(in.Recorded, in.ReplacedID, in.Facts) {
		return nil
	}
	return &v1beta2.RecoveryStatus{
		ID: in.NewName, Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhasePending,
		RequestedAt: *in.now(),
	}
}

// recoversNow is true if the cluster may be recovered now without a request.
func (in *Input) recoversNow() bool {
	return in.Desired.Automatic && in.LostSince != nil && in.Now.Sub(in.LostSince.Time) >= Grace
}

// start makes the plan and records it. Nothing else happens before it is recorded.
func (in *Input) start(r *v1beta2.RecoveryStatus) Decision {
	next := r.DeepCopy()
	// The message stays: it says why there is another recovery member.
	next.Phase, next.RecoveryMember, next.ClusterID = v1beta2.RecoveryPhaseFilling, in.NewName, ""
	next.OldMembers, next.OldClusterID = in.everyName(), in.ReplacedID
	switch {
	case r.Cancelled:
		return in.abandon(r, "it was cancelled")
	case in.repeats(r):
		return in.abandon(r, "it was carried out before, and the cluster has changed since then: the state of the API was rolled back")
	case in.Desired.Size == 0:
		return in.abandon(r, "the cluster is declared to have no members")
	case !in.concerns(r):
		return in.abandon(r, "it is about members that this cluster has no more")
	case in.whyKeep(r) != "":
		return in.abandon(r, in.whyKeep(r))
	case in.cannotBump(r) && isBumpRequested(r):
		return in.abandon(r, fmt.Sprintf("the revision is to rise by %d, and etcd %s cannot raise it: leave out spec.revisionBump in another EtcdRestore, or choose a newer version", r.RevisionBump, in.Desired.Version))
	case r.Trigger == v1beta2.RecoveryTriggerRestore:
		if in.cannotBump(r) {
			next.RevisionBump = 0
			if next.ExpectedLoss != "" {
				next.ExpectedLoss += "; " + resources.RevisionGoesBack(in.Desired.Version)
			}
		}
		return Decision{Step: Record{Recovery: *next}}
	case in.Linearizable:
		return in.abandon(r, "a quorum of the members responds")
	}
	plan, err := in.plan(r)
	if err == nil && losesMore(r, plan, in.Facts) {
		err = fmt.Errorf("%w %s: member %s has read the log up to index %d and may come back. To accept the loss, name member %s in another recovery",
			errLosesMore, plan.Source.Name, r.Source.Member, r.Source.RaftIndex, plan.Source.Name)
	}
	if err != nil {
		if in.Now.Sub(r.RequestedAt.Time) > sourceGrace {
			return in.abandon(r, noSource(err))
		}
		return wait(OnResponse, ReasonWaitingForSurvivor, "The recovery waits for a source: "+noSource(err)+".", diagnosis.NoActionYet)
	}
	in.fillSource(next, plan)
	step := Record{Recovery: *next}
	if r.Trigger == v1beta2.RecoveryTriggerAutomatic || plan.PVC != "" {
		step.Lost = in.Facts.LostVoters()
	}
	return Decision{Step: step}
}

// errLosesMore means that only a member responds that has lost more than an earlier source, which may come back.
var errLosesMore = errors.New("the data of an earlier source is newer than that of member")

// losesMore is true if a plan takes another member than a recovery began from, with older or unknown data, while
// the first one may come back. Only a person accepts that, with a request that names the member.
func losesMore(began *v1beta2.RecoveryStatus, plan *diagnosis.RecoveryPlan, facts *diagnosis.Cluster) bool {
	from := began.Source
	return began.Member == "" && from.RaftIndex > 0 && plan.Source.Name != from.Member && (plan.PVC != "" || plan.Source.RaftIndex < from.RaftIndex) &&
		facts.MayComeBack(from.Member)
}

// NeedsRequest is true if no recovery begins without a request. It would lose more than the recorded one, which was
// abandoned, or only a person tells which of the members is right. ID is the cluster ID of the members.
func NeedsRequest(recorded *v1beta2.RecoveryStatus, id string, facts *diagnosis.Cluster) bool {
	plan, err := facts.PlanRecovery("")
	if errors.Is(err, diagnosis.ErrDataDiffers) {
		return true
	}
	if recorded == nil || recorded.Phase != v1beta2.RecoveryPhaseAbandoned || recorded.Trigger == v1beta2.RecoveryTriggerRestore || recorded.OldClusterID != id {
		return false
	}
	return err == nil && losesMore(recorded, plan, facts)
}

// cannotBump is true if a restore is to raise the revision, and the version that is declared by now
// cannot.
func (in *Input) cannotBump(r *v1beta2.RecoveryStatus) bool {
	return r.Trigger == v1beta2.RecoveryTriggerRestore && r.RevisionBump > 0 && !resources.BumpsRevision(in.Desired.Version)
}

// isBumpRequested is true if a user has requested by how much a restore raises the revision. A default is of a restore in
// place, which has an ExpectedLoss, and is never below revisionBump. A request for as much in place counts as a default,
// because the recovery does not tell them apart: ExpectedLoss then says that the revision is not raised.
func isBumpRequested(r *v1beta2.RecoveryStatus) bool {
	return r.ExpectedLoss == "" || r.RevisionBump < revisionBump
}

// noSource says why a recovery has no source.
func noSource(err error) string {
	if errors.Is(err, diagnosis.ErrSeveralVolumes) || errors.Is(err, diagnosis.ErrNoVolume) || errors.Is(err, diagnosis.ErrDataDiffers) || errors.Is(err, errLosesMore) {
		return err.Error()
	}
	return "no member responds from which the cluster could recover"
}

// fillSource writes into a recovery from which member it continues, and what that loses.
func (in *Input) fillSource(r *v1beta2.RecoveryStatus, plan *diagnosis.RecoveryPlan) {
	r.Source = plan.APISource()
	r.Version = in.version(plan.Source.Name)
	if resources.BumpsRevision(r.Version) {
		r.RevisionBump = revisionBump
	}
	r.Survivors, r.ExpectedLoss = plan.APISurvivors(), plan.EstimatedDataLoss
}

// concerns is false for a request about members of another time: the API may have been
// restored from a backup of its own.
func (in *Input) concerns(r *v1beta2.RecoveryStatus) bool {
	if len(r.OldMembers) == 0 {
		return true
	}
	return slices.ContainsFunc(r.OldMembers, func(name string) bool { return slices.Contains(in.everyName(), name) })
}

// repeats is true for a request that was begun before, and that others have followed: the
// API may have been restored from a backup of its own. To carry it out again would put
// older data in the place of newer.
func (in *Input) repeats(r *v1beta2.RecoveryStatus) bool {
	return (in.Recorded == nil || in.Recorded.ID != r.ID) && slices.Contains(in.Begun, r.ID)
}

// abandon ends a recovery and leaves the old members as they are.
func (in *Input) abandon(r *v1beta2.RecoveryStatus, why string) Decision {
	return Decision{Step: Abandon{Recovery: in.ended(r, v1beta2.RecoveryPhaseAbandoned, why)}}
}

// ended returns a recovery that ends now.
func (in *Input) ended(r *v1beta2.RecoveryStatus, phase v1beta2.RecoveryPhase, message string) v1beta2.RecoveryStatus {
	next := r.DeepCopy()
	next.Phase, next.Message, next.CompletionTime = phase, message, in.now()
	return *next
}

// now is the time as the API holds it.
func (in *Input) now() *metav1.Time {
	t := metav1.NewTime(in.Now.Truncate(time.Second))
	return &t
}

// Describe says for a reader what goes on.
func Describe(r *v1beta2.RecoveryStatus) string {
	from := "member " + r.Source.Member
	if r.Source.PVC != "" {
		from = "the PVC of member " + r.Source.Member
	}
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
