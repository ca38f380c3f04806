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
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestRecoveryThatAdvancesIsNotStalled: the wait for a recovery member begins again at the cutover, and lasts as long as
// a copy of the largest database may take. Its remedy is none that needs a quorum.
func TestRecoveryThatAdvancesIsNotStalled(t *testing.T) {
	const lost, waiting = "a:noleader,index=90 b:nopod c:nopod", string(ReasonWaitingForRecoveryMember)
	reported := func(phase v1beta2.RecoveryPhase) func(*Observed) {
		return func(o *Observed) { o.Cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: "one", Phase: phase} }
	}
	bound := waits.Transfer + waits.CopyTime(resources.RestoreTargetOf(observed(t, 3, lost).Cluster).MaxSize)
	for _, test := range []struct {
		name    string
		edits   []func(*Observed)
		stalled bool
	}{
		{"it is filled for two hours", edits(recorded(filling), reported(filling), waitsSince(waiting, waits.Transfer)), false},
		{"it is filled for longer than a copy takes", edits(recorded(filling), reported(filling), waitsSince(waiting, bound)), true},
		{"it has just been filled", edits(recorded(cutover), reported(filling), waitsSince(waiting, bound)), false},
		{"it is at the cutover for as long", edits(recorded(cutover), reported(cutover), waitsSince(waiting, bound)), true},
		{"another member is filled", edits(recorded(filling), reported(v1beta2.RecoveryPhasePending), waitsSince(waiting, bound)), true},
	} {
		o := observed(t, 3, lost, edits(append(edits(noQuorum, recoveryPod(0)), test.edits...)...)...)
		s := Status(o, Decide(o))
		b := s.BlockedBy
		if b == nil || b.Reason != waiting {
			t.Errorf("%s: it waits for %+v", test.name, b)
			continue
		}
		if got := reportedCondition(s.Conditions, v1beta2.ClusterConditionStalled).Status == corev1.ConditionTrue; got != test.stalled {
			t.Errorf("%s: stalled %t, want %t", test.name, got, test.stalled)
		}
		if strings.Contains(b.Unblock, "replace") {
			t.Errorf("%s: the remedy is %q", test.name, b.Unblock)
		}
	}
}

// TestClusterIsStalledWithItsRestore: the EtcdRestore knows whether it advances.
func TestClusterIsStalledWithItsRestore(t *testing.T) {
	for _, test := range []struct {
		name    string
		ago     time.Duration
		says    []string
		stalled bool
	}{
		{"it reads a large backup", 9 * waits.Transfer, []string{v1beta2.ConditionReady}, false},
		{"it is stalled", time.Second, []string{v1beta2.ConditionReady, v1beta2.ConditionStalled}, true},
		{"it says nothing for long", waits.Transfer, nil, true},
		{"it says nothing yet", time.Minute, nil, false},
	} {
		r := &v1beta2.EtcdRestore{Spec: v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "c"}}}
		for _, c := range test.says {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
		}
		o := observed(t, 3, "", unresponsive, waitsSince(string(ReasonWaitingForRestore), test.ago))
		o.Cluster.Annotations, o.AwaitedRestore = map[string]string{v1beta2.AnnotationRestore: "r"}, r
		status := Status(o, Decide(o))
		if got := reportedCondition(status.Conditions, v1beta2.ClusterConditionStalled).Status == corev1.ConditionTrue; got != test.stalled {
			t.Errorf("%s: stalled %t, want %t: %+v", test.name, got, test.stalled, status.BlockedBy)
		}
	}
}
