// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// beginCutover records that the old members go, unless one of them may serve unseen, or a quorum of them may come back.
// Meanwhile the old members are looked after, as before the recovery member served.
func (in *Input) beginCutover(r *v1beta2.RecoveryStatus) Decision {
	d, keeps := in.keepOldMembers(r)
	if !keeps {
		d, keeps = in.awaitReturning(r)
	}
	if keeps {
		return in.lookAfterOldMembers(r, d)
	}
	next := in.unlessStored(r).DeepCopy()
	next.Phase, next.ClusterID, next.Message = v1beta2.RecoveryPhaseCutover, in.RecoveryMember.ClusterID, ""
	next.OldMembers = in.oldMembers(r)
	return Decision{Step: BeginCutover{Recovery: *next}}
}

// keepOldMembers waits while an old member may serve unseen, or may have writes that nothing stores. It decides before the
// cutover begins and, for a restore, once more before the old members are fenced: much may have happened meanwhile.
func (in *Input) keepOldMembers(r *v1beta2.RecoveryStatus) (Decision, bool) {
	if unresponsive := in.unresponsivePods(); unresponsive != "" {
		return waitForOldMembers(r, unresponsive, "Bring the node back. "+diagnosis.ConfirmNodeOff), true
	}
	if d, waits := in.awaitBackup(r); waits {
		return d, true
	}
	if d, waits := in.awaitDoubt(r); waits {
		return d, true
	}
	r = in.unlessStored(r)
	if unstored := in.unstored(r); unstored != "" {
		return waitForOldMembers(r, unstored, "Bring the member back. If it cannot come back, delete its pod: what only it has acknowledged is lost then."), true
	}
	stored := r.Trigger == v1beta2.RecoveryTriggerRestore && !r.OnlyIfUnresponsive && !in.Unconfirmed
	if unseen := in.Facts.UnseenQuorum(); !stored && unseen != "" {
		return waitForOldMembers(r, unseen,
			"Bring these members back into reach. If they cannot come back, delete their pods: what they have acknowledged meanwhile is lost then."), true
	}
	return Decision{}, false
}

// awaitReturning waits while old members may start again and bring the quorum back, as after a person has confirmed that
// their nodes are off. They have every acknowledged write, and the source may lack some. A restore does not wait: a user
// wants other data.
func (in *Input) awaitReturning(r *v1beta2.RecoveryStatus) (Decision, bool) {
	names := in.Facts.Returning()
	if r.Trigger == v1beta2.RecoveryTriggerRestore || len(names) == 0 {
		return Decision{}, false
	}
	d := waitForOldMembers(r, "with the data of "+strings.Join(names, ", ")+", whose pods start again, a quorum may come back",
		fmt.Sprintf("No action needed if these pods start: when a quorum responds, the recovery is abandoned and nothing is lost. "+
			"The recovery continues when a pod has not started %v after it was created or its node was ready again. It continues earlier if the container ends again and again. "+
			"If such a pod cannot be created, or is created again and again, remove the cause, such as a quota. "+
			"To go on without the data of a member, delete its PVC, if it has one, and then its pod.", diagnosis.ReturnGrace))
	d.Recheck = OnResponse
	return d, true
}

// unstored says which old member does not respond and may have writes that nothing stores: neither a PVC, nor a pre-restore
// backup that a quorum confirmed. It is empty if there is none, or if a user does without.
func (in *Input) unstored(r *v1beta2.RecoveryStatus) string {
	if r.Trigger != v1beta2.RecoveryTriggerRestore || in.Linearizable || !in.Unconfirmed && !r.OnlyIfUnresponsive {
		return ""
	}
	return in.Facts.Unstored(in.QuorumLostFor)
}

// waitForOldMembers says why the old members are not decommissioned yet.
func waitForOldMembers(r *v1beta2.RecoveryStatus, why, remedy string) Decision {
	return wait(OnEvent, v1beta2.ReasonOldMemberMayRun,
		"recovery member "+r.RecoveryMember+" is ready, and the old members are not replaced yet: "+why, remedy)
}

