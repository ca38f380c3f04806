// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"strings"
	"testing"
	"time"

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
		{"there is none", nothing, edits(lostFor(time.Hour)), "wait NoBackup"},
		{"not while a member responds", noLeader, edits(lostFor(time.Hour), backedUp(true)), "Record Filling from a lost b c"},
		{"not while a pod is left", "a:down b:nopod c:nopod", edits(lostFor(time.Hour), backedUp(true)), goesOn},
		{"not while a volume is left", "a:nopod,claim b:nopod c:nopod", edits(lostFor(time.Hour), backedUp(true)), goesOn},
		{"again after other members are lost", nothing, edits(lostFor(time.Hour), backedUp(true), recorded(succeeded), func(in *Input) {
			in.Members[2].ID = "4"
		}), strings.Replace(request, "7c8f5059", "a9eed93a", 1)},
		{"once, and it was abandoned", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseAbandoned)), "wait RestoreEnded"},
		{"once, and what it made was lost", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseSucceeded)), "wait RestoreEnded"},
		{"once for the members that are lost now", nothing, edits(lostFor(time.Hour), backedUp(true), restoredByItself(v1beta2.RecoveryPhaseSucceeded), func(in *Input) {
			in.Members[2].ID = "4"
		}), strings.Replace(request, "7c8f5059", "a9eed93a", 1)},
		{"once, in whatever order they are listed", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) {
			in.Members[0].ID, in.Members[2].ID = in.Members[2].ID, in.Members[0].ID
		}), request},
		{"once, though the record is lost meanwhile", nothing, edits(lostFor(time.Hour), backedUp(true), func(in *Input) { in.RecordedID = "" }), request},
	})
}

// restoredByItself is an automatic restore of the cluster whose members are a, b and c, in a phase.
func restoredByItself(phase v1beta2.RecoveryPhase) func(*Input) {
	return func(in *Input) {
		in.Recorded = &v1beta2.RecoveryStatus{
			ID: "c-first-aid-7c8f5059", Trigger: v1beta2.RecoveryTriggerRestore, Phase: phase, Source: v1beta2.RecoverySource{Restore: "c-first-aid-7c8f5059"},
		}
	}
}
