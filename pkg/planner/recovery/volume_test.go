// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// dark is a cluster whose only survivor does not respond, and whose volume exists.
const dark = "a:down,claim b:nopod c:nopod"

// unready is dark, and the container of the survivor runs without its pod being ready: it has no quorum.
const unready = "a:unready,claim b:nopod c:nopod"

// fromVolume has a recovery read the PVC of member a.
func fromVolume(r *v1beta2.RecoveryStatus) {
	r.Source = v1beta2.RecoverySource{Member: "a", PVC: "a"}
}

func fills(m *RecoveryMember) { m.Pod.Fills = true }

// TestStartFromAVolume: a PVC is read only if no member responds, and only after a loss that is
// proven to be permanent. Without a request it must be all that is left.
func TestStartFromAVolume(t *testing.T) {
	const from = "Record Filling from a lost b c"
	two := "a:down,claim b:nopod,claim c:nopod d:nopod e:nopod"
	chooses := func(name string) func(*v1beta2.RecoveryStatus) {
		return func(r *v1beta2.RecoveryStatus) { r.Member = name }
	}
	checkDecisions(t, []decision{
		{"the only PVC", dark, edits(asked()), from},
		{"the PVC of a member without a pod", "a:nopod,claim b:nopod c:nopod", edits(asked()), from},
		{"a member that responds is better", "a:down,claim b:noleader,index=90 c:nopod d:nopod e:nopod", edits(asked()), "Record Filling from b"},
		{"not while a quorum may come back", "a:down,claim b:down,claim c:nopod", edits(asked()), "wait WaitingForSurvivor"},
		{"two PVCs, and the request names none", two, edits(asked()), "wait WaitingForSurvivor"},
		{"two PVCs, and the request names none for long", two, edits(asked(early)), "Abandon"},
		{"two PVCs, and the request names one", two, edits(asked(chooses("b"))), "Record Filling from b lost c d e"},
		{"the requested member has no PVC", two, edits(asked(chooses("c"))), "wait WaitingForSurvivor"},
		{"the PVC of a learner is none", "a:down,learner,claim b:nopod c:nopod d:nopod", edits(asked(early)), "Abandon"},
		{"a survivor without a volume", "a:down b:nopod c:nopod", edits(asked(early)), "Abandon"},
		{"by itself", unready, edits(lostFor(Grace)), from},
		{"by itself, but not too soon", unready, edits(lostFor(Grace - time.Millisecond)), goesOn},
		{"not by itself before its container runs", dark, edits(lostFor(time.Hour)), goesOn},
		{"not by itself before it has a pod", "a:nopod,claim b:nopod c:nopod", edits(lostFor(time.Hour)), goesOn},
		{"not by itself while its pod is ready", unready, edits(lostFor(time.Hour), factOf("a", isReady)), goesOn},
		{"not by itself while its node is not ready", unready, edits(lostFor(time.Hour), factOf("a", onNodeNotReady)), goesOn},
		{"not on a request while its pod is ready", unready, edits(asked(), factOf("a", isReady)), "wait WaitingForSurvivor"},
		{"not on a request while its node is not ready", unready, edits(asked(), factOf("a", onNodeNotReady)), "wait WaitingForSurvivor"},
		{"by itself in the next attempt, after its pod was stopped", "a:nopod,claim b:nopod c:nopod", edits(recorded(pending, fromVolume, byItself), stoppedSource), from},
		{"not by itself if there are two PVCs", two, edits(lostFor(time.Hour)), goesOn},
		{"not by itself beside a pod without a volume", "a:down,claim b:down c:nopod d:nopod e:nopod", edits(lostFor(time.Hour)), goesOn},
		{"not by itself beside a learner that may vote by now", "a:down,claim b:down,learner,claim c:nopod d:nopod e:nopod", edits(lostFor(time.Hour)), goesOn},
	})
	r := recordOf(t, input(t, dark, asked()))
	if r.Source != (v1beta2.RecoverySource{Member: "a", PVC: "a"}) || r.Version != testVersion || r.RevisionBump == 0 || len(r.Survivors) != 0 ||
		!strings.Contains(r.ExpectedLoss, "How many is unknown") || !strings.Contains(r.ExpectedLoss, "Its pod is stopped") {
		t.Errorf("%+v", r)
	}
	if r := recordOf(t, input(t, two, asked(early))); !strings.Contains(r.Message, "several have a PVC") || !strings.HasSuffix(r.Message, ": a, b") {
		t.Errorf("the message is %q", r.Message)
	}
}

// factOf changes what Kubernetes says of a pod.
func factOf(name string, edit func(*diagnosis.Pod)) func(*Input) {
	return func(in *Input) {
		edit(&in.Facts.Pods[slices.IndexFunc(in.Facts.Pods, func(p diagnosis.Pod) bool { return p.Name == name })])
	}
}

func isReady(p *diagnosis.Pod) { p.Ready = true }

func onNodeNotReady(p *diagnosis.Pod) { p.NodeNotReady = true }

// stoppedSource has a recovery have stopped the member a.
func stoppedSource(in *Input) { in.Facts.StoppedSource = "a" }

func byItself(r *v1beta2.RecoveryStatus) { r.Trigger = v1beta2.RecoveryTriggerAutomatic }

