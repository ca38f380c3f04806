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

func TestCutOver(t *testing.T) {
	const fills, waits = "Fill " + recoveryMember, "wait WaitingForRecoveryMember"
	const isLost = "Record Abandoned gone " + recoveryMember
	checkDecisions(t, []decision{
		{"the old members go", noLeader, edits(recorded(cutover), memberPod(newID)), "Fence"},
		{"not if their quorum is back", serving, edits(recorded(cutover), memberPod(newID)), "Abandon"},
		{"a restore replaces their quorum", serving, edits(recorded(cutover, restores), memberPod(newID)), "Fence"},
		{"not if one of them responds and nothing stores its data", noLeader, edits(recorded(cutover, restores, func(r *v1beta2.RecoveryStatus) { r.OnlyIfUnresponsive = true }), memberPod(newID)), "Abandon"},
		{"no way back", noLeader, edits(recorded(cutover), memberPod(newID), asked(cancelled)), "Fence"},
		{"not before the recovery member serves", noLeader, edits(recorded(cutover), memberPod("")), waits},
		{"it responds, and does not serve", noLeader, edits(recorded(cutover), memberPod(newID, func(m *RecoveryMember) { m.Serves = false })), waits},
		{"it is of another cluster", noLeader, edits(recorded(cutover), memberPod("dead")), waits},
		{"it goes", noLeader, edits(recorded(cutover), memberPod("", terminating, func(m *RecoveryMember) { m.Pod.Finished = true })), waits},
		{"a restore looks after the old members while its member restarts", serving, edits(recorded(cutover, restores), memberPod("", terminating), hidden), "ReviveOldMembers, " + waits},
		{"a restore looks after the old members while its member finds no room", serving, edits(recorded(cutover, restores), memberPod("", crashes), hidden), "ReviveOldMembers, " + waits},
		{"a published member has replaced them", "", edits(recorded(cutover, restores), memberPod("", crashes), func(in *Input) { in.RecoveryMember.Hidden = false }), waits},
		{"it has ended as a whole", noLeader, edits(recorded(cutover), memberPod("", evicted(time.Minute))), "RestartRecoveryMember"},
		{"it is lost without a volume, and all that it was filled from", nothing, edits(recorded(cutover)), isLost},
		{"a volume of it may be left", nothing, edits(recorded(cutover), hidden), fills},
		{"it is lost with its volume, and so is all that it was filled from", nothing, edits(recorded(cutover), persist), isLost},
		{"its volume is left though none are declared", nothing, edits(recorded(cutover), recoveryPVC), fills},
		{"another old member may come back, without this recovery", "a:nopod b:nopod,claim c:nopod", edits(recorded(cutover)), isLost},
		{"one of them may respond again", "a:down b:nopod c:nopod", edits(recorded(cutover)), isLost},
		{"a backup is still there", "", edits(recorded(cutover, restores)), fills},
		{"only the record names its backup", nothing, edits(recorded(cutover, restores), unreported), "wait WaitingForRestore"},
		{"its second volume was never filled, and only the record names its backup", nothing, edits(recorded(cutover, restores), unreported, recoveryPVC, hidden, unfilled), "wait WaitingForRestore"},
		{"its volume has the data, and only the record names its backup", nothing, edits(recorded(cutover, restores), unreported, recoveryPVC, hidden), fills},
		{"no EtcdRestore names its backup again", nothing, edits(recorded(cutover, restores), unreported, restoreOver), isLost},
		{"no EtcdRestore names its backup again, and a volume is left", nothing, edits(recorded(cutover, restores), unreported, restoreOver, recoveryPVC, hidden, unfilled), "Abandon"},
		{"the member that it was filled from responds: another recovery begins there", noLeader, edits(recorded(cutover)), isLost},
		{"it comes back on its volume", noLeader, edits(recorded(cutover), hidden), fills},
		{"it never starts as it was declared", noLeader, edits(recorded(cutover), memberPod("", crashes, outdated)), "RestartRecoveryMember"},
		{"on its volume it can start otherwise", "", edits(persist, recorded(cutover), memberPod("", crashes, outdated)), "RestartRecoveryMember"},
		{"it may hold the only copy", "", edits(recorded(cutover), memberPod("", crashes, outdated)), waits},
	})
}

