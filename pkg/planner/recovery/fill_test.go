// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

func TestFill(t *testing.T) {
	const waits, revives = "wait WaitingForRecoveryMember", "ReviveOldMembers, wait WaitingForRecoveryMember"
	better := "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod"
	advanced := "a:noleader,index=91 b:nopod c:nopod"
	otherSource := "a:nopod b:noleader,index=80 c:nopod"
	noResponse := "a:down b:nopod c:nopod"
	checkDecisions(t, []decision{
		{"the recovery member is made", noLeader, edits(recorded(filling)), "Fill " + recoveryMember},
		{"the recovery member that was made is waited for", noLeader, edits(recorded(filling), memberPod("")), revives},
		{"a quorum that comes back goes on untouched", serving, edits(recorded(filling), memberPod(newID)), "Abandon"},
		{"it serves", noLeader, edits(recorded(filling), memberPod(newID)), "BeginCutover"},
		{"as another cluster it must", noLeader, edits(recorded(filling), memberPod(oldID)), revives},
		{"cancelled", noLeader, edits(recorded(filling), memberPod(newID), asked(cancelled)), "Abandon"},
		{"asleep", noLeader, edits(recorded(filling), memberPod(newID), size(0)), "Abandon"},
		{"the source has accepted writes meanwhile", advanced, edits(recorded(filling), memberPod(newID)), "StartAgain"},
		{"a better source responds", better, edits(recorded(filling), memberPod(newID)), "StartAgain"},
		{"a better source responds, and the request names the present source", better, edits(recorded(filling, choosesA), memberPod(newID)), "BeginCutover"},
		{"the requested source has accepted writes meanwhile", advanced, edits(recorded(filling, choosesA), memberPod(newID)), "StartAgain"},
		{"the source no longer exists and the recovery member serves", otherSource, edits(recorded(filling), memberPod(newID)), "BeginCutover"},
		{"the source no longer exists before it runs", otherSource, edits(recorded(filling), memberPod("", crashes)), "StartAgain"},
		{"the source no longer exists before it serves", otherSource, edits(recorded(filling), memberPod("")), "ReviveOldMembers, wait SourceLost"},
		{"the pod of the source is being deleted before it runs", "a:noleader,index=90,terminating b:noleader,index=80 c:nopod", edits(recorded(filling), memberPod("", crashes)), revives},
		{"the source does not respond before it serves", "a:down b:noleader,index=80 c:nopod", edits(recorded(filling), memberPod("")), revives},
		{"the source does not respond, and one that does has as much", "a:down b:noleader,index=90 c:nopod", edits(recorded(filling), memberPod("", loops)), "StartAgain"},
		{"the same while the recovery member runs", "a:down b:noleader,index=90 c:nopod", edits(recorded(filling), memberPod("")), revives},
		{"the same, and the request names the present source", "a:down b:noleader,index=90 c:nopod", edits(recorded(filling, choosesA), memberPod("", loops)), revives},
		{"the recovery member is taken away", noLeader, edits(recorded(filling), memberPod("", terminating)), "StartAgain"},
		{"it never starts as it was declared", noLeader, edits(recorded(filling), memberPod("", crashes, outdated)), "StartAgain"},
		{"it never starts as it is declared", noLeader, edits(recorded(filling), memberPod("", crashes)), revives},
		{"it runs as it was declared", noLeader, edits(recorded(filling), memberPod("", outdated)), revives},
		{"it may hold the only copy", noResponse, edits(recorded(filling), memberPod("", crashes, outdated)), revives},
		{"no member responds, and the source may come back", noResponse, edits(recorded(filling), memberPod("")), revives},
		{"the source no longer exists, and no other member responds", "a:nopod b:down c:nopod", edits(recorded(filling), memberPod("")), "ReviveOldMembers, wait SourceLost"},
		{"the source has only its PVC, and no other member responds", "a:nopod,claim b:down c:nopod", edits(recorded(filling), memberPod("")), revives},
		{"a person deletes the recovery member", nothing, edits(recorded(filling), memberPod("", terminating)), "StartAgain"},
		{"a person has deleted the recovery member", nothing, edits(recorded(filling)), "StartAgain"},
		{"a recovery member without its pod has its volume", nothing, edits(recorded(filling), recoveryPVC), "Fill " + recoveryMember},
		{"a recovery that has not begun is abandoned when nothing is left", nothing, edits(recorded(pending, early)), "Abandon"},
		{"a survivor names a quorum that may serve, and the status does not", noLeader,
			edits(unmanagedPods(true, "d", "e"), viewOf("a", "a", "d", "e"), recorded(filling), memberPod(newID)), "ReviveOldMembers, wait OldMemberMayRun"},
		{"as soon as Kubernetes knows that the pods are not ready", noLeader,
			edits(unmanagedPods(false, "d", "e"), viewOf("a", "a", "d", "e"), recorded(filling), memberPod(newID)), "BeginCutover"},
		{"a restore does not ask for such a quorum", noLeader,
			edits(unmanagedPods(true, "d", "e"), viewOf("a", "a", "d", "e"), recorded(filling, restores), memberPod(newID)), "BeginCutover"},
		{"two pods are being deleted and may serve until then", "a:noleader,index=90 b:unreachable,terminating c:unreachable,terminating",
			edits(recorded(filling), memberPod(newID), podOf("b", endsNow), podOf("c", endsNow)), "ReviveOldMembers, wait OldMemberMayRun"},
		{"the node of an old member is not ready", "a:noleader,index=90 b:down c:nopod", edits(recorded(filling), memberPod(newID), podOf("b", notReadyNode)), "ReviveOldMembers, wait OldMemberMayRun"},
		{"the node of one that has ended is not ready", "a:noleader,index=90 b:finished c:nopod", edits(recorded(filling), memberPod(newID), podOf("b", notReadyNode)), "BeginCutover"},
	})
}

