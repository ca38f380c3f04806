// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

const (
	// maxPause is how long a restore rests at most between two recovery members.
	maxPause = 10 * time.Minute
	// unresponsiveAfter is how long after the deadline of its end a pod is overdue until its node
	// counts as unresponsive.
	unresponsiveAfter = 5 * time.Second
)

// fill creates the recovery member, whose agent fills it, and waits until it serves.
func (in *Input) fill(r *v1beta2.RecoveryStatus) (Decision, bool) {
	restores := r.Trigger == v1beta2.RecoveryTriggerRestore
	switch {
	case r.Cancelled && !in.mayHoldOnlyCopy(r):
		return in.abandon(r, "it was cancelled"), true
	case in.Desired.Size == 0 && !in.mayHoldOnlyCopy(r):
		return in.abandon(r, "the cluster is declared to have no members"), true
	case !restores && in.Linearizable:
		return in.abandon(r, "a quorum of the members responds again"), true
	}
	if why := in.whyKeep(r); why != "" {
		return in.abandon(r, why), true
	}
	if why := cmp.Or(in.whyRelease(r), in.whySuperseded(r)); why != "" {
		return in.abandon(r, why), true
	}
	if in.pauses(r) {
		return wait(OnEvent, ReasonWaitingForRecoveryMember,
			"recovery member "+r.RecoveryMember+" has ended"+in.RecoveryMember.Pod.reason()+"; the next attempt starts after a delay",
			"Remove the cause. A change of the spec starts the next attempt at once."), !in.Bootstrapped
	}
	if why := cmp.Or(in.betterSource(r), in.unfit(r)); why != "" {
		next := r.DeepCopy()
		next.Phase, next.Message = v1beta2.RecoveryPhasePending, why
		return Decision{Step: StartAgain{Recovery: *next}}, true
	}
	if d, keeps := in.keepCopy(r); keeps {
		return d, true
	}
	if d, stops := in.stopSource(r); stops {
		return d, true
	}
	switch {
	case IsUnauthorized(r):
		return in.awaitAuthorization(r), true
	case in.RecoveryMember.Pod == nil:
		return Decision{Step: Fill{Recovery: *r, WithoutSource: in.hasLostPVC(r)}}, true
	case in.RecoveryMember.Serves && in.RecoveryMember.ClusterID != r.OldClusterID:
		return in.beginCutover(r), true
	case restores && in.Bootstrapped:
		return Decision{}, false // the cluster lives on meanwhile
	}
	decision := in.waitForRecoveryMember(r)
	decision.Step = ReviveOldMembers{Except: r.Source.PVC}
	return decision, true
}

// whySuperseded says why a recovery ends whose backup only the record names: another was requested since. That request
// takes the place in the status where the EtcdRestore would name its backup again, so each would wait for the other.
func (in *Input) whySuperseded(r *v1beta2.RecoveryStatus) string {
	if !IsUnauthorized(r) || !in.Reported.IsInProgress() || in.Reported.ID == r.ID {
		return ""
	}
	return "only the record names its backup, and another recovery was requested since"
}

// awaitAuthorization waits until the EtcdRestore names its backup again, because the status was lost and a tenant may
// write the record. Without the EtcdRestore nothing names it: the recovery ends, and the old members stay.
func (in *Input) awaitAuthorization(r *v1beta2.RecoveryStatus) Decision {
	why := in.whySuperseded(r)
	if in.RestoreOver {
		why = "only the record names its backup, and EtcdRestore " + r.Source.Restore + " no longer exists or has ended; restore the backup with another EtcdRestore"
	}
	if why != "" {
		return in.endUnpublished(r, why)
	}
	decision := wait(OnEvent, ReasonWaitingForRestore,
		"status.recovery does not say from which backup EtcdRestore "+r.Source.Restore+" restores, and the record alone is not trusted; that EtcdRestore asks again",
		"If that EtcdRestore does not ask again, delete it, which abandons the recovery, and create another EtcdRestore.")
	if r.Phase == v1beta2.RecoveryPhaseFilling && in.Bootstrapped {
		decision.Step = ReviveOldMembers{}
	}
	return decision
}

