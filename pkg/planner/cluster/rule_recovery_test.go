// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// lost is a cluster whose only responsive member is a.
const lost = "a:noleader,index=90 b:nopod,index=0 c:nopod,index=0"

// asked puts a request into the status.
func asked(edit ...func(*v1beta2.RecoveryStatus)) func(*Observed) {
	return func(o *Observed) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhasePending,
			OldMembers: []string{"a", "b", "c"}, RequestedAt: metav1.NewTime(testNow),
		}
		for _, e := range edit {
			e(r)
		}
		o.Cluster.Status.Recovery = r
	}
}

// recorded puts a recovery into the record.
func recorded(phase v1beta2.RecoveryPhase, edit ...func(*v1beta2.RecoveryStatus)) func(*Observed) {
	return func(o *Observed) {
		r := &v1beta2.RecoveryStatus{
			ID: "one", Trigger: v1beta2.RecoveryTriggerRequest, Phase: phase, RecoveryMember: "seed",
			Source:     v1beta2.RecoverySource{Member: "a", RaftIndex: 90},
			OldMembers: []string{"a", "b", "c"}, OldClusterID: "c0ffee",
		}
		if phase == v1beta2.RecoveryPhaseCutover || phase == v1beta2.RecoveryPhaseCleaning {
			r.ClusterID = "beef"
		}
		if phase == v1beta2.RecoveryPhaseCutover {
			o.RecoveryBudget = Current
		}
		for _, e := range edit {
			e(r)
		}
		o.Record.Recovery = r
		if r.Source.Backup != nil { // only the status authorizes a backup
			o.Cluster.Status.Recovery = r.DeepCopy()
		}
	}
}

func recoveryPod(id uint64, edit ...func(*RecoveryMember)) func(*Observed) {
	return func(o *Observed) {
		o.RecoveryMember = RecoveryMember{Pod: &Pod{Name: "seed", UID: "pod-seed", Owned: true, Running: true}, Hidden: true, Serves: id != 0, ClusterID: id}
		for _, e := range edit {
			e(&o.RecoveryMember)
		}
	}
}

// ready has pods be ready as far as Kubernetes knows.
func ready(names ...string) func(*Observed) {
	return func(o *Observed) {
		for _, name := range names {
			podByName(o.Pods, name).Ready = true
		}
	}
}

func crashes(r *RecoveryMember) { r.Pod.Running = false }

// evicted is a recovery member that Kubernetes has ended, which was made some time before now.
func evicted(ago time.Duration) func(*RecoveryMember) {
	return func(r *RecoveryMember) {
		r.Pod.Running, r.Pod.Finished, r.Pod.Waiting, r.Pod.Made = false, true, "Evicted: disk", testNow.Add(-ago)
	}
}

func stale(r *RecoveryMember)      { r.Pod.Template = "before" }
func otherImage(r *RecoveryMember) { r.Pod.Outdated = true }

// automatic is a cluster that recovers by itself. Its quorum is lost for an hour, and for
// provenFor it has been proven that the loss is permanent.
func automatic(provenFor time.Duration) func(*Observed) {
	return func(o *Observed) {
		unproven(o)
		since := metav1.NewTime(testNow.Add(-provenFor))
		o.Cluster.Status.PermanentQuorumLossSince = &since
	}
}

// unproven is the same before a status reported a permanent loss.
func unproven(o *Observed) {
	o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
	o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{
		Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue,
		LastTransitionTime: testNow.Add(-time.Hour).Format(time.RFC3339),
	}}
}

// later is another recovery than the requested one.
func later(r *v1beta2.RecoveryStatus) { r.ID = "two" }

// begun are the recoveries that were ever begun.
func begun(ids ...string) func(*Observed) {
	return func(o *Observed) { o.Record.Recoveries = ids }
}

func restores(r *v1beta2.RecoveryStatus) {
	r.Trigger, r.Source.Backup = v1beta2.RecoveryTriggerRestore, &v1beta2.BackupPlace{SHA256: "authorized"}
}
func early(r *v1beta2.RecoveryStatus) { r.RequestedAt = metav1.NewTime(testNow.Add(-time.Hour)) }

