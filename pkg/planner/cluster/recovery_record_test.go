// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// recordOf returns the record that is written next.
func recordOf(t *testing.T, o Observed) v1beta2.RecoveryStatus {
	t.Helper()
	for _, a := range Decide(o).Actions {
		if record, ok := a.(RecordRecovery); ok {
			return record.Recovery
		}
	}
	t.Fatal("nothing is recorded")
	return v1beta2.RecoveryStatus{}
}

func leftover(o *Observed) { o.Pods = append(o.Pods, Pod{Name: "x", UID: "pod-x", Owned: true}) }

func madeAgo(ago time.Duration) func(*RecoveryMember) {
	return func(r *RecoveryMember) { r.Pod.Made = testNow.Add(-ago) }
}

func recoveryPVC(o *Observed) {
	o.PVCs = append(o.PVCs, PVC{Name: "seed", UID: "claim-seed", Owned: true})
}

// TestRecoveryIsOfOneTime: which of the record and the status counts, whatever state the
// recovery member is in.
func TestRecoveryIsOfOneTime(t *testing.T) {
	published := func(o *Observed) { o.Etcd.ClusterID, o.Record.ClusterID = 0xbeef, "beef" }
	two := func(r *v1beta2.RecoveryStatus) { r.ID = "two" }
	wiped := func(phase v1beta2.RecoveryPhase) func(*Observed) {
		return asked(func(r *v1beta2.RecoveryStatus) { r.Phase, r.OldClusterID, r.RecoveryMember = phase, "c0ffee", "seed" })
	}
	checkDecisions(t, []decision{
		{"a request during a recovery", 3, lost, edits(noQuorum, recorded(seeding), asked(two)), "recovery: CreateRecoveryMember seed"},
		{"that is cancelled", 3, lost, edits(noQuorum, recorded(seeding), asked(two, cancelled)), "recovery: CreateRecoveryMember seed"},
		{"the record is wiped after the recovery member has served", 3, lost, edits(noQuorum, wiped(cutover), recoveryPod(0xbeef)), "recovery: RecordRecovery Cutover"},
		{"and while the old volumes are kept", 3, lost, edits(noQuorum, wiped(cleaning), recoveryPod(0xbeef)), "recovery: RecordRecovery Cleaning"},
		{"no member was ever there", 3, "", edits(unresponsive, automatic(time.Hour)), "bootstrap: CreateBootstrapPod a"},
		{"the recovery member responds, and does not serve", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xbeef, func(r *RecoveryMember) { r.Serves = false })),
			"recovery: wait WaitingForRecoveryMember"},
		{"the recovery member is of another cluster", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0xdead)), "recovery: wait WaitingForRecoveryMember"},
		{"the recovery member goes", 3, lost, edits(noQuorum, recorded(cutover), recoveryPod(0, func(r *RecoveryMember) { r.Pod.Finished, r.Pod.Terminating = true, true })),
			"recovery: wait WaitingForRecoveryMember"},
		{"the volume of the only new member is left", 3, "seed:nopod,claim", edits(noQuorum, recorded(cleaning), published), "recreate-pods: CreatePod seed[seed]"},
		{"others may bring the new quorum back", 3, "seed:nopod d:down e:down", edits(noQuorum, recorded(cleaning), published), "quorum: wait QuorumLost"},
		{"a recovery member that runs is waited for, however old", 3, "a b c", edits(recorded(seeding, restores, early), recoveryPod(0, madeAgo(time.Minute))), "steady"},
		{"an evicted one that goes is not", 3, "a b c", edits(recorded(seeding, restores, early), recoveryPod(0, evicted(time.Minute), func(r *RecoveryMember) { r.Pod.Terminating = true })),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"nor one of an image that was taken back", 3, "a b c", edits(recorded(seeding, restores, early), recoveryPod(0, evicted(time.Minute), otherImage)),
			"recovery: DeleteRecoveryMember seed, RecordRecovery Pending"},
		{"a recovery member without its pod has its volume", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, recorded(seeding), recoveryPVC),
			"recovery: CreateRecoveryMember seed"},
		{"its volume is left though none are declared", 3, "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0", edits(noQuorum, recorded(cutover), recoveryPVC),
			"recovery: CreateRecoveryMember seed"},
	})
}