// TestFillFromAVolume: the member has ended before its PVC is read, and does not start again
// meanwhile.
func TestFillFromAVolume(t *testing.T) {
	const waits = "wait OldMemberMayRun"
	stopped := "a:nopod,claim b:nopod c:nopod"
	ending := "a:terminating,down,claim b:nopod c:nopod"
	reads := recorded(filling, fromVolume)
	checkDecisions(t, []decision{
		{"the source is stopped first", dark, edits(reads), "StopSource"},
		{"its end is waited for", ending, edits(reads, podOf("a", endsNow)), waits},
		{"its end is overdue", ending, edits(reads), waits},
		{"its end is evidence", stopped, edits(reads), "Fill " + recoveryMember},
		{"a pod that has ended is evidence", "a:finished,claim b:nopod c:nopod", edits(reads), "Fill " + recoveryMember},
		{"not while a quorum may serve unseen", "a:down,claim b:nopod c:nopod", edits(unmanagedPods(true, "d"), reads), "Abandon"},
		{"it stays stopped while the recovery member is filled", stopped, edits(reads, memberPod("", fills)), "ReviveOldMembers, wait WaitingForRecoveryMember"},
		{"the source was started in spite of it", dark, edits(reads, memberPod("", fills)), "StopSource"},
		{"it serves", stopped, edits(reads, memberPod(newID, fills)), "BeginCutover"},
		{"a lost member has its PVC again", "a:nopod,claim b:nopod,claim c:nopod", edits(reads, memberPod("", fills)), "Abandon"},
		{"a person deletes the recovery member", stopped, edits(reads, memberPod("", fills, terminating)), "Abandon"},
		{"the recovery member was evicted", stopped, edits(reads, memberPod("", fills, evicted(time.Minute))), "StartAgain"},
		{"the PVC is lost before it was read", nothing, edits(reads), "StartAgain"},
		{"the PVC is lost while it is read", nothing, edits(reads, memberPod("", fills)), "ReviveOldMembers, wait SourceLost"},
		{"a member responds with which the source is a quorum", "a:nopod,claim b:noleader,index=80 c:nopod", edits(reads, memberPod("", fills)), "Abandon"},
		{"a member responds, and there is no quorum", "a:nopod,claim b:noleader,index=80 c:nopod d:nopod e:nopod", edits(reads, memberPod("", fills)), "StartAgain"},
		{"the node of its source is cut off after the request to end", "a:unready,terminating,claim b:nopod c:nopod", edits(reads, factOf("a", onNodeNotReady), stoppedSource), waits},
		{"cancelled", dark, edits(recorded(filling, fromVolume, cancelled)), "Abandon"},
		{"a quorum responds", serving, edits(reads), "Abandon"},
	})
	made := func(ago time.Duration) func(*RecoveryMember) {
		return func(m *RecoveryMember) { m.Pod.Running, m.Pod.Made = false, testNow.Add(-ago) }
	}
	const revives = "ReviveOldMembers, wait WaitingForRecoveryMember"
	five := "a:down,claim b:nopod,claim c:nopod d:nopod e:nopod"
	checkDecisions(t, []decision{
		{"the source restarts while it is read", dark, edits(recorded(filling), memberPod("", made(sourceGrace))), "StartAgain"},
		{"the source is busy for a moment", dark, edits(recorded(filling), memberPod("", made(sourceGrace-time.Second))), revives},
		{"the recovery member has its data", dark, edits(recorded(filling), memberPod("")), revives},
		{"the source restarts, and it was requested", five, edits(recorded(filling, choosesA), memberPod("", made(sourceGrace))), "StartAgain"},
		{"the source restarts, and another member has a PVC", five, edits(recorded(filling), memberPod("", made(sourceGrace))), revives},
		{"the next attempt reads its PVC", dark, edits(recorded(pending, func(r *v1beta2.RecoveryStatus) { r.RecoveryMember = "" })), "Record Filling from a lost b c"},
		{"without a request not beside a pod without a volume", "a:down,claim b:down c:nopod d:nopod e:nopod", edits(recorded(pending, byItself)), "Abandon"},
	})
	d, _ := Decide(input(t, stopped, reads, memberPod("", fills)))
	if step, is := d.Step.(ReviveOldMembers); !is || step.Except != "a" {
		t.Errorf("the member that is read may be started: %+v", d.Step)
	}
	if d.Wait == nil || !strings.Contains(d.Wait.Remedy, "delete pod "+recoveryMember) {
		t.Errorf("the way out is missing: %+v", d.Wait)
	}
	for _, members := range []string{dark, ending} {
		in := input(t, members, reads)
		if d, _ := Decide(in); d.Wait != nil && !strings.Contains(d.Wait.Message, "reads PVC a when its member has ended") {
			t.Errorf("%s: %+v", members, d.Wait)
		}
	}
}

// TestCutoverOnAVolume: before the old members go, a recovery member with a volume restarts as an ordinary
// member. Kubernetes would keep the PVC of an old member as long as a pod uses it, and would not start the pod
// again without the Secrets of a store.
func TestCutoverOnAVolume(t *testing.T) {
	stopped := "a:nopod,claim b:nopod c:nopod"
	for from, edit := range map[string]func(*v1beta2.RecoveryStatus){
		"PVC": fromVolume, "backup": restores, "member": func(*v1beta2.RecoveryStatus) {},
	} {
		in := recorded(cutover, edit)
		checkDecisions(t, []decision{
			{from + ": it was filled", stopped, edits(persist, in, memberPod(newID, fills)), "RestartRecoveryMember"},
			{from + ": it ends", stopped, edits(persist, in, memberPod("", fills, terminating)), "wait WaitingForRecoveryMember"},
			{from + ": it has ended", stopped, edits(persist, in, hidden), "Fill " + recoveryMember},
			{from + ": it serves as an ordinary member", stopped, edits(persist, in, memberPod(newID)), "Fence"},
			{from + ": members have no volumes", stopped, edits(in, memberPod(newID, fills), func(in *Input) { in.Desired.Persistent = false }), "Fence"},
		})
	}
}
