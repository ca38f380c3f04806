// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestAutomaticRestore(t *testing.T) {
	backedUp := func(verified bool) func(*Input) {
		return func(in *Input) { in.LastBackup = &v1beta2.LastBackup{Name: "nightly", Verified: verified} }
	}
	const request = "RequestRestore c-first-aid-7c8f5059 from nightly lost a b c, wait WaitingForRestore"
	checkDecisions(t, []decision{
		{"the last backup", nothing, edits(lostFor(time.Hour), backedUp(true)), request},
		{"not before the loss is proven", nothing, edits(backedUp(true), func(in *Input) { in.Desired.Automatic = true }), goesOn},
		{"not at once", nothing, edits(lostFor(time.Second), backedUp(true)), goesOn},
		{"not unless it may", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) { in.Desired.Automatic = false }), goesOn},
		{"not one that was not verified", nothing, edits(lostFor(time.Hour), backedUp(false)), "wait BackupNotVerified"},
		{"not one of members whose data differed", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) { in.LastBackup.DataDiffers = true }), "wait LastBackupDataDiffers"},
		{"not one that only a request can decrypt", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) { in.LastBackup.Encrypted = true }), "wait BackupEncrypted"},
		{"there is none", nothing, edits(lostFor(time.Hour)), "wait NoBackup"},
		{"not while a member responds", noLeader, edits(lostFor(time.Hour), backedUp(true)), "Record Filling from a lost b c"},
		{"not while a pod is left", "a:down b:nopod c:nopod", edits(lostFor(time.Hour), backedUp(true)), goesOn},
		{"not while a volume is left", "a:nopod,claim b:nopod c:nopod", edits(lostFor(time.Hour), backedUp(true)), goesOn},
		{"not while a volume is left whose member has no quorum", unready, edits(lostFor(time.Hour), backedUp(true)), "Record Filling from a lost b c"},
		{"again after other members are lost", nothing, edits(lostFor(time.Hour), backedUp(true), recorded(succeeded), func(in *Input) {
			in.Members[2].ID = "4"
		}), strings.Replace(request, "7c8f5059", "a9eed93a", 1)},
		{"once, and it was abandoned", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseAbandoned)), "wait RestoreEnded"},
		{"once, and what it made was lost", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseSucceeded)), "wait RestoreEnded"},
		{"once, and the record names another recovery by now", nothing, edits(lostFor(time.Hour), backedUp(true), recorded(succeeded), lossRestore(v1beta2.RestorePhaseFailed)), "wait RestoreEnded"},
		{"once, and nothing recorded it", nothing, edits(lostFor(time.Hour), backedUp(true), lossRestore(v1beta2.RestorePhaseSucceeded)), "wait RestoreEnded"},
		{"once, and it is under way", nothing, edits(lostFor(time.Hour), backedUp(true), lossRestore(v1beta2.RestorePhaseVerifying)), "wait WaitingForRestore"},
		{"once, and it was just created", nothing, edits(lostFor(time.Hour), backedUp(true), lossRestore("")), "wait WaitingForRestore"},
		{"once for the members that are lost now", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseSucceeded), func(in *Input) {
			in.Members[2].ID = "4"
		}), strings.Replace(request, "7c8f5059", "a9eed93a", 1)},
		{"once, in whatever order they are listed", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) {
			in.Members[0].ID, in.Members[2].ID = in.Members[2].ID, in.Members[0].ID
		}), request},
		{"once, though the record is lost meanwhile", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) { in.RecordedID = "" }), request},
	})
}