// TestOldMembers: a recovery decommissions all that the cluster has beside the recovery
// member: members that have joined since it began, and pods and PVCs without a member.
func TestOldMembers(t *testing.T) {
	for name, o := range map[string]Observed{
		"it begins":                  observed(t, 3, "a:noleader,index=90 b:nopod,index=0 d:nopod,index=0", noQuorum, asked(), leftover),
		"the recovery member serves": observed(t, 3, "a b d", recorded(seeding, restores), recoveryPod(0xbeef), leftover),
		"the cutover":                observed(t, 3, "a b d", recorded(cutover), recoveryPod(0xbeef), leftover, recoveryPVC),
	} {
		r := recordOf(t, o)
		want := []string{"a", "b", "c", "d", "x"}
		if r.Phase == seeding {
			want = []string{"a", "b", "d", "x"} // c does not exist, and did not exist before
		}
		if !slices.Equal(r.OldMembers, want) {
			t.Errorf("%s: %v", name, r.OldMembers)
		}
	}
}

// TestSourceVersion: a recovery member runs what its source has run, not what is declared since.
func TestSourceVersion(t *testing.T) {
	o := observed(t, 3, "a:noleader,index=90 b:nopod,index=0 c:nopod,index=0", noQuorum, asked())
	o.Etcd.Members[0].Version = "3.5.21"
	if r := recordOf(t, o); r.Version != "3.5.21" {
		t.Errorf("the recovery member runs %s", r.Version)
	}
}

// TestWritesProveTheRightOne: a hidden recovery member is written to by itself, the new cluster through
// its members.
func TestWritesProveTheRightOne(t *testing.T) {
	published := func(o *Observed) { o.Etcd.ClusterID, o.Record.ClusterID = 0xbeef, "beef" }
	for hidden, o := range map[bool]Observed{
		true:  observed(t, 3, lost, noQuorum, recorded(seeding), recoveryPod(0xbeef)),
		false: observed(t, 3, "seed", recorded(cleaning), published),
	} {
		if write, ok := Decide(o).Actions[0].(VerifyWrite); !ok || (write.Of == WriteToRecoveryMember) != hidden {
			t.Errorf("the first action is %#v", Decide(o).Actions[0])
		}
	}
}

// TestLossOfAChosenSource tells what another member has that the chosen one has not.
func TestLossOfAChosenSource(t *testing.T) {
	chosen := func(r *v1beta2.RecoveryStatus) { r.Member = "a" }
	o := observed(t, 5, "a:noleader,index=90 b:noleader,index=95 c:nopod d:nopod e:nopod", noQuorum, asked(chosen))
	if loss := recordOf(t, o).ExpectedLoss; !strings.Contains(loss, "Member b has 5 raft entries that member a does not have") {
		t.Errorf("it says %q", loss)
	}
}

// TestDropsRequest: only a recovery that is under way takes the place of a requested one.
func TestDropsRequest(t *testing.T) {
	two := func(r *v1beta2.RecoveryStatus) { r.ID = "two" }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  bool
	}{
		"a request during a recovery": {edits(noQuorum, recorded(seeding), asked(two)), true},
		"a request after a recovery":  {edits(noQuorum, recorded(v1beta2.RecoveryPhaseSucceeded), asked(two)), false},
		"the first request":           {edits(noQuorum, asked(two)), false},
		"the recovery of the request": {edits(noQuorum, recorded(seeding), asked()), false},
		"a recovery that has begun":   {edits(noQuorum, recorded(cutover), asked(func(r *v1beta2.RecoveryStatus) { r.ID, r.Phase = "two", seeding })), false},
		"no request":                  {edits(noQuorum, recorded(seeding)), false},
	} {
		o := observed(t, 3, lost, test.edits...)
		if after := statusOf(o); DropsRequest(&o.Cluster.Status, &after) != test.want {
			t.Errorf("%s: dropped %t, and the status has %+v", name, !test.want, after.Recovery)
		}
	}
}
