// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func madeAgo(ago time.Duration) func(*RecoveryMember) {
	return func(r *RecoveryMember) { r.Pod.Made = testNow.Add(-ago) }
}

// TestRulesBesideRecovery: while a recovery has nothing to do, other rules look after the cluster.
func TestRulesBesideRecovery(t *testing.T) {
	published := func(o *Observed) { o.Etcd.ClusterID, o.Record.ClusterID = 0xbeef, "beef" }
	checkDecisions(t, []decision{
		{"no member was ever there", 3, "", edits(unresponsive, automatic(time.Hour)), "bootstrap: CreateBootstrapPod a"},
		{"the volume of the only new member is left", 3, "seed:nopod,claim", edits(noQuorum, recorded(cleaning), published), "recreate-pods: CreatePod seed[seed]"},
		{"others may bring the new quorum back", 3, "seed:nopod d:down e:down", edits(noQuorum, recorded(cleaning), published), "quorum: wait QuorumLost"},
		{"a recovery member that runs is waited for, however old", 3, "a b c", edits(recorded(filling, restores, early), recoveryPod(0, madeAgo(time.Minute))), "steady"},
	})
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
	guarded := func(o *Observed) { o.RecoveryBudget = Current }
	for hidden, o := range map[bool]Observed{
		true:  observed(t, 3, lost, noQuorum, recorded(filling), recoveryPod(0xbeef), guarded),
		false: observed(t, 3, "seed", recorded(cleaning), published),
	} {
		if write, ok := Decide(o).Actions[0].(VerifyWrite); !ok || (write.Of == WriteToRecoveryMember) != hidden {
			t.Errorf("the first action is %#v", Decide(o).Actions[0])
		}
	}
}

// TestDropsRequest: only a recovery that is under way takes the place of a requested one.
func TestDropsRequest(t *testing.T) {
	two := func(r *v1beta2.RecoveryStatus) { r.ID = "two" }
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  bool
	}{
		"a request during a recovery": {edits(noQuorum, recorded(filling), asked(two)), true},
		"a request after a recovery":  {edits(noQuorum, recorded(v1beta2.RecoveryPhaseSucceeded), asked(two)), false},
		"the first request":           {edits(noQuorum, asked(two)), false},
		"the recovery of the request": {edits(noQuorum, recorded(filling), asked()), false},
		"a recovery that has begun":   {edits(noQuorum, recorded(cutover), asked(func(r *v1beta2.RecoveryStatus) { r.ID, r.Phase = "two", filling })), false},
		"no request":                  {edits(noQuorum, recorded(filling)), false},
	} {
		o := observed(t, 3, lost, test.edits...)
		if after := statusOf(o); DropsRequest(&o.Cluster.Status, &after) != test.want {
			t.Errorf("%s: dropped %t, and the status has %+v", name, !test.want, after.Recovery)
		}
	}
}

// TestRecoveryReadsItsRestore: a restore that requires a pre-restore backup and has no fresh one holds the cutover.
func TestRecoveryReadsItsRestore(t *testing.T) {
	stored := func(ago time.Duration) func(*Observed) {
		return func(o *Observed) {
			o.RecoveryRestore = &v1beta2.RestoreStatus{
				PreRestoreBackup: &v1beta2.PreRestoreBackup{Time: metav1.NewTime(testNow.Add(-ago))},
				Conditions:       []metav1.Condition{{Type: "PreRestoreBackupRequired", Status: metav1.ConditionTrue}},
			}
		}
	}
	checkDecisions(t, []decision{
		{"its pre-restore backup is too old", 3, "a b c", edits(recorded(filling, restores), recoveryPod(0xbeef), stored(v1beta2.MaxPreRestoreBackupAge+time.Second)), "recovery: wait PreRestoreBackupTooOld"},
		{"its pre-restore backup is fresh", 3, "a b c", edits(recorded(filling, restores), recoveryPod(0xbeef), stored(v1beta2.MaxPreRestoreBackupAge)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
	})
}