// TestLossRestoreIsShown: the cluster says what the EtcdRestore of its loss waits for. After that has ended without a
// change, deleting it has the controller create it again.
func TestLossRestoreIsShown(t *testing.T) {
	backedUp := func(in *Input) { in.LastBackup = &v1beta2.LastBackup{Name: "nightly", Verified: true} }
	waits := func(in *Input) {
		in.LossRestore.Conditions = []metav1.Condition{{Type: v1beta2.ConditionReady, Status: metav1.ConditionFalse, Message: "the store is away"}}
	}
	const again = "delete EtcdRestore c-first-aid-7c8f5059"
	for _, test := range []struct {
		name            string
		edits           []func(*Input)
		message, remedy string
		again           bool
	}{
		{"it waits", edits(lossRestore(v1beta2.RestorePhaseVerifying), waits), "the store is away", "See the status", false},
		{"it has failed before the recovery began", edits(lossRestore(v1beta2.RestorePhaseFailed)), "Why", "another EtcdRestore", true},
		{"its recovery was abandoned", edits(lossRestore(v1beta2.RestorePhaseFailed), restoredByItself(abandoned)), "", "another EtcdRestore", false},
	} {
		d, _ := Decide(input(t, nothing, append(edits(lostFor(time.Hour), backedUp), test.edits...)...))
		if d.Wait == nil || !strings.Contains(d.Wait.Message, test.message) || !strings.Contains(d.Wait.Remedy, test.remedy) || strings.Contains(d.Wait.Remedy, again) != test.again {
			t.Errorf("%s: %+v", test.name, d.Wait)
		}
	}
}

// lossRestore is an EtcdRestore of this loss in a phase.
func lossRestore(phase v1beta2.RestorePhase) func(*Input) {
	return func(in *Input) { in.LossRestore = &v1beta2.RestoreStatus{Phase: phase, Reason: "Why"} }
}

// restoredByItself is an automatic restore of the cluster whose members are a, b and c, in a phase.
func restoredByItself(phase v1beta2.RecoveryPhase) func(*Input) {
	return func(in *Input) {
		in.Recorded = &v1beta2.RecoveryStatus{
			ID: "c-first-aid-7c8f5059", Trigger: v1beta2.RecoveryTriggerRestore, Phase: phase, Source: v1beta2.RecoverySource{Restore: "c-first-aid-7c8f5059"},
		}
	}
}

// TestVersionThatCannotBump: the version may change after a restore was requested, to one whose
// program cannot raise the revision. A recovery member that is to raise it would never start.
func TestVersionThatCannotBump(t *testing.T) {
	const old = "3.3.27"
	desires := func(version string) func(*Input) { return func(in *Input) { in.Desired.Version = version } }
	bumps := func(by int64) func(*v1beta2.RecoveryStatus) {
		return func(r *v1beta2.RecoveryStatus) { r.RevisionBump, r.ExpectedLoss = by, "everything" }
	}
	fills := func(r *v1beta2.RecoveryStatus) { r.ExpectedLoss = "" }
	checkDecisions(t, []decision{
		{"one that the request names", serving, edits(asked(restores, bumps(5)), desires(old)), "Abandon"},
		{"one that the request for a new cluster names", serving, edits(asked(restores, bumps(revisionBump+5), fills), desires(old)), "Abandon"},
		{"one that the request names, and it can", serving, edits(asked(restores, bumps(5)), desires(testVersion)), "Record Filling from "},
		{"before the recovery member is made", serving, edits(recorded(filling, restores, bumps(revisionBump)), recoveryPVC, desires(old)), "StartAgain"},
		{"it was made by one that can", serving, edits(recorded(filling, restores, bumps(revisionBump)), recoveryPVC, memberPod(""), desires(old)), goesOn},
		{"no bump", serving, edits(recorded(filling, restores), recoveryPVC, desires(old)), "Fill " + recoveryMember},
	})
	for version, want := range map[string]int64{old: 0, testVersion: revisionBump + 5} {
		r := recordOf(t, input(t, serving, asked(restores, bumps(revisionBump+5)), desires(version)))
		if r.RevisionBump != want || strings.Contains(r.ExpectedLoss, "cannot raise the revision") != (want == 0) {
			t.Errorf("%s: %+v", version, r)
		}
	}
}
