// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestStart(t *testing.T) {
	from := func(name string) string { return "Record Filling from " + name }
	five := "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod"
	noSource := "a:down b:nopod c:nopod"
	checkDecisions(t, []decision{
		{"no request", noLeader, nil, goesOn},
		{"a request", noLeader, edits(asked()), from("a")},
		{"not while a quorum responds", serving, edits(asked()), "Abandon"},
		{"not when it was cancelled", noLeader, edits(asked(cancelled)), "Abandon"},
		{"not for a cluster that sleeps", noLeader, edits(asked(), size(0)), "Abandon"},
		{"not about members of another time", noLeader, edits(asked(func(r *v1beta2.RecoveryStatus) { r.OldMembers = []string{"x"} })), "Abandon"},
		{"about members that have only a PVC", "a:noleader,index=90 b:nopod,claim", edits(asked(func(r *v1beta2.RecoveryStatus) { r.OldMembers = []string{"b"} })), from("a")},
		{"a request that names no members", noLeader, edits(asked(func(r *v1beta2.RecoveryStatus) { r.OldMembers = nil })), from("a")},
		{"from the one that has lost the least", five, edits(asked()), from("b")},
		{"from the requested source", five, edits(asked(choosesA)), from("a")},
		{"of equals from a voter", "a:noleader,learner,index=90 b:noleader,index=90 c:nopod d:nopod e:nopod", edits(asked()), from("b")},
		{"from a learner that has more", "a:noleader,learner,index=91 b:noleader,index=90 c:nopod", edits(asked()), from("a")},
		{"no member responds yet", noSource, edits(asked()), "wait WaitingForSurvivor"},
		{"no member responds for as long as it may", noSource, edits(asked(func(r *v1beta2.RecoveryStatus) { r.RequestedAt.Time = testNow.Add(-sourceGrace) })), "wait WaitingForSurvivor"},
		{"no member responds at all", noSource, edits(asked(early)), "Abandon"},
		{"a pod that goes is no survivor", "a:noleader,index=90,terminating b:nopod c:nopod", edits(asked()), "wait WaitingForSurvivor"},
		{"by itself, after a while", noLeader, edits(lostFor(time.Hour)), from("a") + " lost b c"},
		{"by itself, as soon as the grace is over", noLeader, edits(lostFor(Grace)), from("a") + " lost b c"},
		{"by itself, but not at once", noLeader, edits(lostFor(time.Second)), goesOn},
		{"by itself, but not a moment too soon", noLeader, edits(lostFor(Grace - time.Millisecond)), goesOn},
		{"by itself only if the loss is permanent", noLeader, edits(func(in *Input) { in.Desired.Automatic = true }), goesOn},
		{"by itself only if the spec allows it", noLeader, edits(lostFor(time.Hour), func(in *Input) { in.Desired.Automatic = false }), goesOn},
		{"a restore of a cluster that serves", serving, edits(asked(restores)), from("")},
		{"a request after an end", noLeader, edits(recorded(abandoned), asked(later)), from("a")},
		{"the same one is over", noLeader, edits(recorded(abandoned), asked()), goesOn},
		{"not once more, after others", noLeader, edits(asked(), recorded(succeeded, later), begun("one", "two")), "Abandon"},
		{"a restore is not carried out again after others", serving, edits(asked(restores), recorded(succeeded, later), begun("one", "two")), "Abandon"},
		{"a restore is not carried out again without a record of the last one", serving, edits(asked(restores), begun("one")), "Abandon"},
		{"another request, after others", serving, edits(asked(restores), recorded(succeeded, later), begun("zero", "two")), from("")},
		{"a recovery that must start again", noLeader, edits(asked(), recorded(pending), begun("one")), from("a")},
	})
}