// TestUnfilledRestoreEnds: a backup that cannot be read again keeps no cluster in the cutover. The deletion of the EtcdRestore
// ends it while the recovery member has no data and no client has reached it.
func TestUnfilledRestoreEnds(t *testing.T) {
	const fills, waits = "Fill " + recoveryMember, "wait WaitingForRecoveryMember"
	const left = "a:nopod,claim b:nopod c:nopod"
	const isLost = "Record Abandoned gone " + recoveryMember
	hasRun := func(m *RecoveryMember) { m.Pod.HasRun = true }
	hasPVC := func(m *RecoveryMember) { m.HasPVC = true }
	isUnfilled := func(m *RecoveryMember) { m.HasPVC, m.Unfilled = true, true }
	fails := func(m *RecoveryMember) { m.Pod.FailsToFill = true }
	fenced := func(in *Input) { in.Fenced = []string{"a", "b"} }
	ends := func(edit ...func(*RecoveryMember)) []func(*Input) {
		return edits(recorded(cutover, restores), memberPod("", append(edit, crashes)...), restoreOver)
	}
	checkDecisions(t, []decision{
		{"its pod never fills its directory", left, ends(), "Abandon"},
		{"its pod never fills its second PVC", left, append(ends(isUnfilled), persist), "Abandon"},
		{"its pod is lost", left, edits(recorded(cutover, restores), restoreOver), isLost},
		{"its pod is lost, and its second PVC is empty", left, edits(persist, recorded(cutover, restores), hidden, unfilled, recoveryPVC, restoreOver), "Abandon"},
		{"an old member exists that does not respond", "a:down,claim b:nopod c:nopod", ends(isUnfilled), "Abandon"},
		{"its pod is deleted before it has run", left, ends(terminating), "Abandon"},
		{"the fence has taken the PVCs from the old members", nothing, append(ends(isUnfilled), persist, fenced), "Abandon"},
		{"its pod is lost after the fence has begun", nothing, edits(recorded(cutover, restores), restoreOver, fenced), isLost},
		{"no old member is left, and the backup cannot be read", nothing, append(ends(isUnfilled, fails), persist), "Abandon"},
		{"not if it was filled before the pod of a failed attempt was deleted", nothing, append(ends(isUnfilled, fails, terminating), persist), waits},
		{"not if the only old pod is being deleted", "a:terminating b:nopod c:nopod", ends(), waits},
		{"not with the data on its PVC although the agent fails", nothing, append(ends(hasPVC, fails), persist), waits},
		{"not if no old member is left: it is all that the cluster has", nothing, ends(), waits},
		{"not if its pod is lost and no old member is left", nothing, edits(recorded(cutover, restores), restoreOver), fills},
		{"not while an EtcdRestore wants it", nothing, edits(recorded(cutover, restores), memberPod("", crashes)), waits},
		{"not if its pod is lost while an EtcdRestore wants it", nothing, edits(recorded(cutover, restores)), fills},
		{"not while etcd runs", nothing, edits(recorded(cutover, restores), memberPod("", hasRun), restoreOver), waits},
		{"not when etcd has run in its pod", nothing, ends(hasRun), waits},
		{"not with the data on its PVC", nothing, append(ends(hasPVC), persist), waits},
		{"not with the data on its PVC without a pod", nothing, edits(persist, recorded(cutover, restores), hidden, recoveryPVC, restoreOver), fills},
		{"not after clients may have reached it", nothing, append(ends(), func(in *Input) { in.RecoveryMember.Hidden = false }), waits},
		{"a recovery has no EtcdRestore", nothing, edits(recorded(cutover), memberPod("", crashes), restoreOver), waits},
	})
	const back, another = "old members start again on their PVCs", "another EtcdRestore can begin"
	for name, test := range map[string]struct {
		members string
		edits   []func(*Input)
		want    string
	}{
		"without data":             {left, edits(recorded(cutover, restores), memberPod("", crashes)), back},
		"the fence has begun":      {nothing, edits(recorded(cutover, restores), memberPod("", crashes), fenced), back},
		"only a pod is left":       {"a:down b:nopod c:nopod", edits(recorded(cutover, restores), memberPod("", crashes)), "the pods of old members stay"},
		"no old member is left":    {nothing, edits(recorded(cutover, restores), memberPod("", crashes, fails)), another},
		"its pod may still fill":   {nothing, edits(recorded(cutover, restores), memberPod("", crashes)), ""},
		"with data":                {left, edits(recorded(cutover, restores), memberPod("", crashes, hasRun)), ""},
		"a recovery from a member": {left, edits(recorded(cutover), memberPod("", crashes)), ""},
	} {
		d, _ := Decide(input(t, test.members, test.edits...))
		if d.Wait == nil || strings.Contains(d.Wait.Remedy, "delete EtcdRestore back") != (test.want != "") || !strings.Contains(d.Wait.Remedy, test.want) {
			t.Errorf("%s: it waits for %+v, want the remedy %q", name, d.Wait, test.want)
		}
	}
}