// cutOver decommissions the old members. The recovery member is hidden until all of
// them are.
func (in *Input) cutOver(r *v1beta2.RecoveryStatus) Decision {
	p := in.RecoveryMember.Pod
	if why := in.whyComeBack(r); why != "" {
		return in.abandon(r, why)
	}
	if in.RestoreOver && in.mayEnd(r) {
		return in.endUnpublished(r, "recovery member "+r.RecoveryMember+" has lost its data before it was published to clients, and EtcdRestore "+r.Source.Restore+" no longer exists or has ended")
	}
	switch {
	case p == nil && in.isLost(r):
		next := in.ended(r, v1beta2.RecoveryPhaseAbandoned, "recovery member "+r.RecoveryMember+" was lost with its data before it was published to clients")
		return Decision{Step: Record{Recovery: next, Gone: r.RecoveryMember}}
	case p == nil && IsUnauthorized(r) && in.lacksData(r):
		return in.awaitAuthorization(r)
	case p == nil:
		// It starts again on its PVC. A restore fills a new PVC, because no client has written.
		return Decision{Step: Fill{Recovery: *r, OldMembersStay: in.respondingMember() == ""}}
	case p.Fills && in.Desired.Persistent:
		// It has all of the data on its own volume. As an ordinary member it comes back although what it was filled
		// from no longer exists, and keeps no Secret, cloud identity or PVC of an old member in use.
		if p.Terminating {
			return in.untilFenced(r, in.waitForEnd(r, "recovery member "+r.RecoveryMember+" restarts without what has filled it"))
		}
		return Decision{Step: RestartRecoveryMember{}}
	case (p.Finished && !p.Terminating) || (in.isOutdated() && (in.Desired.Persistent || in.refills(r))):
		return Decision{Step: RestartRecoveryMember{}}
	}
	if p.Terminating && !in.RecoveryMember.Serves {
		return in.untilFenced(r, in.waitForEnd(r, "recovery member "+r.RecoveryMember+" starts again when its pod has ended"))
	}
	if !in.RecoveryMember.Serves || in.RecoveryMember.ClusterID != r.ClusterID {
		return in.untilFenced(r, wait(OnResponse, ReasonWaitingForRecoveryMember,
			"recovery member "+r.RecoveryMember+" does not serve"+p.reason(), diagnosis.NoActionYet))
	}
	if r.Trigger == v1beta2.RecoveryTriggerRestore && in.RecoveryMember.Hidden {
		if d, keeps := in.keepOldMembers(r); keeps {
			return in.untilFenced(r, d)
		}
	}
	r = in.unlessStored(r)
	next := r.DeepCopy()
	next.Phase, next.Message = v1beta2.RecoveryPhaseCleaning, ""
	next.OldMembers = in.oldMembers(r)
	// From here on it only says whose PVCs are kept.
	next.OnlyIfUnresponsive = in.keepsPVCs(r)
	return Decision{Step: Fence{Recovery: *r, Next: *next}}
}

// keepsPVCs is true if a restore keeps the PVCs of the old members, because no pre-restore backup has their data. A user who
// suspends that backup lets the restore go on, and may only have had to: the backup of a cluster whose members do not respond
// never ends. So a suspension is no request to delete data. Nor has a backup of one member the data of all if etcd has found
// since it began that they differ.
func (in *Input) keepsPVCs(r *v1beta2.RecoveryStatus) bool {
	return r.OnlyIfUnresponsive || r.Trigger == v1beta2.RecoveryTriggerRestore && in.Bootstrapped && (!in.Stored || in.Facts.DataDiffers)
}

// awaitDoubt waits until something that stays says that the data of the members differs, so that their PVCs are kept. The
// members say it no longer once they are stopped, and an attempt that fails then is made again.
func (in *Input) awaitDoubt(r *v1beta2.RecoveryStatus) (Decision, bool) {
	if r.Trigger != v1beta2.RecoveryTriggerRestore || !in.Bootstrapped || !in.Stored || !in.Facts.DataDiffers {
		return Decision{}, false
	}
	return wait(OnResponse, ReasonWaitingForRestore,
		"recovery member "+r.RecoveryMember+" is ready, and the old members are not replaced yet: their data differs (alarm CORRUPT), and the status of EtcdRestore "+r.Source.Restore+" does not say so yet",
		"No action needed: when it says so, the restore continues, and the PVCs of the old members are kept."), true
}

