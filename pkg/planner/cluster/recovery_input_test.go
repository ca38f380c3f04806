// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// TestRecoveryInput: a recovery is decided from what was observed, and objects that the cluster
// does not own count for nothing.
func TestRecoveryInput(t *testing.T) {
	const away = "its node is not ready"
	ends, made, since := testNow.Add(-time.Minute), testNow.Add(-time.Hour), metav1.NewTime(testNow.Add(-2*time.Hour))
	o := observed(t, 3, "a:noleader,index=90,v=3.5.21 b:nopod,index=0 c:terminating,claim,index=0",
		noQuorum, automatic(2*time.Hour), begun("zero", "one"), recorded(filling), asked(later), pod("theirs", false), withPVC("theirs", false),
		recoveryPod(0xbeef, func(r *RecoveryMember) {
			r.Pod.Finished, r.Pod.Terminating, r.Pod.Waiting, r.Pod.Made = true, true, "Evicted", made
			r.HasPVC = true
			r.Pod.Node, r.Pod.EndsBy, r.Pod.AwaySince, r.Pod.AwayWhy = "node-r", ends, testNow.Add(-time.Hour), away
		}),
		func(o *Observed) {
			c := podByName(o.Pods, "c")
			c.EndsBy, c.NodeNotReady, c.NodeAbsent = ends, true, true
			o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "nightly"}
		})
	want := &recovery.Input{
		Now: testNow, NewName: newName,
		Desired:  recovery.Desired{Cluster: "c", Size: 3, Automatic: true, Persistent: true, Version: "3.6.11"},
		Recorded: o.Record.Recovery, Reported: o.Cluster.Status.Recovery, Begun: []string{"zero", "one"},
		RecordedID: "c0ffee", ReplacedID: "c0ffee", Bootstrapped: true, LastBackup: &v1beta2.LastBackup{Name: "nightly"},
		QuorumLostFor: time.Hour, ClusterID: "c0ffee", Facts: diagnosisInput(&o),
		Members: []recovery.Member{{ID: "1", Name: "a", Version: "3.5.21"}, {ID: "2", Name: "b", Version: testVersion}, {ID: "3", Name: "c", Version: testVersion}},
		Pods: []recovery.Pod{
			{Name: "a", Node: "node-a", Evidence: diagnosis.PodExists},
			{Name: "c", Node: "node-c", Evidence: diagnosis.DeletionRequested, EndsBy: ends, NodeNotReady: true, NodeAbsent: true},
		},
		RecoveryMember: recovery.RecoveryMember{
			Pod:    &recovery.RecoveryPod{Finished: true, Terminating: true, Running: true, HasRun: true, Away: true, AwayWhy: away, Waiting: "Evicted", Node: "node-r", Made: made, EndsBy: ends},
			Hidden: true, HasPVC: true, Serves: true, ClusterID: "beef",
		},
	}
	if diff := cmp.Diff(want, recoveryInput(&o)); diff != "" {
		t.Errorf("a loss that is not proven (-want +got):\n%s", diff)
	}
	if facts := recoveryInput(&o).Facts; len(facts.Pods) != 2 || len(facts.PVCs) != 1 || facts.RecoveryMember != "seed" {
		t.Errorf("the facts are %+v", facts)
	}
	for name, test := range map[string]struct {
		edit func(*Observed)
		want func(*recovery.Input)
	}{
		"a quorum responds": {func(o *Observed) { o.Etcd.Linearizable = true }, func(in *recovery.Input) { in.Linearizable = true }},
		"no quorum confirmed what its EtcdRestore has stored": {func(o *Observed) {
			o.RecoveryRestore = &v1beta2.RestoreStatus{
				Conditions:       []metav1.Condition{{Type: "PreRestoreBackupRequired", Status: metav1.ConditionTrue}},
				PreRestoreBackup: &v1beta2.PreRestoreBackup{Unconfirmed: true, RaftIndex: 80, Time: metav1.NewTime(testNow)},
			}
		}, func(in *recovery.Input) { in.Unconfirmed, in.BackedUp = true, 80 }},
		"a quorum confirmed it": {func(o *Observed) {
			o.RecoveryRestore = &v1beta2.RestoreStatus{PreRestoreBackup: &v1beta2.PreRestoreBackup{RaftIndex: 80, Time: metav1.NewTime(testNow)}}
		}, func(in *recovery.Input) { in.Stored, in.BackedUp = true, 80 }},
		"it has the data of one of several that differ": {func(o *Observed) {
			o.RecoveryRestore = &v1beta2.RestoreStatus{PreRestoreBackup: &v1beta2.PreRestoreBackup{DataDiffers: true, RaftIndex: 80, Time: metav1.NewTime(testNow)}}
		}, func(in *recovery.Input) { in.BackedUp = 80 }},
		"the record says that the data differs": {func(o *Observed) {
			o.Record.CorruptVoters = 3
			o.RecoveryRestore = &v1beta2.RestoreStatus{PreRestoreBackup: &v1beta2.PreRestoreBackup{RaftIndex: 80, Time: metav1.NewTime(testNow)}}
		}, func(in *recovery.Input) { in.BackedUp = 80 }},
		"no recovery member":                 {func(o *Observed) { o.RecoveryMember.Pod = nil }, func(in *recovery.Input) { in.RecoveryMember.Pod = nil }},
		"a recovery member of another time":  {func(o *Observed) { o.RecoveryMember.Pod.Template = "before" }, func(in *recovery.Input) { in.RecoveryMember.Pod.Outdated = true }},
		"a recovery member of another image": {func(o *Observed) { o.RecoveryMember.Pod.Outdated = true }, func(in *recovery.Input) { in.RecoveryMember.Pod.Outdated = true }},
		"its PVC is being deleted": {func(o *Observed) { o.RecoveryMember.HasPVC, o.RecoveryMember.PVCDeleted = false, true }, func(in *recovery.Input) {
			in.RecoveryMember.HasPVC, in.RecoveryMember.PVCDeleted = false, true
		}},
		"its etcd has ended": {func(o *Observed) { o.RecoveryMember.Pod.Running, o.RecoveryMember.Pod.RestartCount = false, 1 }, func(in *recovery.Input) { in.RecoveryMember.Pod.Running = false }},
		"its etcd has never run": {func(o *Observed) { o.RecoveryMember.Pod.Running = false }, func(in *recovery.Input) {
			in.RecoveryMember.Pod.Running, in.RecoveryMember.Pod.HasRun = false, false
		}},
		"the backup cannot be read": {func(o *Observed) { o.RecoveryMember.FailsToFill = true }, func(in *recovery.Input) { in.RecoveryMember.Pod.FailsToFill = true }},
		"the fence has taken PVCs":  {func(o *Observed) { o.Fenced = []string{"c"} }, func(in *recovery.Input) { in.Fenced = []string{"c"} }},
		"it has no node yet": {func(o *Observed) { o.RecoveryMember.Pod.Node = "" }, func(in *recovery.Input) {
			in.RecoveryMember.Pod.Away, in.RecoveryMember.Pod.Node = false, ""
		}},
		"it mounts the PVC that the recovery reads": {func(o *Observed) { o.RecoveryMember.MountsSource = true }, func(in *recovery.Input) { in.RecoveryMember.Pod.MountsSource = true }},
		"the recorded ID is not known": {func(o *Observed) { o.Record.ClusterID, o.Etcd.ClusterID = unknownClusterID, 0xabc }, func(in *recovery.Input) {
			in.RecordedID, in.ReplacedID, in.ClusterID = "", "abc", "abc"
		}},
		"the recovery under way knows it": {func(o *Observed) { o.Record.ClusterID, o.Etcd.ClusterID = unknownClusterID, 0 }, func(in *recovery.Input) {
			in.RecordedID, in.ReplacedID, in.ClusterID = "", "c0ffee", "0"
		}},
		"it is not known at all": {func(o *Observed) {
			o.Record.ClusterID, o.Etcd.ClusterID, o.Record.Recovery = unknownClusterID, 0, nil
		}, func(in *recovery.Input) {
			in.RecordedID, in.ReplacedID, in.ClusterID, in.Recorded = "", unknownClusterID, "0", nil
		}},
		"the loss is proven": {func(o *Observed) { o.Pods, o.PVCs = o.Pods[:1], nil }, func(in *recovery.Input) { in.Pods, in.LostSince = in.Pods[:1], &since }},
		"the cluster is new": {func(o *Observed) {
			o.Record.ClusterID, o.ClientService, o.Cluster.Status.Phase = "", Missing, v1beta2.ClusterPhaseCreating
			o.BootstrapName = "another"
		}, func(in *recovery.Input) {
			in.Bootstrapped, in.RecordedID, in.ReplacedID = false, "", ""
		}},
	} {
		changed, expected := o, *want
		member, pod := *o.RecoveryMember.Pod, *want.RecoveryMember.Pod
		cluster := o.Cluster.DeepCopy()
		changed.RecoveryMember.Pod, expected.RecoveryMember.Pod, changed.Cluster = &member, &pod, cluster
		test.edit(&changed)
		test.want(&expected)
		expected.Facts = diagnosisInput(&changed)
		if diff := cmp.Diff(&expected, recoveryInput(&changed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRecoveryActions: what is done in each step, in its order.
func TestRecoveryActions(t *testing.T) {
	now, next := v1beta2.RecoveryStatus{ID: "one", RecoveryMember: "r"}, v1beta2.RecoveryStatus{ID: "one", Phase: cleaning}
	o := observed(t, 3, lost, noQuorum, recoveryPod(0))
	for _, test := range []struct {
		step recovery.Step
		want []Action
	}{
		{recovery.Record{Recovery: now, Lost: []string{"a"}, Gone: "r"}, []Action{RecordRecovery{Recovery: now, Lost: []string{"a"}, Gone: "r"}}},
		{recovery.Abandon{Recovery: now}, []Action{DeleteRecoveryMember{Name: "r"}, RecordRecovery{Recovery: now}}},
		{recovery.Abandon{Recovery: next}, []Action{RecordRecovery{Recovery: next}}},
		{recovery.StartAgain{Recovery: now}, []Action{DeleteRecoveryMember{Name: "r"}, RecordRecovery{Recovery: now}}},
		{recovery.Fill{Recovery: now}, []Action{CreateRecoveryMember{Recovery: now}}},
		{recovery.Fill{Recovery: now, WithoutSource: true}, []Action{CreateRecoveryMember{Recovery: now, WithoutSource: true}}},
		{recovery.BeginCutover{Recovery: now}, []Action{VerifyWrite{Of: WriteToRecoveryMember}, RecordRecovery{Recovery: now}}},
		{recovery.RestartRecoveryMember{}, []Action{DeletePod{Name: "seed", UID: "pod-seed", Why: DeleteUnpublished}}},
		{recovery.Fence{Recovery: now, Next: next}, []Action{FenceOldMembers{Recovery: now}, RecordRecovery{Recovery: next}}},
		{recovery.Publish{RecoveryMember: "r"}, []Action{PublishRecoveryMember{Name: "r"}}},
		{recovery.CleanUp{Recovery: now, Next: next, Kept: []string{"a"}}, []Action{VerifyWrite{Of: WriteToCluster}, CleanUpOldPVCs{Recovery: now, Kept: []string{"a"}}, RecordRecovery{Recovery: next}}},
		{recovery.RequestRestore{Name: "n", Backup: "b", Revision: 7, Lost: []string{"a"}}, []Action{RequestRestore{Name: "n", Backup: "b", Revision: 7, Lost: []string{"a"}}}},
		{recovery.StopSource{Recovery: now, Lost: []string{"a"}}, []Action{StopSource{Recovery: now, Lost: []string{"a"}}}},
		{recovery.ReviveOldMembers{}, nil},
		{nil, nil},
	} {
		if diff := cmp.Diff(test.want, recoveryActions(&o, test.step)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", test.step, diff)
		}
	}
}

// TestRecoveryIsLookedAtInTime: how soon the controller looks again follows from what it waits for.
func TestRecoveryIsLookedAtInTime(t *testing.T) {
	nothing := "a:nopod,index=0 b:nopod,index=0 c:nopod,index=0"
	for name, test := range map[string]struct {
		o    Observed
		want time.Duration
	}{
		"an event":        {observed(t, 3, lost, noQuorum, asked()), recheckWaiting},
		"a member":        {observed(t, 3, lost, noQuorum, recorded(filling), recoveryPod(0)), recheckQuorum},
		"the next step":   {observed(t, 3, "", noQuorum, recorded(cleaning), func(o *Observed) { o.RecoveryMember.Hidden = true }), recheckNow},
		"the EtcdRestore": {observed(t, 3, nothing, noQuorum, automatic(time.Hour)), recheckSteady},
	} {
		if plan := Decide(test.o); plan.Rule != RuleRecovery || plan.RequeueAfter != test.want {
			t.Errorf("%s: rule %s looks again after %v, want %v", name, plan.Rule, plan.RequeueAfter, test.want)
		}
	}
}