func TestCleanUp(t *testing.T) {
	const member, isLost = recoveryMember, "Record Abandoned gone " + recoveryMember
	checkDecisions(t, []decision{
		{"the recovery member is published", "", edits(recorded(cleaning), hidden), "Publish"},
		{"the recovery member proves a write", member, edits(recorded(cleaning), published), "CleanUp"},
		{"not with the old members", serving, edits(recorded(cleaning)), goesOn},
		{"volumes stay until it does", member + ":down", edits(recorded(cleaning), published), goesOn},
		{"no member has responded yet", member + ":down", edits(recorded(cleaning), published, func(in *Input) {
			in.Facts.Members = nil
			for _, name := range []string{"a", "b", "c"} {
				in.Facts.Members = append(in.Facts.Members, diagnosis.Member{Name: name})
			}
		}), goesOn},
		{"the recovery ends when the published member is lost at once", member + ":nopod", edits(recorded(cleaning), published), "Record Succeeded gone " + member},
		{"the old members come back when the published member is lost before it was read", "a:nopod b:nopod c:nopod", edits(recorded(cleaning), published), isLost},
		{"not while it may serve clients", "a:nopod b:nopod c:nopod", edits(recorded(cleaning), published, func(in *Input) {
			in.Facts.Pods = append(in.Facts.Pods, diagnosis.Pod{Name: member, Evidence: diagnosis.DeletionRequested})
		}), goesOn},
		{"not while its pod and its PVC are being deleted", "a:nopod b:nopod c:nopod", edits(recorded(cleaning), memberPod("", terminating), published, func(in *Input) {
			in.Facts.Pods = append(in.Facts.Pods, diagnosis.Pod{Name: member, Evidence: diagnosis.DeletionRequested})
		}), goesOn},
		{"a pod that only ended is not waited for", "a:nopod b:nopod c:nopod", edits(recorded(cleaning), memberPod("", evicted(time.Minute)), published, func(in *Input) {
			in.Facts.Pods = append(in.Facts.Pods, diagnosis.Pod{Name: member, Evidence: diagnosis.PodFinished})
		}), "Record Succeeded"},
		{"not what a restore has replaced", "a:nopod b:nopod c:nopod", edits(recorded(cleaning, restores), published), "Record Succeeded gone " + member},
		{"the recovery ends when the pod of the published member has ended", member + ":finished", edits(recorded(cleaning), memberPod("", evicted(time.Minute)), published, func(in *Input) {
			in.Linearizable = false
		}), "Record Succeeded"},
		{"the volume of the only new member is left", member + ":nopod,claim", edits(recorded(cleaning), published), goesOn},
		{"others may bring the new quorum back", member + ":nopod d:down e:down", edits(recorded(cleaning), published), goesOn},
		{"most new members are lost, and the recovery member has restarted", member + ":unready,claim d:nopod e:nopod", edits(recorded(cleaning), published), "Record Succeeded"},
		{"the same of a status that names an old member", member + ":unready,claim a:nopod e:nopod", edits(recorded(cleaning), published), goesOn},
		{"the recovery is over", member, edits(recorded(succeeded), published), goesOn},
	})
}

// TestPVCsAreKept: a PVC is deleted only after a restore, if a pre-restore backup has its data. A snapshot of a
// member that responds lacks what is in its log and not known to be committed, so it has not the data of any PVC. The PVC
// that was read is the only other copy.
func TestPVCsAreKept(t *testing.T) {
	survivors := func(r *v1beta2.RecoveryStatus) {
		r.Survivors = []v1beta2.RecoverySurvivor{{Name: "a", RaftIndex: 90}, {Name: "b", RaftIndex: 90}, {Name: "c", RaftIndex: 91}}
	}
	all := []string{"a", "b", "c"}
	for name, test := range map[string]struct {
		edit func(*v1beta2.RecoveryStatus)
		want []string
	}{
		"the source, and members that did not respond": {func(*v1beta2.RecoveryStatus) {}, all},
		"members with as much as the source":           {survivors, all},
		"the PVC that was read, and the others":        {fromVolume, all},
		"a restore that nothing was stored for":        {func(r *v1beta2.RecoveryStatus) { restores(r); r.OnlyIfUnresponsive = true }, all},
		"a restore after a pre-restore backup":         {restores, nil},
	} {
		d, _ := Decide(input(t, recoveryMember, recorded(cleaning, test.edit), published))
		if step, is := d.Step.(CleanUp); !is || !slices.Equal(step.Kept, test.want) {
			t.Errorf("%s: %+v, want %q", name, d.Step, test.want)
		}
	}
}