// untilFenced has the old members of a restore looked after during a wait. A recovery has stopped its old members permanently.
func (in *Input) untilFenced(r *v1beta2.RecoveryStatus, d Decision) Decision {
	if r.Trigger != v1beta2.RecoveryTriggerRestore || !in.RecoveryMember.Hidden {
		return d
	}
	return in.lookAfterOldMembers(r, d)
}

// lookAfterOldMembers starts old members again that have stopped, during a wait. Those of a restore serve clients until they
// are fenced, and its recovery member may find no room for its next pod. If none of them responds, a person may have to
// delete their pods, so these stay deleted.
func (in *Input) lookAfterOldMembers(r *v1beta2.RecoveryStatus, d Decision) Decision {
	switch {
	case r.Trigger != v1beta2.RecoveryTriggerRestore:
		d.Step = ReviveOldMembers{Except: r.Source.PVC}
		return d
	case in.respondingMember() == "":
		if in.mayEnd(r) {
			d.Wait.Remedy += " If the recovery member cannot be filled again, delete EtcdRestore " + r.Source.Restore + ": the restore is abandoned, " + in.afterEnd(r)
		}
		return d
	}
	d.Step = ReviveOldMembers{}
	if !in.RecoveryMember.Serves {
		d.Wait.Remedy += " If the recovery member cannot start, delete EtcdRestore " + r.Source.Restore + ": the old members stay while one of them responds."
	}
	return d
}

// awaitBackup waits until what the old members have accepted while the recovery member was filled is in a pre-restore
// backup. The EtcdRestore makes another backup when it reads this wait.
func (in *Input) awaitBackup(r *v1beta2.RecoveryStatus) (Decision, bool) {
	why, when := "", ""
	switch {
	case r.Trigger != v1beta2.RecoveryTriggerRestore || in.respondingMember() == "":
		return Decision{}, false
	case in.LacksBackup:
		why = fmt.Sprintf("was stored more than %s ago, and they may have accepted writes since", v1beta2.MaxPreRestoreBackupAge)
	case in.Unconfirmed && (in.Linearizable || r.Phase == v1beta2.RecoveryPhaseFilling && !in.Facts.QuorumLoss().Certain):
		// In an election all members respond, and there is no leader for a moment.
		why, when = "is of a member that no quorum confirmed, and a quorum responds or may respond, which may have newer writes", " when a quorum responds"
	case in.Unconfirmed && in.Facts.Newer(in.BackedUp) != "":
		why = "is of a member that no quorum confirmed, and " + in.Facts.Newer(in.BackedUp)
	default:
		return Decision{}, false
	}
	return wait(OnResponse, v1beta2.ReasonPreRestoreBackupTooOld,
		fmt.Sprintf("recovery member %s is ready, and the old members are not replaced yet: the pre-restore backup %s. EtcdRestore %s makes another backup%s", r.RecoveryMember, why, r.Source.Restore, when),
		"If the status of EtcdRestore "+r.Source.Restore+" says that the backup fails, repair its backup location, or set spec.backupPolicy.suspend of that EtcdBackup. Then only the PVCs of the old members have the writes since; these PVCs are kept."), true
}

// unlessStored returns the recovery as one for which nothing is stored, if no fresh pre-restore backup has what the members
// accepted before they stopped responding. Then none of them may respond until the end, and their PVCs are kept.
func (in *Input) unlessStored(r *v1beta2.RecoveryStatus) *v1beta2.RecoveryStatus {
	if r.Trigger != v1beta2.RecoveryTriggerRestore || !in.Bootstrapped || !in.LacksBackup && !in.RestoreOver {
		return r
	}
	next := r.DeepCopy()
	next.OnlyIfUnresponsive = true
	return next
}