const (
	pending   = v1beta2.RecoveryPhasePending
	filling   = v1beta2.RecoveryPhaseFilling
	cutover   = v1beta2.RecoveryPhaseCutover
	cleaning  = v1beta2.RecoveryPhaseCleaning
	succeeded = v1beta2.RecoveryPhaseSucceeded
	abandoned = v1beta2.RecoveryPhaseAbandoned
)

func TestRecoveryStarts(t *testing.T) {
	checkDecisions(t, []decision{
		{"no request", 3, lost, edits(noQuorum), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"a request", 3, lost, edits(noQuorum, asked()), "recovery: RecordRecovery Filling from a"},
		{"not while a quorum responds", 3, "a b c:nopod", edits(asked()), "recovery: RecordRecovery Abandoned"},
		{"not for a cluster that sleeps", 0, lost, edits(noQuorum, asked()), "recovery: RecordRecovery Abandoned"},
		{"no member responds yet", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, asked()), "recovery: wait WaitingForSurvivor"},
		{"by itself, after a while", 3, lost, edits(noQuorum, automatic(time.Hour)), "recovery: RecordRecovery Filling from a lost b c"},
		{"by itself not from one of two members whose data differs", 5, "a:noleader,index=90 b:noleader,index=80 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0",
			edits(noQuorum, automatic(time.Hour), corruptData), "quorum: FindMember c, FindMember d, FindMember e, wait QuorumLost"},
		{"by itself, but not at once", 3, lost, edits(noQuorum, automatic(time.Second)), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself, but not when the loss was proven just now", 3, lost, edits(noQuorum, unproven), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself, but not a moment too soon", 3, lost, edits(noQuorum, automatic(recovery.Grace-time.Millisecond)), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"by itself only if the loss is permanent", 3, "a:noleader,index=90 b:down,index=0 c:nopod,index=0", edits(noQuorum, automatic(time.Hour)),
			"quorum: wait QuorumLost"},
		{"by itself only if a volume cannot bring it back", 3, "a:noleader,claim,index=90 b:down,claim,index=0 c:down,claim,index=0",
			edits(noQuorum, automatic(time.Hour)), "quorum: wait QuorumLost"},
		{"the same one is over", 3, lost, edits(noQuorum, recorded(abandoned), asked()), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"not once more, after others", 3, lost, edits(noQuorum, asked(), recorded(succeeded, later), begun("one", "two")), "recovery: RecordRecovery Abandoned"},
	})
}

func TestNothingIsLeft(t *testing.T) {
	nothing := "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0"
	backedUp := func(verified bool) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Revision: 7, Verified: verified}
		}
	}
	request := "recovery: RequestRestore c-first-aid-7c8f5059 from nightly of 7 lost a b c, wait WaitingForRestore"
	checkDecisions(t, []decision{
		{"the last backup", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true)), request},
		{"not when the loss was proven just now", 3, nothing, edits(noQuorum, unproven, backedUp(true)), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"not unless it may", 3, nothing, edits(noQuorum, backedUp(true)), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"not while a volume is left", 3, "a:nopod,claim,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, automatic(time.Hour), backedUp(true)),
			"recreate-pods: CreatePod a[a b c]"},
		{"not for a cluster that sleeps", 0, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true)), "hibernate"},
		{"again after other members are lost", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true), recorded(succeeded), func(o *Observed) {
			o.Etcd.Members[2].ID = 4
		}), strings.Replace(request, "7c8f5059", "a9eed93a", 1)},
		{"once, though the record is lost meanwhile", 3, nothing, edits(noQuorum, automatic(time.Hour), backedUp(true), func(o *Observed) {
			o.Record.Record = resources.Record{ClusterID: unknownClusterID}
		}), request},
	})
}