// TestMembersOfLostNodesComeBack: after a person confirms that the nodes of a majority are off, Kubernetes removes their pods.
// The members start again before the recovery replaces them, because they have every acknowledged write.
func TestMembersOfLostNodesComeBack(t *testing.T) {
	const revives = "ReviveOldMembers, wait OldMemberMayRun"
	const away = "a:noleader,index=90,claim b:nopod,claim c:nopod,claim"
	podFact := func(name string, edit func(*diagnosis.Pod)) func(*Input) {
		return func(in *Input) {
			edit(&in.Facts.Pods[slices.IndexFunc(in.Facts.Pods, func(p diagnosis.Pod) bool { return p.Name == name })])
		}
	}
	isNew := func(p *diagnosis.Pod) { p.Age = time.Minute }
	noNode := func(p *Pod) { p.NodeAbsent = true }
	const starting = "a:noleader,index=90,claim b:down,claim c:down,claim"
	checkDecisions(t, []decision{
		{"the nodes are not ready", starting, edits(recorded(filling), memberPod(newID), podOf("b", notReadyNode), podOf("c", notReadyNode)), revives},
		{"the nodes were deleted, and the pods not yet", "a:noleader,index=90,claim b:unready,claim c:unready,claim", edits(recorded(filling), memberPod(newID), podOf("b", noNode), podOf("c", noNode)), revives},
		{"the pods were removed", away, edits(recorded(filling), memberPod(newID)), revives},
		{"the pods of one node were removed", "a:noleader,index=90,claim b:nopod,claim c:nopod", edits(recorded(filling), memberPod(newID)), revives},
		{"the new pods start", starting, edits(recorded(filling), memberPod(newID), podFact("b", isNew), podFact("c", isNew)), revives},
		{"the new pods do not start", starting, edits(recorded(filling), memberPod(newID)), "BeginCutover"},
		{"the only member", "a:nopod,claim", edits(recorded(filling), memberPod(newID)), revives},
		{"a quorum responds", "a b c", edits(recorded(filling), memberPod(newID)), "Abandon"},
		{"too few may come back", "a:noleader,index=90,claim b:nopod,claim c:nopod d:nopod e:nopod", edits(recorded(filling), memberPod(newID)), "BeginCutover"},
		{"a restore takes other data", away, edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
	})
}

// TestOnlyCopyIsKept: when its source does not respond, the recovery member may hold the only copy. Its pod is evicted,
// drained or deleted like any other, so only the deletion of its PVC discards that copy.
func TestOnlyCopyIsKept(t *testing.T) {
	const revives, ends = "ReviveOldMembers, wait WaitingForRecoveryMember", "wait WaitingForRecoveryMember"
	const lower, gone = "a:down b:noleader,index=80 c:nopod", "a:nopod b:noleader,index=80 c:nopod"
	onPVC := func(m *RecoveryMember) { m.HasPVC = true }
	discarded := func(m *RecoveryMember) { m.PVCDeleted = true }
	noPod := func(m *RecoveryMember) { m.Pod = nil }
	checkDecisions(t, []decision{
		{"its pod is drained", nothing, edits(recorded(filling), memberPod("", onPVC, terminating)), ends},
		{"its pod is drained after it has served", nothing, edits(recorded(filling), memberPod(newID, onPVC, terminating)), ends},
		{"its pod is drained, and a member with less responds", lower, edits(recorded(filling), memberPod("", onPVC, terminating)), ends},
		{"its pod was evicted", nothing, edits(recorded(filling), memberPod("", onPVC, evicted(time.Minute))), "RestartRecoveryMember"},
		{"its pod no longer exists", nothing, edits(recorded(filling), memberPod("", onPVC, noPod)), "Fill " + recoveryMember},
		{"its pod no longer exists, and a member with less responds", gone, edits(recorded(filling), memberPod("", onPVC, noPod)), "Fill " + recoveryMember},
		{"its pod starts again, and a member with less responds", gone, edits(recorded(filling), memberPod("", onPVC, crashes)), "ReviveOldMembers, wait SourceLost"},
		{"a member with more responds", "a:nopod b:noleader,index=91 c:nopod", edits(recorded(filling), memberPod("", onPVC, terminating)), "StartAgain"},
		{"its source responds", noLeader, edits(recorded(filling), memberPod("", onPVC, terminating)), "StartAgain"},
		{"a person deletes its PVC", lower, edits(recorded(filling), memberPod("", discarded)), "Abandon"},
		{"its PVC is being deleted, and its source responds", noLeader, edits(recorded(filling), memberPod("", discarded)), revives},
		{"it is cancelled", nothing, edits(recorded(filling), memberPod("", onPVC), asked(cancelled)), "ReviveOldMembers, wait SourceLost"},
		{"the cluster is to have no members", nothing, edits(recorded(filling), memberPod("", onPVC), size(0)), "ReviveOldMembers, wait SourceLost"},
		{"the PVC that filled it is lost", nothing, edits(recorded(filling, fromVolume), memberPod("", onPVC, terminating)), ends},
		{"the PVC that filled it is lost, and its pod too", nothing, edits(recorded(filling, fromVolume), memberPod("", onPVC, noPod)), "Fill without source " + recoveryMember},
		{"the PVC that filled it is being deleted, and its pod is lost", nothing, edits(endingPVC("a"), recorded(filling, fromVolume), memberPod("", onPVC, noPod)), "Fill without source " + recoveryMember},
		{"the PVC that filled it is lost before a node takes its pod", nothing, edits(recorded(filling, fromVolume), memberPod("", onPVC, crashes, mountsSource("")), persist), "RestartRecoveryMember"},
		{"the PVC that filled it is lost when a node has its pod", nothing, edits(recorded(filling, fromVolume), memberPod("", onPVC, crashes, mountsSource("n"))), "ReviveOldMembers, wait SourceLost"},
		{"a node takes its pod, and its source exists", "a:nopod,claim b:nopod c:nopod", edits(recorded(filling, fromVolume), memberPod("", onPVC, crashes, mountsSource(""))), revives},
		{"the PVC that filled it is lost, and a member responds", "a:nopod b:noleader,index=80 c:nopod d:nopod e:nopod", edits(recorded(filling, fromVolume), memberPod("", onPVC)), "ReviveOldMembers, wait SourceLost"},
		{"the PVC that filled it is lost, and the loss is no longer proven", "a:nopod b:nopod c:nopod", edits(unmanagedPods(true, "d"), recorded(filling, fromVolume), memberPod("", onPVC)), "ReviveOldMembers, wait SourceLost"},
	})
}

// mountsSource has the pod of the recovery member mount the PVC that the recovery reads.
func mountsSource(node string) func(*RecoveryMember) {
	return func(m *RecoveryMember) { m.Pod.MountsSource, m.Pod.Node = true, node }
}

// endingPVC adds a PVC that is being deleted.
func endingPVC(name string) func(*Input) {
	return func(in *Input) { in.Facts.PVCs = append(in.Facts.PVCs, diagnosis.PVC{Name: name, Terminating: true}) }
}

// overdue has the node of the recovery member not report that its pod has ended.
func overdue(m *RecoveryMember) {
	m.Pod.Terminating, m.Pod.Node, m.Pod.EndsBy = true, "n9", testNow.Add(-time.Minute)
}

func notReadyNode(p *Pod) { p.NodeNotReady = true }

// TestRestoreWhileMembersAreAway: a restore without a pre-restore backup leaves a member that responds again as it
// is, at any time before the cutover.
func TestRestoreWhileMembersAreAway(t *testing.T) {
	uncopied := func(r *v1beta2.RecoveryStatus) { restores(r); r.OnlyIfUnresponsive = true }
	const away = "a:down b:nopod c:nopod"
	checkDecisions(t, []decision{
		{"the recovery member is made while no member responds", away, edits(recorded(filling, uncopied)), "Fill " + recoveryMember},
		{"it serves while no member responds", "a:down,claim b:nopod c:nopod", edits(recorded(filling, uncopied), memberPod(newID)), "BeginCutover"},
		{"a quorum may serve that does not respond to the controller", "a:unready b:unready c:nopod", edits(recorded(filling, uncopied), memberPod(newID), func(in *Input) {
			for i := range in.Facts.Pods {
				in.Facts.Pods[i].Running, in.Facts.Pods[i].Ready = true, true
			}
		}), "wait OldMemberMayRun"},
		{"a member rejects the controller", away, edits(recorded(filling, uncopied), memberPod(newID), func(in *Input) { in.Facts.Denied = true }), "Abandon"},
		{"a member responds before it is made", noLeader, edits(recorded(filling, uncopied)), "Abandon"},
		{"a member responds when it serves", noLeader, edits(recorded(filling, uncopied), memberPod(newID)), "Abandon"},
		{"a quorum responds when it serves", serving, edits(recorded(filling, uncopied), memberPod(newID)), "Abandon"},
		{"a member responds before it begins", noLeader, edits(asked(uncopied)), "Abandon"},
		{"a pre-restore backup has the data", noLeader, edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
		{"a member responds before the old members are decommissioned", noLeader, edits(recorded(cutover, uncopied), memberPod(newID)), "Abandon"},
	})
	d, _ := Decide(input(t, noLeader, recorded(filling, uncopied), memberPod(newID)))
	if a, is := d.Step.(Abandon); !is || !strings.Contains(a.Recovery.Message, "member a responds again, and there is no pre-restore backup") {
		t.Errorf("it does not say why: %+v", d.Step)
	}
}

// TestRepeatedRestoreYieldsToAQuorum: it began after a permanent loss, and a quorum that responds has what clients wrote.
func TestRepeatedRestoreYieldsToAQuorum(t *testing.T) {
	repeats := func(in *Input) { in.Repeats = true }
	checkDecisions(t, []decision{
		{"before it begins", serving, edits(asked(restores), repeats), "Abandon"},
		{"when the recovery member serves", serving, edits(recorded(filling, restores), memberPod(newID), repeats), "Abandon"},
		{"before the old members are decommissioned", serving, edits(recorded(cutover, restores), memberPod(newID), repeats), "Abandon"},
		{"not to a member without a quorum", noLeader, edits(recorded(filling, restores), memberPod(newID), repeats), "BeginCutover"},
		{"not if it is no repetition", serving, edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
	})
}

// TestWritesSinceThePreRestoreBackupAreStored: a recovery member may have waited for days. Members with a quorum are not
// replaced before a fresh pre-restore backup has what they have accepted meanwhile.
func TestWritesSinceThePreRestoreBackupAreStored(t *testing.T) {
	lacks := func(in *Input) { in.LacksBackup = true }
	const waits = "ReviveOldMembers, wait PreRestoreBackupTooOld"
	checkDecisions(t, []decision{
		{"the cluster lives on until the recovery member serves", serving, edits(recorded(filling, restores), memberPod(""), lacks), goesOn},
		{"the cutover does not begin", serving, edits(recorded(filling, restores), memberPod(newID), lacks), waits},
		{"the old members are not decommissioned either", serving, edits(recorded(cutover, restores), memberPod(newID), lacks), waits},
		{"the recovery can be cancelled", serving, edits(recorded(filling, restores, cancelled), memberPod(newID), lacks), "Abandon"},
		{"it begins with a fresh backup", serving, edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
		{"a member responds without a quorum, as in an election", noLeader, edits(recorded(filling, restores), memberPod(newID), lacks), waits},
		{"a member responds without a quorum before the old members go", noLeader, edits(recorded(cutover, restores), memberPod(newID), lacks), waits},
		{"no member responds", nothing, edits(recorded(filling, restores), memberPod(newID), lacks), "BeginCutover"},
		{"no member responds, and the old members go", nothing, edits(recorded(cutover, restores), memberPod(newID), lacks), "Fence"},
		{"the EtcdRestore is deleted before the cutover", serving, edits(recorded(filling, restores), memberPod(newID), restoreOver), "Abandon"},
		{"the EtcdRestore is deleted in the cutover", serving, edits(recorded(cutover, restores), memberPod(newID), restoreOver), "Abandon"},
		{"the EtcdRestore is deleted, and no member responds", nothing, edits(recorded(cutover, restores), memberPod(newID), restoreOver), "Fence"},
	})
	for name, edit := range map[string]func(*Input){"a backup that is too old": lacks, "a deleted EtcdRestore": restoreOver} {
		d, _ := Decide(input(t, nothing, recorded(cutover, restores), memberPod(newID), edit))
		if fence, is := d.Step.(Fence); !is || !fence.Recovery.OnlyIfUnresponsive || !fence.Next.OnlyIfUnresponsive {
			t.Errorf("%s: the PVCs of the old members are not kept: %+v", name, d.Step)
		}
	}
}

// TestFillFromABackup: a cluster that serves is looked after while a restore fills the recovery
// member beside it.
func TestFillFromABackup(t *testing.T) {
	restoring := func(edit ...func(*RecoveryMember)) []func(*Input) {
		return edits(recorded(filling, restores, early), memberPod("", edit...))
	}
	made := func(ago time.Duration) func(*RecoveryMember) {
		return func(m *RecoveryMember) { m.Pod.Made = testNow.Add(-ago) }
	}
	withoutPVC := func(m *RecoveryMember) { m.Pod.LacksPVC = true }
	away := func(m *RecoveryMember) { m.Pod.Away, m.Pod.AwayWhy = true, "its node is not ready" }
	ending := "a b c:terminating"
	checkDecisions(t, []decision{
		{"it leaves the cluster alone meanwhile", serving, restoring(), goesOn},
		{"a restore leaves the cluster alone, whatever the age of the recovery member", serving, restoring(made(time.Minute)), goesOn},
		{"it never starts as it was declared", serving, restoring(crashes, outdated), "StartAgain"},
		{"its recovery member is away", serving, restoring(away), "StartAgain"},
		{"its PVC was lost before it ran", serving, restoring(crashes, withoutPVC), "StartAgain"},
		{"a recovery member that may hold the only copy stays, whatever a cache says of its PVC", "a:down b:nopod c:nopod", edits(recorded(filling), memberPod("", crashes, withoutPVC)), "ReviveOldMembers, wait WaitingForRecoveryMember"},
		{"one that runs does not wait for a PVC", serving, restoring(withoutPVC), goesOn},
		{"one that serves is not", serving, edits(recorded(filling, restores), memberPod(newID, away)), "BeginCutover"},
		{"a recovery member that may hold the only copy is not replaced", "a:down b:nopod c:nopod", edits(recorded(filling), memberPod("", away)), "ReviveOldMembers, wait WaitingForRecoveryMember"},
		{"its recovery member is evicted", serving, restoring(evicted(time.Hour - time.Second)), "StartAgain"},
		{"the recovery member of a restore was evicted a minute ago", serving, restoring(evicted(time.Minute)), goesOn},
		{"an evicted recovery member is made again when the declaration changes", serving, restoring(evicted(time.Minute), outdated), "StartAgain"},
		{"an evicted recovery member is made again when its pod is being deleted", serving, restoring(evicted(time.Minute), terminating), "StartAgain"},
		{"an evicted recovery member is made again after a pause", serving, restoring(evicted(maxPause)), "StartAgain"},
		{"an evicted recovery member is not made again before the pause is over", serving, restoring(evicted(maxPause - time.Second)), goesOn},
		{"a new cluster waits, too", "", append(restoring(evicted(time.Minute)), neverServed), "wait WaitingForRecoveryMember"},
		{"by a clock that was set back it does not", serving, restoring(evicted(-time.Minute)), "StartAgain"},
		{"a survivor is never waited with", noLeader, edits(recorded(filling, early), memberPod("", evicted(time.Minute))), "StartAgain"},
		{"it serves", serving, edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
		{"beside an old member whose end is overdue", ending, edits(recorded(filling, restores), memberPod(newID)), "ReviveOldMembers, wait OldMemberMayRun"},
		{"beside one that is about to end", ending, edits(recorded(filling, restores), memberPod(newID), podOf("c", endsNow)), "BeginCutover"},
		{"beside one that has ended", "a b c:terminating,finished", edits(recorded(filling, restores), memberPod(newID)), "BeginCutover"},
		{"a new cluster", "", edits(neverServed, recorded(filling, restores), memberPod("")), "ReviveOldMembers, wait WaitingForRecoveryMember"},
	})
}

// TestRecordDoesNotAuthorize: a tenant may write the record, so what the recovery member mounts comes from the status.
func TestRecordDoesNotAuthorize(t *testing.T) {
	askedSince := func(in *Input) { in.Reported = &v1beta2.RecoveryStatus{ID: "since", Phase: pending} }
	checkDecisions(t, []decision{
		{"only the record names the backup, and the cluster has no data", "", edits(neverServed, recorded(filling, restores), unreported), "wait WaitingForRestore"},
		{"its members start again meanwhile", serving, edits(recorded(filling, restores), unreported), "ReviveOldMembers, wait WaitingForRestore"},
		{"the recovery member is filled", serving, edits(recorded(filling, restores), unreported, memberPod("")), "ReviveOldMembers, wait WaitingForRestore"},
		{"the EtcdRestore no longer exists", "", edits(neverServed, recorded(filling, restores), unreported, restoreOver), "Abandon"},
		{"the recovery member serves", serving, edits(recorded(filling, restores), unreported, memberPod(newID)), "ReviveOldMembers, wait WaitingForRestore"},
		{"the recovery member serves, and the EtcdRestore has ended", serving, edits(recorded(filling, restores), unreported, memberPod(newID), restoreOver), "Abandon"},
		{"a person has asked for another recovery since", noLeader, edits(recorded(filling, restores), askedSince), "Abandon"},
		{"a person has asked since, in the cutover without data", noLeader, edits(recorded(cutover, restores), askedSince), "Record Abandoned gone r"},
	})
	forged := func(r *v1beta2.RecoveryStatus) { restores(r); r.Source.Backup.SHA256 = "forged" }
	in := input(t, serving, recorded(filling, forged), asked(restores))
	if r := Current(in.Recorded, in.Reported); r.Phase != filling || r.Source.Backup.SHA256 != "authorized" {
		t.Errorf("the recovery is %+v", r)
	}
	in.Reported.Source.Backup = nil
	if r := Current(in.Recorded, in.Reported); r.Source.Backup != nil {
		t.Errorf("a status without a backup takes that of the record: %+v", r.Source.Backup)
	}
}

// TestSecondRecoveryMemberSaysWhy: while the next recovery member is filled, the status says what
// ended the one before. Once the new one serves, the status no longer does.
func TestSecondRecoveryMemberSaysWhy(t *testing.T) {
	why := func(r *v1beta2.RecoveryStatus) { restores(r); r.Message = "it was evicted" }
	if r := recordOf(t, input(t, serving, recorded(pending, why))); r.Phase != filling || r.Message != "it was evicted" {
		t.Errorf("the next recovery member: %s %q", r.Phase, r.Message)
	}
	if r := recordOf(t, input(t, serving, recorded(filling, why), memberPod(newID))); r.Phase != cutover || r.Message != "" || r.ClusterID != newID {
		t.Errorf("it serves: %s %q, cluster ID %s", r.Phase, r.Message, r.ClusterID)
	}
	for want, in := range map[string]*Input{
		"was deleted: Evicted: disk":          input(t, serving, recorded(filling, restores, early), memberPod("", evicted(maxPause))),
		"member a has accepted writes":        input(t, "a:noleader,index=91 b:nopod", recorded(filling), memberPod("")),
		"member b responds and has lost less": input(t, "a:noleader,index=90 b:noleader,index=91", recorded(filling), memberPod("")),
		"member a no longer exists":           input(t, "a:nopod b:noleader,index=80", recorded(filling), memberPod("", crashes)),
		"no data was copied from it yet":      input(t, nothing, recorded(filling)),
		"the spec has changed since its pod":  input(t, noLeader, recorded(filling), memberPod("", crashes, outdated)),
		"is away: its node is not ready (r)":  input(t, noLeader, recorded(filling), memberPod("", func(m *RecoveryMember) { m.Pod.Away, m.Pod.AwayWhy = true, "its node is not ready (r)" })),
	} {
		if r := recordOf(t, in); r.Phase != pending || !strings.Contains(r.Message, want) {
			t.Errorf("the recovery becomes %s, because %q, want %q", r.Phase, r.Message, want)
		}
	}
}

// loops is a recovery member that could not fetch the data.
func loops(m *RecoveryMember) { m.Pod.Running, m.Pod.Waiting = false, "CrashLoopBackOff" }

// TestWaitNamesTheWayOut: a recovery that cannot continue says so, and what a person can do.
func TestWaitNamesTheWayOut(t *testing.T) {
	for _, tt := range []struct {
		name            string
		in              *Input
		message, remedy string
	}{
		{"the source is lost", input(t, nothing, recorded(filling), memberPod("")), "member a, its source, no longer exists, and no other member responds", "delete pod r"},
		{"the source does not respond", input(t, "a:down b:nopod c:nopod", recorded(filling), memberPod("")), "member a, its source, does not respond", "delete pod r"},
		{"another member responds and has less", input(t, "a:down b:noleader,index=80 c:nopod", recorded(filling), memberPod("", loops)),
			"member b responds, and is no source: it has read the log up to index 80, and member a up to 90", "delete pod r"},
		{"another member responds, and a person has chosen the source", input(t, "a:down b:noleader,index=95 c:nopod", recorded(filling, choosesA), memberPod("", loops)),
			"member b responds, and is no source: the request names member a", "delete pod r"},
		{"an old member may run", input(t, "a b c:terminating", recorded(filling, restores), memberPod(newID)), "pod c", "Bring the node back."},
		{"the source does not respond, and its copy has a PVC", input(t, "a:down b:nopod c:nopod", recorded(filling), memberPod("", func(m *RecoveryMember) { m.HasPVC = true })),
			"member a, its source, does not respond", "To abandon the recovery, delete PVC r"},
		{"the next recovery would begin at once", input(t, nothing, lostFor(time.Hour), recorded(filling), memberPod("", func(m *RecoveryMember) { m.HasPVC = true })),
			"no longer exists", "set spec.recovery.quorumLoss to Manual and delete PVC r"},
		{"the source no longer exists, and a member with less responds", input(t, "a:nopod b:noleader,index=80 c:nopod", recorded(filling), memberPod("")),
			"no longer exists; member b responds, and is no source: it has read the log up to index 80", "delete pod r"},
		{"the source is a PVC that is lost, and its pod is on a node", input(t, nothing, recorded(filling, fromVolume), memberPod("", func(m *RecoveryMember) { m.HasPVC = true }, crashes, mountsSource("n"))),
			"member a, its source, no longer exists", "If its pod cannot mount PVC a, delete pod r: another pod starts on the PVC of the recovery member"},
		{"the pod of the only copy ends", input(t, nothing, recorded(filling), memberPod("", func(m *RecoveryMember) { m.HasPVC = true }, terminating)), "pod r is being deleted", "No action needed"},
		{"the node of the only copy is off", input(t, nothing, recorded(filling), memberPod("", func(m *RecoveryMember) { m.HasPVC = true }, overdue)), "its node n9 has not reported", "Bring the node back."},
		{"the node is off at the cutover", input(t, nothing, persist, recorded(cutover), memberPod("", fills, overdue)), "its node n9 has not reported", "Bring the node back."},
		{"the node of an ordinary recovery member is off", input(t, nothing, persist, recorded(cutover), memberPod("", overdue)), "its node n9 has not reported", "Bring the node back."},
		{"the pod does not run", input(t, noLeader, recorded(filling), memberPod("", func(m *RecoveryMember) { m.Pod.Waiting = "ImagePullBackOff" })),
			"recovery member r does not serve yet: ImagePullBackOff", "No action needed"},
	} {
		d, _ := Decide(tt.in)
		if d.Wait == nil || !strings.Contains(d.Wait.Message, tt.message) || !strings.Contains(d.Wait.Remedy, tt.remedy) {
			t.Errorf("%s: %+v", tt.name, d.Wait)
		}
	}
}