// TestRecheck: what brings the next decision about.
func TestRecheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   *Input
		want Recheck
	}{
		{"it is published", input(t, "", recorded(cleaning), hidden), AtOnce},
		{"it ends", input(t, recoveryMember, recorded(cleaning), published), AtOnce},
		{"it ends with its members", input(t, recoveryMember+":nopod", recorded(cleaning), published), AtOnce},
		{"there is no backup", input(t, nothing, lostFor(time.Hour)), AtRest},
		{"no member responds", input(t, "a:down", asked()), OnResponse},
		{"the recovery member does not serve", input(t, noLeader, recorded(filling), memberPod("")), OnResponse},
		{"the recovery member does not serve before the cutover", input(t, noLeader, recorded(cutover), memberPod("")), OnResponse},
		{"an old member may run", input(t, "a b c:terminating", recorded(filling, restores), memberPod(newID)), OnEvent},
		{"its source does not respond", input(t, "a:down b:nopod c:nopod", recorded(filling), memberPod("")), OnResponse},
		{"its source is lost", input(t, nothing, recorded(filling), memberPod("")), OnResponse},
		{"an unseen quorum may serve", input(t, noLeader, unmanagedPods(true, "d", "e"), viewOf("a", "a", "d", "e"), recorded(filling), memberPod(newID)), OnEvent},
		{"it pauses", input(t, "", neverServed, recorded(filling, restores, early), memberPod("", evicted(time.Minute))), OnEvent},
		{"a restore is requested", input(t, nothing, lostFor(time.Hour), func(in *Input) {
			in.LastBackup = &v1beta2.LastBackup{Name: "nightly", Verified: true}
		}), AtRest},
		{"it is recorded", input(t, noLeader, asked()), OnEvent},
		{"it is abandoned", input(t, serving, asked()), OnEvent},
	} {
		if d, _ := Decide(tt.in); d.Recheck != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, d.Recheck, tt.want)
		}
	}
}