func TestFillRecoveryMember(t *testing.T) {
	checkDecisions(t, []decision{
		{"the recovery member is made", 3, lost, edits(noQuorum, recorded(filling)), "recovery: CreateRecoveryMember seed"},
		{"old members of a restore come back, whether or not Kubernetes takes the recovery member", 3, "a:claim b:claim c:claim,nopod",
			edits(recorded(filling, restores)), "recovery: CreatePod c[a b c], CreateRecoveryMember seed"},
		{"others may come back meanwhile", 3, "a:noleader,claim,index=90 b:claim,nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(filling), recoveryPod(0)), "recovery: GuardRecoveryMember, CreatePod b[a b c], wait WaitingForRecoveryMember"},
		{"a quorum that comes back goes on untouched", 3, "a b c:nopod", edits(recorded(filling), recoveryPod(0xbeef)),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Abandoned"},
		{"it serves", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0xbeef)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"the recovery member is taken away", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0, func(r *RecoveryMember) { r.Pod.Terminating = true })),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"it never starts as it was declared", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0, crashes, stale)),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"it never starts from its image", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0, crashes, otherImage)),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"it may hold the only copy", 3, "a:down,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(filling), recoveryPod(0, crashes, stale)), "recovery: wait WaitingForRecoveryMember"},
		{"members that can come back do, meanwhile", 3, "a:nopod,index=0 b:claim,nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(filling), recoveryPod(0)), "recovery: GuardRecoveryMember, CreatePod b[a b c], wait SourceLost"},
		{"members with a bad spec are repaired, meanwhile", 3, "a:claim,down,index=0 b:claim,down,stale,index=0 c:claim,down,stale,index=0",
			edits(noQuorum, recorded(filling), recoveryPod(0)), "recovery: GuardRecoveryMember, RecreatePod b " + testVersion + " idle, RecreatePod c " + testVersion + " idle, wait WaitingForRecoveryMember"},
		{"a restore leaves the cluster alone meanwhile", 3, "a b c", edits(recorded(filling, restores), recoveryPod(0)), "steady"},
		{"a restore keeps the cluster running meanwhile", 3, "a b", edits(recorded(filling, restores), recoveryPod(0)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a restore whose recovery member was evicted twice", 3, "a b c", edits(recorded(filling, restores, early), recoveryPod(0, evicted(time.Minute))), "steady"},
		{"a new cluster waits, too", 3, "", edits(unresponsive, recorded(filling, restores, early), recoveryPod(0, evicted(time.Minute))), "recovery: wait WaitingForRecoveryMember"},
		{"a survivor names a quorum that may serve, and the status does not", 3, lost,
			edits(noQuorum, unmanagedPod("d", PodVoter), unmanagedPod("e", PodVoter), ready("d", "e"), viewOf("a", "a", "d", "e"), recorded(filling), recoveryPod(0xbeef)),
			"recovery: GuardRecoveryMember, wait OldMemberMayRun"},
		{"two pods are being deleted and may serve until then", 3, "a:noleader,index=90 b:unknown,terminating,index=0 c:unknown,terminating,index=0",
			edits(noQuorum, recorded(filling), recoveryPod(0xbeef), func(o *Observed) { podByName(o.Pods, "b").EndsBy, podByName(o.Pods, "c").EndsBy = o.Now, o.Now }), "recovery: GuardRecoveryMember, wait OldMemberMayRun"},
		{"beside an old member whose end is overdue", 3, "a b c:overdue", edits(recorded(filling, restores), recoveryPod(0xbeef)), "recovery: wait OldMemberMayRun"},
		{"beside one that is about to end", 3, "a b c:terminating", edits(recorded(filling, restores), recoveryPod(0xbeef), func(o *Observed) { podByName(o.Pods, "c").EndsBy = o.Now }),
			"recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"a restore of a new cluster", 3, "", edits(unresponsive, recorded(filling, restores), recoveryPod(0)), "recovery: wait WaitingForRecoveryMember"},
		{"a record that a user deleted", 3, lost, edits(noQuorum, asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID = filling, "c0ffee" })),
			"recovery: RecordRecovery Filling from "},
		{"a status from before a later recovery", 3, "a b c", edits(asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID, r.RecoveryMember = filling, "0ld", "x" })),
			"recovery: DeleteRecoveryMember x, RecordRecovery Abandoned"},
		{"a status from before a later recovery, and a record that was wiped", 3, "a b c", edits(asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID, r.RecoveryMember = filling, "0ld", "x" }),
			func(o *Observed) { o.Record.ClusterID = "" }), "record: WriteRecord c0ffee"},
	})
}