// TestNeverFromLess: a recovery that begins again, or another recovery without a request, takes no older data than the first
// attempt while that source may come back. Only a request that names the member accepts the loss.
func TestNeverFromLess(t *testing.T) {
	const lower, gone = "a:down b:noleader,index=80 c:nopod", "a:nopod b:noleader,index=80 c:nopod"
	const more = "a:down b:noleader,index=90 c:nopod"
	again := func(edits ...func(*v1beta2.RecoveryStatus)) func(*Input) {
		return recorded(pending, append(edits, soon)...)
	}
	chooses := func(r *v1beta2.RecoveryStatus) { r.Member = "b" }
	checkDecisions(t, []decision{
		{"the source may come back", lower, edits(again()), "wait WaitingForSurvivor"},
		{"the source may come back for long", lower, edits(recorded(pending, early)), "Abandon"},
		{"the source has its PVC", "a:nopod,claim b:noleader,index=80 c:nopod d:nopod e:nopod", edits(again()), "wait WaitingForSurvivor"},
		{"the source no longer exists", gone, edits(again()), "Record Filling from b"},
		{"another member has as much", more, edits(again()), "Record Filling from b"},
		{"a person accepts it", lower, edits(again(chooses)), "Record Filling from b"},
		{"without a request after an attempt was abandoned", lower, edits(lostFor(time.Hour), recorded(abandoned, byItself)), goesOn},
		{"without a request after the source was lost", gone, edits(lostFor(time.Hour), recorded(abandoned, byItself)), "Record Filling from b lost a c"},
		{"without a request after an attempt of earlier members", lower, edits(lostFor(time.Hour), recorded(abandoned, byItself), func(in *Input) { in.Recorded.OldClusterID = "0ld" }), "Record Filling from b lost c"},
	})
	r := recordOf(t, input(t, lower, recorded(pending, early)))
	if want := "member a has read the log up to index 90 and may come back. To accept the loss, name member b in another recovery"; !strings.Contains(r.Message, want) {
		t.Errorf("the message is %q, want %q", r.Message, want)
	}
}

func soon(r *v1beta2.RecoveryStatus) { r.RequestedAt = metav1.NewTime(testNow.Add(-time.Second)) }

// TestCurrent: which of the record and the status counts, whatever state the recovery member
// is in.
func TestCurrent(t *testing.T) {
	checkDecisions(t, []decision{
		{"a request during a recovery", noLeader, edits(recorded(filling), asked(later)), "Fill " + recoveryMember},
		{"that is cancelled", noLeader, edits(recorded(filling), asked(later, cancelled)), "Fill " + recoveryMember},
		{"the record is wiped after the recovery member has served", noLeader, edits(wiped(cutover, oldID, ""), memberPod(newID)), "Record Cutover"},
		{"the record is wiped while the old volumes are kept", noLeader, edits(wiped(cleaning, oldID, ""), memberPod(newID)), "Record Cleaning"},
		{"a record that a user deleted", noLeader, edits(wiped(filling, oldID, "")), "Record Filling from "},
		{"a status from before a later recovery", serving, edits(wiped(filling, "0ld", "")), "Abandon"},
		{"a status from before a later recovery, without a quorum", noLeader, edits(wiped(filling, "0ld", "")), "Abandon"},
		{"the recorded ID is not known", noLeader, edits(wiped(filling, "0ld", ""), func(in *Input) { in.RecordedID = "" }), "Record Filling from "},
		{"the recorded ID is not known, and a quorum has another ID", serving, edits(wiped(filling, "0ld", ""), func(in *Input) { in.RecordedID = "" }), "Abandon"},
		{"a recovery member that was published is a member", "a b " + recoveryMember, edits(wiped(cutover, "0ld", oldID, restores)), "Abandon"},
		{"one whose pod is lost has its PVC", "a b", edits(wiped(cutover, "0ld", oldID, restores), recoveryPVC), "Abandon"},
		{"the end of a recovery is recorded although its member was published", "a b " + recoveryMember, edits(wiped(cleaning, "0ld", oldID, restores)), "Record Cleaning"},
	})
}