// whyKeep says why a restore must not replace the members, empty if it may. Without a pre-restore backup one of them
// responds, and nothing holds its data. A restore that is repeated began because the quorum was permanently lost, and
// a quorum responds.
func (in *Input) whyKeep(r *v1beta2.RecoveryStatus) string {
	if in.Repeats && in.Linearizable && r.Trigger == v1beta2.RecoveryTriggerRestore {
		return "a quorum responds again, and the cluster has carried out this restore before; to repeat it all the same, " +
			"create the EtcdRestore again with the annotation " + v1beta2.AnnotationRestoreAgain + "=VALUE"
	}
	responds := in.respondingMember()
	switch {
	case responds == "":
		return ""
	case r.OnlyIfUnresponsive:
		return responds + " responds again, and there is no pre-restore backup of its data; another EtcdRestore stores it first"
	case r.Trigger == v1beta2.RecoveryTriggerRestore && in.RestoreOver:
		return responds + " responds, and the EtcdRestore no longer exists or has ended: nothing stores what the members have accepted since it asked"
	default:
		return ""
	}
}

// respondingMember names what of the old members responds; empty if nothing does.
func (in *Input) respondingMember() string {
	switch sources := in.Facts.RankSources(); {
	case len(sources) > 0:
		return "member " + sources[0].Name
	case in.Linearizable:
		return "a quorum"
	case in.Facts.Denied:
		return "a member that rejects the controller"
	default:
		return ""
	}
}

// IsEndOverdue is true if a pod should have ended by endsBy, and its node has not reported that in time.
func IsEndOverdue(now, endsBy time.Time) bool { return now.Sub(endsBy) > unresponsiveAfter }

// unresponsivePods lists the pods that may run without Kubernetes knowing: those that should
// have ended and have not, and those on a node that is not ready or does not exist. It is empty if there are
// none. Such members may serve clients, as a quorum, on the other side of a partition.
func (in *Input) unresponsivePods() string {
	var list []string
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Evidence == diagnosis.DeletionRequested && IsEndOverdue(in.Now, p.EndsBy) {
			list = append(list, diagnosis.MissingEnd(p.Name, p.Node))
		} else if !p.Evidence.HasEnded() && p.NodeNotReady {
			list = append(list, diagnosis.NotReadyNode(p.Name, p.Node, p.NodeUnread))
		} else if !p.Evidence.HasEnded() && p.NodeAbsent {
			list = append(list, "Kubernetes has not removed pod "+p.Name+" yet, whose node "+p.Node+" no longer exists")
		}
	}
	return strings.Join(list, ", and ")
}

// keepCopy keeps what the recovery member may hold after its source has stopped responding: that may be the only
// copy. An eviction looks like a person that deletes the pod, so the pod starts again on its PVC. Only a person who
// deletes that PVC discards the copy.
func (in *Input) keepCopy(r *v1beta2.RecoveryStatus) (Decision, bool) {
	p := in.RecoveryMember.Pod
	switch {
	case in.refills(r):
		return Decision{}, false
	case in.RecoveryMember.PVCDeleted:
		return in.abandon(r, "the deletion of PVC "+r.RecoveryMember+" of the recovery member was requested"), true
	case !p.isEnding() && p != nil && p.MountsSource && p.Node == "" && in.hasLostPVC(r):
		// No node takes a pod with a PVC that is lost. On a node the pod may still be copying that PVC.
		return Decision{Step: RestartRecoveryMember{}}, true
	case !p.isEnding():
		return Decision{}, false
	case p.Terminating:
		return in.waitForEnd(r, "recovery member "+r.RecoveryMember+" starts again on its PVC when its pod has ended"), true
	default:
		return Decision{Step: RestartRecoveryMember{}}, true
	}
}

// waitForRecoveryMember says what keeps the recovery member from serving. If its source no longer
// exists, it may have been filled before, and then holds the only copy.
func (in *Input) waitForRecoveryMember(r *v1beta2.RecoveryStatus) Decision {
	message := "recovery member " + r.RecoveryMember + " does not serve yet" + in.RecoveryMember.Pod.reason()
	if in.refills(r) && r.Source.PVC != "" {
		return wait(OnResponse, ReasonWaitingForRecoveryMember, message, diagnosis.NoActionYet+" "+in.abandonRemedy(r))
	}
	if in.refills(r) {
		return wait(OnResponse, ReasonWaitingForRecoveryMember, message, diagnosis.NoActionYet+" "+in.cancelRemedy())
	}
	others := ""
	if best := in.source(""); best != nil {
		others = "; member " + best.Name + " responds, and is no source: " + whyNoSource(r, best)
	}
	if in.Facts.MayComeBack(r.Source.Member) {
		return wait(OnResponse, ReasonWaitingForRecoveryMember, message+"; member "+r.Source.Member+", its source, does not respond"+others,
			"No action needed if member "+r.Source.Member+" comes back. "+in.abandonRemedy(r))
	}
	if others == "" {
		others = ", and no other member responds"
	}
	return wait(OnResponse, ReasonSourceLost, message+"; member "+r.Source.Member+", its source, no longer exists"+others,
		in.lostRemedy(r)+" "+in.abandonRemedy(r))
}