func TestRecoveryCutover(t *testing.T) {
	hidden := func(o *Observed) { o.RecoveryMember.Hidden, o.RecoveryBudget = true, Current }
	published := func(o *Observed) {
		o.RecoveryMember.Hidden, o.Etcd.ClusterID, o.Record.ClusterID = false, 0xbeef, "beef"
	}
	checkDecisions(t, []decision{
		{"the old members go", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef)), "recovery: FenceOldMembers, RecordRecovery Cleaning"},
		{"not before the recovery member serves", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0)), "recovery: wait WaitingForRecoveryMember"},
		{"the recovery member is lost without a volume, and all that it was filled from", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0",
			edits(noQuorum, recorded(cutover)), "recovery: UnguardRecoveryMember, RecordRecovery Abandoned gone seed"},
		{"the recovery member comes back on its volume", 3, lost, edits(noQuorum, recorded(cutover), hidden), "recovery: CreateRecoveryMember seed"},
		{"old members of a restore that were deleted stay so", 3, "a:claim,nopod b:claim,nopod c:claim,nopod", edits(noQuorum, recorded(cutover, restores), hidden), "recovery: CreateRecoveryMember seed"},
		{"it never starts as it was declared", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0, crashes, stale)), "recovery: DeletePod seed"},
		{"on its volume it can start otherwise", 3, "", edits(noQuorum, persist, recorded(cutover), recoveryPod(0, crashes, stale)),
			"recovery: DeletePod seed"},
		{"it may hold the only copy", 3, "", edits(noQuorum, recorded(cutover), recoveryPod(0, crashes, stale)), "recovery: wait WaitingForRecoveryMember"},
		{"the recovery member is published", 3, "", edits(noQuorum, recorded(cleaning), hidden), "recovery: PublishRecoveryMember seed"},
		{"the recovery member proves a write", 3, "seed", edits(recorded(cleaning), published), "recovery: VerifyWrite, CleanUpOldPVCs, RecordRecovery Succeeded"},
		{"volumes stay until it does", 3, "seed:sick", edits(noQuorum, recorded(cleaning), published), "quorum: wait QuorumLost"},
		{"no member has responded yet", 3, "seed:sick", edits(noQuorum, recorded(cleaning), published, func(o *Observed) {
			o.Etcd.Members = o.Etcd.Members[:0]
			for _, name := range []string{"a", "b", "c"} {
				o.Etcd.Members = append(o.Etcd.Members, Member{Name: name})
			}
		}), "quorum: FindMember a, FindMember b, FindMember c, wait QuorumLost"},
		{"the recovery ends when the published member is lost at once", 3, "seed:nopod", edits(noQuorum, recorded(cleaning), published), "recovery: RecordRecovery Succeeded gone seed"},
		{"a recovered cluster grows", 3, "seed", edits(recorded(succeeded), published), "scale-up: AddLearner c-new, AdmitPod c-new[seed c-new]"},
	})
}