// TestOldMembers: a recovery decommissions all that the cluster has beside the recovery
// member: members that have joined since it began, and pods and PVCs without a member.
func TestOldMembers(t *testing.T) {
	for name, in := range map[string]*Input{
		"it begins":                  input(t, "a:noleader,index=90 b:nopod d:nopod", asked(), unmanagedPods(false, "x")),
		"the recovery member serves": input(t, "a b d", recorded(filling, restores), memberPod(newID), unmanagedPods(false, "x")),
		"the cutover":                input(t, "a b d", recorded(cutover, restores), memberPod(newID), unmanagedPods(false, "x"), recoveryPVC),
	} {
		r := recordOf(t, in)
		want := []string{"a", "b", "c", "d", "x"}
		if r.Phase == filling {
			want = []string{"a", "b", "d", "x"} // c does not exist, and did not exist before
		}
		if !slices.Equal(r.OldMembers, want) {
			t.Errorf("%s: %v", name, r.OldMembers)
		}
	}
}

// TestPlanIsRecorded: the record holds what the recovery continues from, and what that loses.
func TestPlanIsRecorded(t *testing.T) {
	in := input(t, "a:noleader,index=90 b:nopod c:down", asked(), func(in *Input) { in.ReplacedID, in.Now = "replaced", testNow.Add(time.Millisecond) })
	r := recordOf(t, in)
	if loss := r.ExpectedLoss; !strings.Contains(loss, "raft index 90") || !strings.Contains(loss, "Member c is not available as a source") {
		t.Errorf("the plan says %q", loss)
	}
	if r.RecoveryMember != newName || r.OldClusterID != "replaced" || r.RevisionBump != revisionBump || r.Source.Member != "a" || r.Source.RaftIndex != 90 ||
		r.Version != testVersion || len(r.Survivors) != 1 {
		t.Errorf("the plan is %+v", r)
	}
	automatic := recordOf(t, input(t, noLeader, lostFor(time.Hour), func(in *Input) { in.Now = testNow.Add(time.Millisecond) }))
	if automatic.ID != newName || automatic.Trigger != v1beta2.RecoveryTriggerAutomatic || !automatic.RequestedAt.Time.Equal(testNow) {
		t.Errorf("the automatic recovery is %+v", automatic)
	}
}

// TestRevisionBump: the package does not request what that version of etcd does not know.
func TestRevisionBump(t *testing.T) {
	for version, bump := range map[string]int64{"3.3.27": 0, "3.4.23": 0, "3.5.9": 0, "3.4.27": revisionBump, "3.5.10": revisionBump} {
		r := recordOf(t, input(t, "b:noleader,index=80 a:noleader,index=90 c:nopod", asked(), func(in *Input) { in.Members[1].Version = version }))
		if r.Version != version || r.RevisionBump != bump {
			t.Errorf("%s: the plan is %+v", version, r)
		}
	}
}

// TestLossOfAChosenSource tells what another member has that the chosen one has not.
func TestLossOfAChosenSource(t *testing.T) {
	in := input(t, "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod", asked(choosesA))
	if loss := recordOf(t, in).ExpectedLoss; !strings.Contains(loss, "Member b has 5 raft entries that member a does not have") {
		t.Errorf("it says %q", loss)
	}
}

// TestEndIsRecorded: a recovery that ends says when, and why.
func TestEndIsRecorded(t *testing.T) {
	for want, in := range map[string]*Input{
		"it was cancelled": input(t, noLeader, asked(cancelled)),
		"":                 input(t, recoveryMember, recorded(cleaning), published),
		"recovery member r was lost with its data before it was published to clients":                     input(t, nothing, recorded(cutover)),
		"the new members were lost before the PVCs of the old members were released; those PVCs are kept": input(t, recoveryMember+":nopod", recorded(cleaning), published),
	} {
		in.Now = testNow.Add(time.Millisecond)
		if r := recordOf(t, in); r.IsInProgress() || r.Message != want || !r.CompletionTime.Time.Equal(testNow) {
			t.Errorf("it ended as %s at %v: %q, want %q", r.Phase, r.CompletionTime, r.Message, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, r := range map[string]v1beta2.RecoveryStatus{
		"the cluster goes on from member a": {Source: v1beta2.RecoverySource{Member: "a"}},
		"the cluster goes on from EtcdRestore e in the new member r, as requested by jane: it was evicted": {
			Trigger: v1beta2.RecoveryTriggerRestore, Source: v1beta2.RecoverySource{Restore: "e"}, RecoveryMember: "r", RequestedBy: "jane", Message: "it was evicted",
		},
	} {
		if got := Describe(&r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