// lostRemedy says what continues a recovery whose source is lost.
func (in *Input) lostRemedy(r *v1beta2.RecoveryStatus) string {
	serves := "No action needed if recovery member " + r.RecoveryMember + " serves"
	switch {
	case r.Source.PVC == "":
		return serves + ", or if another member responds that has lost no more: then the recovery starts again from that member."
	case in.RecoveryMember.HasPVC && in.RecoveryMember.Pod != nil && in.RecoveryMember.Pod.MountsSource && !in.RecoveryMember.Pod.Running:
		return serves + ". If its pod cannot mount PVC " + r.Source.PVC + ", delete pod " + r.RecoveryMember + ": another pod starts on the PVC of the recovery member if that was filled."
	default:
		return serves + "."
	}
}

// whyNoSource says why a member that responds does not take the place of the source.
func whyNoSource(r *v1beta2.RecoveryStatus, best *diagnosis.Member) string {
	if r.Member != "" {
		return "the request names member " + r.Member
	}
	if r.Source.PVC != "" {
		return "recovery member " + r.RecoveryMember + " may hold the only copy of the data of member " + r.Source.Member
	}
	return fmt.Sprintf("it has read the log up to index %d, and member %s up to %d", best.RaftIndex, r.Source.Member, r.Source.RaftIndex)
}

// abandonRemedy says how a person ends a recovery that cannot continue.
func (in *Input) abandonRemedy(r *v1beta2.RecoveryStatus) string {
	const kept = ": pods and PVCs of the old members are kept, and an EtcdRestore can restore a backup."
	first := "To abandon the recovery, "
	if in.Desired.Automatic {
		first += "set spec.recovery.quorumLoss to Manual and "
	}
	switch {
	case in.refills(r):
		return first + "delete pod " + r.RecoveryMember + kept
	case in.RecoveryMember.HasPVC:
		return first + "delete PVC " + r.RecoveryMember + ", which discards its copy" + kept
	default:
		return "To discard the copy of the recovery member, delete pod " + r.RecoveryMember + ". The recovery starts again only from a member that has lost no more, or if member " +
			r.Source.Member + " cannot come back. Otherwise it is abandoned" + kept
	}
}

// cancelRemedy says how a person ends a recovery whose source responds. Nothing was changed by it.
func (in *Input) cancelRemedy() string {
	remedy := "To end the recovery and choose another source, cancel it: kubectl etcd cancel " + in.Desired.Cluster + "."
	if in.Desired.Automatic {
		remedy += " Set spec.recovery.quorumLoss to Manual first, or another recovery begins."
	}
	return remedy
}

// pauses is true while a recovery member that Kubernetes has ended is not created
// again, for example one that used too much of the disk of its node. Each attempt fetches
// the whole backup, and what has ended one attempt may end the next. The second attempt
// starts at once. The longer the recovery takes, the longer later attempts wait.
// A change of the spec may help, so it starts the next attempt at once.
func (in *Input) pauses(r *v1beta2.RecoveryStatus) bool {
	p := in.RecoveryMember.Pod
	if r.Trigger != v1beta2.RecoveryTriggerRestore || p == nil || !p.Finished || p.Terminating || p.Outdated {
		return false
	}
	pause := min(p.Made.Sub(r.RequestedAt.Time)/2, maxPause)
	// A clock that was set back does not make it longer.
	age := in.Now.Sub(p.Made)
	return age >= 0 && age < pause
}