// whyComeBack says why the old members must stay although the cutover has begun; empty if they go. No client has
// reached the recovery member, so it may be abandoned as long as it is hidden.
func (in *Input) whyComeBack(r *v1beta2.RecoveryStatus) string {
	switch {
	case !in.RecoveryMember.Hidden:
		return ""
	case r.Trigger != v1beta2.RecoveryTriggerRestore && in.Linearizable:
		return "a quorum of the members responded again before they were decommissioned"
	default:
		return in.whyKeep(r)
	}
}

// isLost is true if the recovery member has lost its data and is not filled a second time: the
// record holds its cluster ID, and another copy would have another cluster ID. No client has
// written to the recovery member, so the recovery is abandoned. The controller gives the PVCs of
// the old members back their labels, and these members start again. Then another recovery can begin.
func (in *Input) isLost(r *v1beta2.RecoveryStatus) bool {
	return r.Trigger != v1beta2.RecoveryTriggerRestore && !in.RecoveryMember.Hidden && !in.Facts.HasPVC(r.RecoveryMember)
}

// isEmpty is true if the recovery member of a restore has lost its data in the cutover, and nothing has filled it again. No
// client has reached it, so the end of the restore loses nothing. Without that end, a backup that cannot be read any more
// would keep the cluster in the cutover.
func (in *Input) isEmpty(r *v1beta2.RecoveryStatus) bool {
	p := in.RecoveryMember.Pod
	if r.Trigger != v1beta2.RecoveryTriggerRestore || r.Phase != v1beta2.RecoveryPhaseCutover || !in.lacksData(r) {
		return false
	}
	return p == nil || in.RecoveryMember.Hidden && !p.HasRun && !in.RecoveryMember.Serves
}

// mayEnd is true if the end of a restore in the cutover loses nothing. Its recovery member is empty, and an old member is
// left. Without any, what the pod fills is all that the cluster has: then the agent must say that it fills nothing.
func (in *Input) mayEnd(r *v1beta2.RecoveryStatus) bool {
	p := in.RecoveryMember.Pod
	return in.isEmpty(r) && (in.remain(r) || p != nil && p.FailsToFill && !p.isEnding())
}

// afterEnd says what follows the end of such a restore, as the end of a sentence.
func (in *Input) afterEnd(r *v1beta2.RecoveryStatus) string {
	switch {
	case in.haveOldPVCs(r):
		return "and old members start again on their PVCs."
	case in.remain(r):
		return "and the pods of old members stay."
	default:
		return "and another EtcdRestore can begin."
	}
}

// remain is true if an old member has its PVC, or a pod that is not about to end.
func (in *Input) remain(r *v1beta2.RecoveryStatus) bool {
	return in.haveOldPVCs(r) || slices.ContainsFunc(in.Facts.Remains(), func(name string) bool {
		return name != r.RecoveryMember && !in.Facts.Evidence(name).IsEnding()
	})
}

// haveOldPVCs is true if an old member has its PVC. The fence takes PVCs from their members, and the end of the recovery gives
// them back.
func (in *Input) haveOldPVCs(r *v1beta2.RecoveryStatus) bool {
	return len(in.Fenced) > 0 || slices.ContainsFunc(in.Facts.Remains(), func(name string) bool {
		return name != r.RecoveryMember && in.Facts.HasPVC(name)
	})
}

// endUnpublished ends a recovery whose recovery member no client has reached. In the cutover a recovery member that is not
// seen must be proven gone first: it may hold the data without its labels.
func (in *Input) endUnpublished(r *v1beta2.RecoveryStatus, why string) Decision {
	if r.Phase == v1beta2.RecoveryPhaseCutover && !in.RecoveryMember.Hidden {
		return Decision{Step: Record{Recovery: in.ended(r, v1beta2.RecoveryPhaseAbandoned, why), Gone: r.RecoveryMember}}
	}
	return in.abandon(r, why)
}

