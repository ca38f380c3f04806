// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// TestProofOfLossIsKept: the time since which a loss is proven is kept as it was written,
// and is forgotten as soon as the proof is.
func TestProofOfLossIsKept(t *testing.T) {
	t.Parallel()
	before := testNow.Add(-20 * time.Second)
	proven := func(o *Observed) {
		since := metav1.NewTime(before)
		o.Cluster.Status.PermanentQuorumLossSince = &since
	}
	within := func(o *Observed) { o.Now = o.Now.Add(300 * time.Millisecond) }
	doubted := "a:noleader,index=90 b:down,index=0 c:nopod,index=0"
	for _, test := range []struct {
		name, members string
		size          int
		edits         []func(*Observed)
		want          time.Time
	}{
		{"now, if it was not proven before", lost, 3, edits(noQuorum), testNow},
		{"never earlier than it was seen", lost, 3, edits(noQuorum, within), testNow.Add(time.Second)},
		{"as before", lost, 3, edits(noQuorum, proven), before},
		{"as before, after another decision", lost, 3, edits(noQuorum, proven, pausedSpec), before},
		{"not while a member may come back", doubted, 3, edits(noQuorum, proven), time.Time{}},
		{"not while a voter that no status has named may come back", lost, 3, edits(noQuorum, proven, unmanagedPod("d", PodVoter)), time.Time{}},
		{"not with a quorum", "a b c", 3, edits(proven), time.Time{}},
		{"not for a cluster that sleeps", lost, 0, edits(noQuorum, proven), time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := observed(t, test.size, test.members, test.edits...)
			got := Status(o, Decide(o)).PermanentQuorumLossSince
			if (got == nil) != test.want.IsZero() || got != nil && !got.Time.Equal(test.want) {
				t.Errorf("the loss is proven since %v, want %v", got, test.want)
			}
		})
	}
}

// TestLossIsLookedAtInTime: a cluster that recovers by itself is looked at when the grace
// is over, and one that waits for a person as rarely as before.
func TestLossIsLookedAtInTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  time.Duration
	}{
		"just proven":             {edits(unproven), recheckSteady},
		"soon over":               {edits(automatic(recovery.Grace - 5*time.Second)), 5 * time.Second},
		"over in a moment":        {edits(automatic(recovery.Grace - time.Second)), recheckQuorum},
		"a person is waited for":  {edits(automatic(recovery.Grace-5*time.Second), func(o *Observed) { o.Cluster.Spec.Recovery = nil }), recheckSteady},
		"the time is not written": {nil, recheckSteady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(t, 3, lost, append(edits(noQuorum), test.edits...)...)
			if got := Decide(o).RequeueAfter; got != test.want {
				t.Errorf("it is looked at again after %v, want %v", got, test.want)
			}
		})
	}
}

// TestRequesterIsTold: the condition names the user that asked for a recovery, and the
// record keeps the name.
func TestRequesterIsTold(t *testing.T) {
	t.Parallel()
	o := observed(t, 3, lost, noQuorum, asked(requestedBy("jane")))
	plan := Decide(o)
	if by := plan.Actions[0].(RecordRecovery).Recovery.RequestedBy; by != "jane" {
		t.Errorf("the record says that %q asked", by)
	}
	o = observed(t, 3, lost, noQuorum, recorded(filling, requestedBy("jane")))
	status := Status(o, Decide(o))
	if message := find(status, v1beta2.ClusterConditionRecovering).Message; !strings.Contains(message, "as requested by jane") {
		t.Errorf("the condition Recovering says %q", message)
	}
}

func requestedBy(user string) func(*v1beta2.RecoveryStatus) {
	return func(r *v1beta2.RecoveryStatus) { r.RequestedBy = user }
}
