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
)

// annotated has the cluster wait for EtcdRestore r, and restore has that object exist.
func annotated(o *Observed) {
	o.Cluster.Annotations = map[string]string{v1beta2.AnnotationRestore: "r", v1beta2.AnnotationRestoreUID: "uid-r"}
}

func restore(of string, phase v1beta2.RestorePhase) func(*Observed) {
	return func(o *Observed) {
		annotated(o)
		o.AwaitedRestore = &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "uid-r"}, Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: of}}, Status: v1beta2.RestoreStatus{Phase: phase}}
	}
}

// TestACloneNeverStartsEmpty: a cluster that a restore makes waits for its data, until it has served.
func TestACloneNeverStartsEmpty(t *testing.T) {
	checkDecisions(t, []decision{
		{"it waits", 3, "", edits(unresponsive, restore("c", v1beta2.RestorePhaseVerifying)), "bootstrap: wait WaitingForRestore"},
		{"the EtcdRestore does not exist", 3, "", edits(unresponsive, annotated), "bootstrap: wait RestoreNotFound"},
		{"the EtcdRestore is of another cluster", 3, "", edits(unresponsive, restore("other", v1beta2.RestorePhaseVerifying)), "bootstrap: wait RestoreNotFound"},
		{"the EtcdRestore has failed", 3, "", edits(unresponsive, restore("c", v1beta2.RestorePhaseFailed)), "bootstrap: wait RestoreEnded"},
		{"the EtcdRestore has filled an earlier cluster", 3, "", edits(unresponsive, restore("c", v1beta2.RestorePhaseSucceeded)), "bootstrap: wait RestoreEnded"},
		{"a new cluster starts from the backup", 3, "", edits(unresponsive, annotated, asked(restores, func(r *v1beta2.RecoveryStatus) { r.OldMembers = nil })),
			"recovery: RecordRecovery Filling from "},
		{"it names no restore when it has served, so that its manifest starts anywhere", 3, "a b c", edits(annotated), "steady: ForgetRestore"},
		{"it names the restore until the status says that it has served", 3, "a b c", edits(annotated, func(o *Observed) { o.Cluster.Status.Phase = v1beta2.ClusterPhaseCreating }), "steady"},
		{"it names the restore until the restore has ended", 1, "a", edits(annotated, func(o *Observed) { o.RecoveryMember.Hidden = true }, recorded(cleaning)), "recovery: GuardRecoveryMember, PublishRecoveryMember seed"},
	})
}

// TestAwaitedRestoreIsStalled: a cluster that waits for an EtcdRestore that will not come says so soon, and how it
// starts.
func TestAwaitedRestoreIsStalled(t *testing.T) {
	for name, test := range map[string]struct {
		restore *v1beta2.EtcdRestore
		ago     time.Duration
		stalled bool
	}{
		"it does not exist for a moment": {nil, 30 * time.Second, false},
		"it does not exist for a minute": {nil, time.Minute, true},
		"it runs for long":               {&v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}}}, time.Hour, false},
		"it restores another cluster":    {&v1beta2.EtcdRestore{}, time.Minute, true},
		"it has ended without this cluster": {&v1beta2.EtcdRestore{
			Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}}, Status: v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed},
		}, time.Minute, true},
	} {
		o := observed(t, 3, "", unresponsive)
		o.Cluster.Annotations, o.AwaitedRestore = map[string]string{v1beta2.AnnotationRestore: "r"}, test.restore
		before := Status(o, Decide(o))
		o.Cluster.Status, o.Now = before, o.Now.Add(test.ago)
		status := Status(o, Decide(o))
		if got := reportedCondition(status.Conditions, v1beta2.ClusterConditionStalled).Status == corev1.ConditionTrue; got != test.stalled {
			t.Errorf("%s: stalled %t, want %t", name, got, test.stalled)
		}
		if b := status.BlockedBy; test.stalled && (b == nil || !strings.Contains(b.Unblock, "remove its annotation "+v1beta2.AnnotationRestore)) {
			t.Errorf("%s: blocked by %+v", name, b)
		}
	}
}

// TestCutoverAwaitsItsEtcdRestore: the record alone does not name a backup in the cutover either. The status leaves the
// recovery out, so that the EtcdRestore asks again, and says soon that an EtcdRestore that has ended will not.
func TestCutoverAwaitsItsEtcdRestore(t *testing.T) {
	o := observed(t, 3, lost, noQuorum, recorded(cutover, restores, func(r *v1beta2.RecoveryStatus) { r.Source.Restore = "back" }))
	o.Cluster.Status.Recovery = nil
	o.RecoveryRestore = &v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseVerifying, Conditions: []metav1.Condition{{Type: v1beta2.ConditionReady, Status: metav1.ConditionFalse}}}
	status := Status(o, Decide(o))
	if b := status.BlockedBy; b == nil || b.Reason != string(ReasonWaitingForRestore) || status.Recovery != nil {
		t.Errorf("blocked by %+v, and the status repeats %+v", b, status.Recovery)
	}
	stalled := func() bool {
		return reportedCondition(Status(o, Decide(o)).Conditions, v1beta2.ClusterConditionStalled).Status == corev1.ConditionTrue
	}
	if stalled() {
		t.Error("Stalled while the EtcdRestore reads its backup")
	}
	o.RecoveryRestore.Conditions = append(o.RecoveryRestore.Conditions, metav1.Condition{Type: v1beta2.ConditionStalled, Status: metav1.ConditionTrue})
	if !stalled() {
		t.Error("not Stalled although the EtcdRestore has ended")
	}
}