// TestRecoveryMemberIsGuarded: from when it is filled until it is behind the Services, a budget rejects evictions of
// the recovery member.
func TestRecoveryMemberIsGuarded(t *testing.T) {
	budget := func(s ObjectState) func(*Observed) { return func(o *Observed) { o.RecoveryBudget = s } }
	hidden := func(o *Observed) { o.RecoveryMember.Hidden = true }
	disabled := func(o *Observed) { o.Cluster.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled }
	noMain := func(o *Observed) { o.PodDisruptionBudget.State = Missing }
	const fence = "FenceOldMembers, RecordRecovery Cleaning"
	checkDecisions(t, []decision{
		{"before the cutover is recorded", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0xbeef)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"not while it is filled", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0, crashes), budget(Missing)), "recovery: wait WaitingForRecoveryMember"},
		{"its container starts again and again", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0, crashes), budget(Current)), "recovery: wait WaitingForRecoveryMember"},
		{"it is filled, and its source may be lost", 3, lost, edits(noQuorum, recorded(filling), recoveryPod(0)), "recovery: GuardRecoveryMember, wait WaitingForRecoveryMember"},
		{"it is filled from a backup, which stays", 3, "a b c", edits(recorded(filling, restores), recoveryPod(0)), "steady"},
		{"the first try failed", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef), budget(Missing)), "recovery: GuardRecoveryMember, " + fence},
		{"a user has edited it", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef), budget(Drifted)), "recovery: GuardRecoveryMember, " + fence},
		{"another program owns it", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef), budget(NotOwned)), "recovery: " + fence},
		{"no budget is declared", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef), disabled, budget(Missing), noMain), "recovery: " + fence},
		{"no budget is declared any more", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef), disabled, budget(Current), noMain), "recovery: UnguardRecoveryMember, " + fence},
		{"the member is not published yet", 3, "", edits(noQuorum, recorded(cleaning), hidden, budget(Current)), "recovery: PublishRecoveryMember seed"},
		{"no recovery is under way", 3, "a b c", edits(budget(Current)), "steady: UnguardRecoveryMember"},
		{"another program's stays", 3, "a b c", edits(budget(NotOwned)), "steady"},
	})
}

// TestRecoveryIsCancelled: the annotation that cancels an operation ends a recovery that has replaced nothing, and no other.
func TestRecoveryIsCancelled(t *testing.T) {
	cancels := func(id string) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Status.Recovery = o.Record.Recovery.DeepCopy()
			o.Cluster.Annotations = map[string]string{resources.AnnotationCancelOperation: id}
		}
	}
	const survivor = "a:noleader,index=90 b:nopod,index=0 c:nopod,index=0"
	o := observed(t, 3, survivor, noQuorum, recorded(filling), recoveryPod(0))
	id := o.Record.Recovery.ID
	if wait := Decide(o).Wait; wait == nil || !strings.Contains(wait.Remedy, "kubectl etcd cancel c.") {
		t.Errorf("no remedy says how it is cancelled: %+v", wait)
	}
	checkDecisions(t, []decision{
		{"it is cancelled", 3, survivor, edits(noQuorum, recorded(filling), recoveryPod(0), cancels(id)), "recovery: DeleteRecoveryMember seed, RecordRecovery Abandoned"},
		{"another recovery was cancelled", 3, survivor, edits(noQuorum, recorded(filling), recoveryPod(0), cancels("other")), "recovery: GuardRecoveryMember, wait WaitingForRecoveryMember"},
		{"a restore has its own way", 3, "a b c", edits(recorded(filling, restores), recoveryPod(0), cancels(id)), "steady"},
	})
}

func TestRecoveryIsTold(t *testing.T) {
	o := observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum)
	status := Status(o, Decide(o))
	message := ""
	for _, c := range status.Conditions {
		if c.Type == v1beta2.ClusterConditionQuorumLost {
			message = c.Message
		}
	}
	for _, want := range []string{"a (raft index 90)", "etcdclusters/c/recover", "dryRun=All"} {
		if !strings.Contains(message, want) {
			t.Errorf("QuorumLost does not say %q: %s", want, message)
		}
	}
	if *status.Tolerance >= 0 || status.MemberStatuses[0].RaftIndex != 90 {
		t.Errorf("tolerance %d, raft index %d", *status.Tolerance, status.MemberStatuses[0].RaftIndex)
	}
	plan := Decide(observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum, asked()))
	record := plan.Actions[0].(RecordRecovery).Recovery
	if loss := record.ExpectedLoss; !strings.Contains(loss, "raft index 90") || !strings.Contains(loss, "Member c is not available as a source") {
		t.Errorf("the plan says %q", loss)
	}
	if record.RecoveryMember != newName || record.OldClusterID != "c0ffee" || record.RevisionBump != 1_000_000_000 || record.Source.Member != "a" ||
		record.Version != testVersion || len(record.Survivors) != 1 {
		t.Errorf("the plan is %+v", record)
	}
}

