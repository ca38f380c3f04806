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
	const waits = "wait OldMemberMayRun"
	const joins = "[a b c]"
	checkDecisions(t, []decision{
		{"their pods are created again", 3, away, edits(noQuorum, recorded(filling), recoveryPod(0xbeef)), "recovery: GuardRecoveryMember, CreatePod b" + joins + ", CreatePod c" + joins + ", " + waits},
		{"their pods start", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), made(time.Minute)), "recovery: GuardRecoveryMember, " + waits},
		{"the nodes no longer exist", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), both(func(p *Pod) { p.NodeAbsent = true })), "recovery: GuardRecoveryMember, " + waits},
		{"their volumes were emptied", 3, starting, edits(noQuorum, recorded(filling), recoveryPod(0xbeef), both(func(p *Pod) { p.Made, p.RestartCount = testNow.Add(-time.Minute), 3 })), "recovery: GuardRecoveryMember, VerifyWrite, RecordRecovery Cutover"},
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