// lacksData is true if no PVC has what the recovery member was filled with: its next pod fills it again.
func (in *Input) lacksData(r *v1beta2.RecoveryStatus) bool {
	return in.RecoveryMember.Unfilled || !in.hasRecoveryPVC(r)
}

// cleanUp publishes the recovery member and releases the PVCs of the old members once the
// new cluster has served a write.
func (in *Input) cleanUp(r *v1beta2.RecoveryStatus) (Decision, bool) {
	if in.RecoveryMember.Hidden {
		return Decision{Step: Publish{RecoveryMember: r.RecoveryMember}, Recheck: AtOnce}, true
	}
	gone := in.Facts.Evidence(r.RecoveryMember).IsEnding() && !in.Facts.HasPVC(r.RecoveryMember)
	if !in.Linearizable && gone && !in.knowsOnlyNew(r) && in.mayReturn(r) {
		if !in.Facts.Evidence(r.RecoveryMember).HasEnded() || in.RecoveryMember.Pod != nil {
			return Decision{}, false // it may still serve clients, or its pod is about to go
		}
		next := in.ended(r, v1beta2.RecoveryPhaseAbandoned, "recovery member "+r.RecoveryMember+" was lost with its data and with what clients wrote to it, before a quorum of the new cluster had responded; "+
			"the PVCs of the old members come back")
		return Decision{Step: Record{Recovery: next, Gone: r.RecoveryMember}, Recheck: AtOnce}, true
	}
	if !in.Linearizable && (gone || in.knowsOnlyNew(r)) && in.Facts.QuorumLoss().Permanent {
		next := in.ended(r, v1beta2.RecoveryPhaseSucceeded, "the new members were lost before the PVCs of the old members were released; those PVCs are kept")
		record := Record{Recovery: next}
		if gone && in.RecoveryMember.Pod == nil {
			record.Gone = r.RecoveryMember // its pod may have only lost its labels
		}
		return Decision{Step: record, Recheck: AtOnce}, true
	}
	if !in.Linearizable || in.ClusterID != r.ClusterID {
		return Decision{}, false // it is looked after as every cluster is
	}
	return Decision{Step: CleanUp{Recovery: *r, Next: in.ended(r, v1beta2.RecoveryPhaseSucceeded, ""), Kept: keptMembers(r)}, Recheck: AtOnce}, true
}

// mayReturn is true if the PVCs of the old members may hold the newest data that is left after the recovery member
// was lost. Those that a restore has replaced stay: a user wanted other data.
func (in *Input) mayReturn(r *v1beta2.RecoveryStatus) bool {
	if p := in.RecoveryMember.Pod; p != nil && !p.Terminating {
		return false // nothing deletes a pod that only ended, so its end cannot be waited for
	}
	return r.Trigger != v1beta2.RecoveryTriggerRestore && r.OldClusterID != "" && in.Facts.QuorumLoss().Permanent
}

// keptMembers returns the old members whose PVCs stay after the end: all of them, unless a pre-restore backup has their data
// (keepsPVCs). A pre-restore backup that no quorum confirmed may lack what other members have, so it counts as none.
//
// A recovery has no such backup. A snapshot of a member that responds has only what that member knows to be committed. An
// acknowledged write may be in its log behind that, and in the logs of members that knew of fewer. The PVC that a recovery has
// read is complete. It is the only other copy while the new cluster has one member.
func keptMembers(r *v1beta2.RecoveryStatus) []string {
	if r.Trigger == v1beta2.RecoveryTriggerRestore && !r.OnlyIfUnresponsive {
		return nil
	}
	return slices.Clone(r.OldMembers)
}

// knowsOnlyNew is true if the known members are those of the new cluster: the recovery member is among them,
// and no old member is. A status from before names the old members, which are no longer seen and look lost.
func (in *Input) knowsOnlyNew(r *v1beta2.RecoveryStatus) bool {
	named := func(names ...string) bool {
		return slices.ContainsFunc(in.Members, func(m Member) bool { return slices.Contains(names, m.Name) })
	}
	return named(r.RecoveryMember) && !named(r.OldMembers...)
}