// TestRecoveryOfAnEtcdThatCannotRaiseTheRevision: the controller does not request what that
// version of etcd does not know, and the status reports that before the recovery.
func TestRecoveryOfAnEtcdThatCannotRaiseTheRevision(t *testing.T) {
	old := func(version string) func(*Observed) {
		return func(o *Observed) {
			o.Cluster.Spec.Version = version
			for i := range o.Etcd.Members {
				o.Etcd.Members[i].Version = version
			}
		}
	}
	for version, bump := range map[string]int64{"3.3.27": 0, "3.4.23": 0, "3.5.9": 0, "3.4.27": 1_000_000_000, "3.5.10": 1_000_000_000} {
		plan := Decide(observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:down,index=0", noQuorum, asked(), old(version)))
		record := plan.Actions[0].(RecordRecovery).Recovery
		if record.Version != version || record.RevisionBump != bump || strings.Contains(record.ExpectedLoss, "cannot raise the revision") != (bump == 0) {
			t.Errorf("%s: the plan is %+v", version, record)
		}
	}
}

// TestSourceLostIsReported: the status names the lost member, and what a person can do.
func TestSourceLostIsReported(t *testing.T) {
	o := observed(t, 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", noQuorum, recorded(filling), recoveryPod(0))
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Reason != "SourceLost" || !strings.Contains(b.Message, "member a") || !strings.Contains(b.Unblock, "delete pod seed") {
		t.Errorf("blocked by %+v", b)
	}
	if !strings.Contains(status.Recovery.Message, "no longer exists, and no other member responds") {
		t.Errorf("the recovery says %q", status.Recovery.Message)
	}
}

// TestSourceThatTheStatusDoesNotKnow: the API was restored from before the source of a recovery joined. The
// record still names the source. If it does not respond any more, the recovery reads its PVC.
func TestSourceThatTheStatusDoesNotKnow(t *testing.T) {
	crashes := recoveryPod(0, func(m *RecoveryMember) { m.Pod.Running, m.Pod.Made = false, testNow.Add(-time.Hour) })
	pvc := func(name string) func(*Observed) {
		return func(o *Observed) { o.PVCs = append(o.PVCs, PVC{Name: name, Owned: true}) }
	}
	const members, revives = "x:nopod,index=0", "recovery: wait WaitingForRecoveryMember"
	source := edits(noQuorum, recorded(filling), crashes, unmanagedPod("a", PodVoter), pvc("a"))
	readsPVC := func(r *v1beta2.RecoveryStatus) { r.Source = v1beta2.RecoverySource{Member: "a", PVC: "a"} }
	checkDecisions(t, []decision{
		{"its PVC is read", 1, members, source, "recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"the next attempt names its PVC", 1, members, append(source, recorded(pending)), "recovery: RecordRecovery Filling from a lost x"},
		{"it is stopped for that", 1, members, append(source, recorded(filling, readsPVC)), "recovery: StopSource a lost x"},
		{"not while its pod is ready", 1, members, append(source, ready("a")), revives},
		{"not beside another voter that the status does not know", 1, members, append(source, unmanagedPod("b", PodVoter), pvc("b")), revives},
		{"not while the voter of the status may come back", 1, "x:down,claim,index=0", source, revives},
		{"not after the cutover", 1, members, append(source, recorded(cutover)), "recovery: wait WaitingForRecoveryMember"},
	})
}

// TestWayOut: the status announces an automatic recovery only where one will start.
func TestWayOut(t *testing.T) {
	for text, byItself := range map[string]bool{
		"a:noleader,index=90 b:nopod,index=0 c:nopod,index=0": true,
		"a:noleader,index=90 b:down,index=0 c:nopod,index=0":  false,
	} {
		o := observed(t, 3, text, noQuorum, automatic(time.Second))
		loss := diagnoseQuorumLoss(&o)
		if loss.Permanent != byItself || strings.Contains(loss.Remediation, "needed: after") != byItself || strings.Contains(loss.Remediation, "/recover ") == byItself {
			t.Errorf("%s: permanent %t: %s", text, loss.Permanent, loss.Remediation)
		}
	}
}

// TestWayOutByABackup: the request that restores the last backup is named where there is
// one, and only where nothing is left that could come back.
func TestWayOutByABackup(t *testing.T) {
	nothing, volume := "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", "a:down,claim,index=0 b:nopod,index=0 c:nopod,index=0"
	for _, test := range []struct {
		members string
		last    *v1beta2.LastBackup
		named   bool
	}{
		{nothing, &v1beta2.LastBackup{Name: "nightly", Verified: true}, true},
		{nothing, &v1beta2.LastBackup{Name: "nightly"}, false},
		{nothing, nil, false},
		{volume, &v1beta2.LastBackup{Name: "nightly", Verified: true}, false},
	} {
		o := observed(t, 3, test.members, noQuorum)
		o.Cluster.Status.LastBackup = test.last
		way := diagnoseQuorumLoss(&o).Remediation
		if named := strings.Contains(way, "etcdclusters/c/restore") && strings.Contains(way, "EtcdBackup nightly"); named != test.named || !strings.Contains(way, "with an EtcdRestore") {
			t.Errorf("%s with %+v: %s", test.members, test.last, way)
		}
	}
}

// TestEncryptedBackupNeedsARequest: only a user knows the Secret that decrypts the last backup, so the status of a cluster
// that restores automatically promises nothing.
func TestEncryptedBackupNeedsARequest(t *testing.T) {
	for _, encrypted := range []bool{true, false} {
		o := observed(t, 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", noQuorum, automatic(time.Second))
		o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly", Verified: true, Encrypted: encrypted}
		way := diagnoseQuorumLoss(&o).Remediation
		if strings.Contains(way, "spec.decryption") != encrypted || strings.Contains(strings.ToLower(way), "no action needed") == encrypted {
			t.Errorf("encrypted %t: %s", encrypted, way)
		}
	}
}

// TestStatusOffersTheRequest: no recovery begins without a request from less data than the one before it, and the status
// does not announce one.
func TestStatusOffersTheRequest(t *testing.T) {
	for members, want := range map[string]string{
		"a:down,index=0 b:noleader,index=80 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0":  "create etcdclusters/c/recover",
		"a:nopod,index=0 b:noleader,index=80 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0": "the controller recovers from the member that has lost the least",
	} {
		o := observed(t, 5, members, noQuorum, automatic(time.Second), recorded(abandoned))
		status, found := Status(o, Decide(o)), false
		for _, c := range status.Conditions {
			found = found || c.Type == v1beta2.ClusterConditionQuorumLost && strings.Contains(strings.ToLower(c.Message), want)
		}
		if !found {
			t.Errorf("%s: QuorumLost does not say %q: %+v", members, want, status.Conditions)
		}
	}
}

// TestPauseAnnouncesNoRecovery: in a pause the controller recovers nothing, and the status announces nothing.
func TestPauseAnnouncesNoRecovery(t *testing.T) {
	for _, paused := range []bool{true, false} {
		o := observed(t, 3, lost, noQuorum, automatic(time.Second))
		o.Cluster.Spec.Paused = paused
		if way := strings.ToLower(diagnoseQuorumLoss(&o).Remediation); strings.Contains(way, "no action needed") == paused {
			t.Errorf("paused %t: %s", paused, way)
		}
	}
}
