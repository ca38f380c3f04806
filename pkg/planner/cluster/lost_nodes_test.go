// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// TestMembersOfLostNodes: the status says how the members of lost nodes come back, and a recovery starts them before it
// replaces them.
func TestMembersOfLostNodes(t *testing.T) {
	const away, starting = "a:noleader,index=90,claim b:nopod,claim,index=0 c:nopod,claim,index=0", "a:noleader,index=90,claim b:down,claim,index=0 c:down,claim,index=0"
	both := func(edit func(*Pod)) func(*Observed) {
		return func(o *Observed) {
			edit(podByName(o.Pods, "b"))
			edit(podByName(o.Pods, "c"))
		}
	}
	made := func(ago time.Duration) func(*Observed) {
		return both(func(p *Pod) { p.Made = testNow.Add(-ago) })
	}
	since := func(ago time.Duration) func(*Observed) { // the pods are old and crash, and their nodes became ready so long ago
		return both(func(p *Pod) {
			p.Made, p.RestartCount, p.NodeReadySince = testNow.Add(-time.Hour), 3, testNow.Add(-ago)
		})
	}
	const waits = "wait OldMemberMayRun"
	const joins = "[a b c]"
	checkDecisions(t, []decision{
		{"their pods are created again", 3, away, edits(noQuorum, recorded(filling), recoveryPod(0xbeef)), "recovery: GuardRecoveryMember, CreatePod b" + joins + ", CreatePod c" + joins + ", " + waits},
		{"their pods start", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), made(time.Minute)), "recovery: GuardRecoveryMember, " + waits},
		{"the nodes no longer exist", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), both(func(p *Pod) { p.NodeAbsent = true })), "recovery: GuardRecoveryMember, " + waits},
		{"their volumes were emptied", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), both(func(p *Pod) { p.Made, p.RestartCount = testNow.Add(-time.Minute), 3 })), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"their nodes have just become ready again", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), since(time.Minute)), "recovery: GuardRecoveryMember, " + waits},
		{"their nodes become ready in this moment", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), since(0)), "recovery: GuardRecoveryMember, " + waits},
		{"their nodes have just become ready again, by a clock that is ahead", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), since(-time.Minute)), "recovery: GuardRecoveryMember, " + waits},
		{"their nodes became ready long ago", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), since(diagnosis.ReturnGrace)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"their nodes became ready long ago, by a clock that is far ahead", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), since(-diagnosis.ReturnGrace)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
		{"their pods do not start", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), made(diagnosis.ReturnGrace)), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
	})
	for name, edit := range map[string]func(*Pod){
		"their nodes are not ready": func(p *Pod) { p.NodeNotReady = true },
		"their pods are overdue":    func(p *Pod) { p.Terminating, p.EndsBy = true, testNow.Add(-time.Minute) },
	} {
		o := observed(t, 3, starting, noQuorum, both(edit))
		plan := Decide(o)
		if plan.Wait == nil || !strings.Contains(plan.Wait.Remedy, diagnosis.ConfirmNodeOff) {
			t.Errorf("%s: %+v", name, plan.Wait)
		}
	}
}

// TestNodeReadyFor: package diagnosis takes 0 for a node if nothing says when it became ready. The clock of a node may be ahead.
func TestNodeReadyFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since time.Time
		want  time.Duration
	}{
		"nothing is known":               {time.Time{}, 0},
		"a minute ago":                   {testNow.Add(-time.Minute), time.Minute},
		"a minute ago by a clock ahead":  {testNow.Add(time.Minute), time.Minute},
		"in this moment, which is known": {testNow, 1},
	} {
		o := observed(t, 1, "a", func(o *Observed) { o.Pods[0].NodeReadySince = test.since })
		if got := diagnosisInput(&o).Pods[0].NodeReadyFor; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