// unfit says why the recovery member must be created again; empty if it need not. One with a PVC that cannot
// be filled again is never unfit.
func (in *Input) unfit(r *v1beta2.RecoveryStatus) string {
	p, hasPVC := in.RecoveryMember.Pod, in.hasRecoveryPVC(r)
	switch {
	case p.isEnding() && (in.refills(r) || !hasPVC):
		return "the pod of recovery member " + r.RecoveryMember + " was deleted" + p.reason()
	case p != nil && p.Away && !in.RecoveryMember.Serves && in.refills(r):
		return "recovery member " + r.RecoveryMember + " is away: " + p.AwayWhy
	case p != nil && p.LacksPVC && !p.Running && in.refills(r):
		return "the PVC of recovery member " + r.RecoveryMember + " no longer exists"
	case p == nil && !hasPVC && !in.refills(r) && r.Source.PVC != "":
		return "PVC " + r.Source.PVC + " no longer exists, and no data was copied from it yet"
	case p == nil && !hasPVC && !in.refills(r):
		return "member " + r.Source.Member + " no longer responds, and no data was copied from it yet"
	case p == nil && in.cannotBump(r):
		return "the version has changed, and the one that is declared now cannot raise the revision"
	case in.isOutdated() && in.refills(r):
		return "recovery member " + r.RecoveryMember + " does not run, and the spec has changed since its pod was created, or a policy gave it an image that cannot be pulled"
	default:
		return ""
	}
}

// betterSource says why a recovery must be filled from another source than it was; empty if it need not.
func (in *Input) betterSource(r *v1beta2.RecoveryStatus) string {
	if in.canReadVolume(r) {
		return "member " + r.Source.Member + " no longer responds, and its PVC is read instead"
	}
	best := in.source("")
	if r.Trigger == v1beta2.RecoveryTriggerRestore || best == nil {
		return ""
	}
	p, source := in.RecoveryMember.Pod, in.source(r.Source.Member)
	mayHoldCopy := in.mayHoldCopy(r)
	switch {
	case source != nil && source.RaftIndex > r.Source.RaftIndex:
		return "member " + source.Name + " has accepted writes meanwhile"
	case r.Member != "":
		return ""
	case r.Source.PVC != "" && (in.refills(r) || !mayHoldCopy):
		return "member " + best.Name + " responds"
	case r.Source.PVC != "":
		return ""
	case best.RaftIndex > r.Source.RaftIndex:
		return "member " + best.Name + " responds and has lost less"
	case source == nil && best.RaftIndex == r.Source.RaftIndex && p != nil && !p.Running && p.Waiting != "":
		return "member " + best.Name + " responds and has lost no more, and member " + r.Source.Member + " does not respond"
	case source == nil && !mayHoldCopy && !in.Facts.MayComeBack(r.Source.Member):
		return "member " + r.Source.Member + " no longer exists"
	default:
		return ""
	}
}

// hasRecoveryPVC is true if the recovery member has a PVC that is not being deleted, and that may hold a copy.
func (in *Input) hasRecoveryPVC(r *v1beta2.RecoveryStatus) bool {
	return in.RecoveryMember.HasPVC || in.Facts.HasPVC(r.RecoveryMember)
}

// isOutdated is true if the recovery member does not run and was made from another
// declaration than the present one. Its etcd may never start; nothing in a pod says whether it would.
func (in *Input) isOutdated() bool {
	p := in.RecoveryMember.Pod
	return p != nil && !p.isEnding() && !p.Running && p.Outdated
}

// mayHoldOnlyCopy is true for a recovery member that cannot be filled again, and that may have been filled. Only a
// person who deletes its PVC discards the copy, or its pod if it has no PVC.
func (in *Input) mayHoldOnlyCopy(r *v1beta2.RecoveryStatus) bool {
	return !in.refills(r) && in.mayHoldCopy(r)
}

// mayHoldCopy is true if the recovery member has a PVC, or a pod whose container runs.
func (in *Input) mayHoldCopy(r *v1beta2.RecoveryStatus) bool {
	p := in.RecoveryMember.Pod
	return in.hasRecoveryPVC(r) || p != nil && p.Running && !p.isEnding()
}

// hasLostPVC is true if the PVC that the recovery reads no longer exists or is being deleted.
func (in *Input) hasLostPVC(r *v1beta2.RecoveryStatus) bool {
	return r.Source.PVC != "" && !in.refills(r)
}

// refills is true while what fills the recovery member still exists. If it does not, the
// recovery member may hold the only copy.
func (in *Input) refills(r *v1beta2.RecoveryStatus) bool {
	if r.Source.PVC != "" {
		return in.Facts.HasPVC(r.Source.PVC)
	}
	return r.Trigger == v1beta2.RecoveryTriggerRestore || in.source(r.Source.Member) != nil
}