// TestUnconfirmedPreRestoreBackup: what no quorum confirmed may lack what the others have. So no quorum that responds or may
// serve unseen is replaced, and the PVCs of the old members are kept. They also are if a user has suspended that backup.
func TestUnconfirmedPreRestoreBackup(t *testing.T) {
	unconfirmed := func(in *Input) { in.Unconfirmed, in.BackedUp = true, 100 }
	lately := func(in *Input) { in.QuorumLostFor = diagnosis.UnstoredGrace - 1 }
	long := func(in *Input) { in.QuorumLostFor = diagnosis.UnstoredGrace }
	stored := func(in *Input) { in.Stored = true }
	upTo := func(index int64) func(*Input) {
		return func(in *Input) { in.Unconfirmed, in.BackedUp = true, index }
	}
	alone := recorded(filling, restores, func(r *v1beta2.RecoveryStatus) { r.OnlyIfUnresponsive = true })
	electing := func(in *Input) { in.Facts.UnreadFor = time.Second }
	checkDecisions(t, []decision{
		{"a quorum responds", serving, edits(recorded(cutover, restores), memberPod(newID), hidden, unconfirmed), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"no quorum responds", noLeader, edits(recorded(cutover, restores), memberPod(newID), hidden, unconfirmed), "Fence"},
		{"the quorum is lost", noLeader, edits(recorded(filling, restores), memberPod(newID), unconfirmed), "BeginCutover"},
		{"all members respond, as in an election", "a:noleader,index=90 b:noleader,index=90 c:noleader,index=90", edits(recorded(filling, restores), memberPod(newID), unconfirmed, electing), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"no member has more", "a:noleader,index=90 b:noleader,index=90 c:nopod d:nopod e:nopod", edits(recorded(filling, restores), memberPod(newID), upTo(90)), "BeginCutover"},
		{"a member has more", "a:noleader,index=90 b:noleader,index=91 c:nopod d:nopod e:nopod", edits(recorded(filling, restores), memberPod(newID), upTo(90), long), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"a learner has more, and no backup is of a learner", "a:noleader,index=90 b:noleader,learner,index=91 c:nopod d:nopod", edits(recorded(filling, restores), memberPod(newID), upTo(90), long), "BeginCutover"},
		{"a quorum served since then", "a:noleader,index=500 b:nopod c:nopod", edits(recorded(filling, restores), memberPod(newID), upTo(90), long), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"a quorum served in the cutover", "a:noleader,index=500,claim b:noleader,index=500,claim c:nopod", edits(recorded(cutover, restores), memberPod(newID), hidden, upTo(90)), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"a quorum may serve unseen in the cutover", nothing, edits(unmanagedPods(true, "a", "b", "c"), recorded(cutover, restores), memberPod(newID), hidden, unconfirmed), "wait OldMemberMayRun"},
		{"another member without a PVC hangs", "a:noleader,index=90 b:down c:nopod d:nopod e:nopod", edits(recorded(filling, restores), memberPod(newID), unconfirmed, lately), "ReviveOldMembers, wait OldMemberMayRun"},
		{"it hangs for long", "a:noleader,index=90 b:down c:nopod d:nopod e:nopod", edits(recorded(filling, restores), memberPod(newID), unconfirmed, long), "BeginCutover"},
		{"another member with a PVC hangs", "a:noleader,index=90 b:down,claim c:nopod d:nopod e:nopod", edits(recorded(filling, restores), memberPod(newID), unconfirmed, lately), "BeginCutover"},
		{"nothing is stored, and a member without a PVC hangs", "a:down b:nopod c:nopod", edits(alone, memberPod(newID), lately), "wait OldMemberMayRun"},
		{"nothing is stored, and it hangs for long", "a:down b:nopod c:nopod", edits(alone, memberPod(newID), long), "BeginCutover"},
		{"a user does without a backup", "a:down b:nopod c:nopod", edits(recorded(filling, restores), memberPod(newID), lately), "BeginCutover"},
		{"a quorum may serve unseen", noLeader, edits(unmanagedPods(true, "d", "e"), viewOf("a", "a", "d", "e"), recorded(filling, restores), memberPod(newID), unconfirmed), "ReviveOldMembers, wait PreRestoreBackupTooOld"},
		{"no member responds, and a quorum may serve unseen", nothing, edits(unmanagedPods(true, "a", "b", "c"), recorded(filling, restores), memberPod(newID), unconfirmed), "wait OldMemberMayRun"},
	})
	differs := func(in *Input) { in.Facts.DataDiffers = true }
	inPublic := func(m *RecoveryMember) { m.Hidden = false }
	checkDecisions(t, []decision{
		{"data differs, and nothing that stays says so", serving, edits(recorded(filling, restores), memberPod(newID), stored, differs), "ReviveOldMembers, wait WaitingForRestore"},
		{"the same in the cutover", serving, edits(recorded(cutover, restores), memberPod(newID), stored, differs), "ReviveOldMembers, wait WaitingForRestore"},
		{"data differs, and the EtcdRestore says so", serving, edits(recorded(filling, restores), memberPod(newID), differs), "BeginCutover"},
		{"the same in the cutover, and the EtcdRestore says so", serving, edits(recorded(cutover, restores), memberPod(newID), differs), "Fence"},
		{"data of a survivor differs", noLeader, edits(recorded(cutover), memberPod(newID), stored, differs), "Fence"},
	})
	for name, test := range map[string]struct {
		edits []func(*Input)
		want  bool
	}{
		"data differs since the backup":           {edits(recorded(cutover, restores), memberPod(newID, inPublic), stored, differs), true},
		"confirmed":                               {edits(recorded(cutover, restores), memberPod(newID), stored), false},
		"unconfirmed":                             {edits(recorded(cutover, restores), memberPod(newID), unconfirmed), true},
		"a user has suspended the only one":       {edits(recorded(cutover, restores), memberPod(newID)), true},
		"the same of a cluster that never served": {edits(neverServed, recorded(cutover, restores), memberPod(newID)), false},
		"recovery from a survivor":                {edits(recorded(cutover), memberPod(newID), unconfirmed), false},
	} {
		d, _ := Decide(input(t, noLeader, test.edits...))
		step, is := d.Step.(Fence)
		if !is || step.Recovery.OnlyIfUnresponsive || step.Next.OnlyIfUnresponsive != test.want {
			t.Errorf("%s: %+v, want that PVCs are kept: %t", name, d.Step, test.want)
		}
	}
}
