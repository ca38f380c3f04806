// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestRuleRepair takes a declaration back that has cost the quorum.
func TestRuleRepair(t *testing.T) {
	checkDecisions(t, []decision{
		{"the only one does not run, on its volume", 1, "a:claim,stale,down", edits(noQuorum), "repair: RecreatePod a " + testVersion + " idle"},
		{"the only one does not run, and a user has asked to replace it", 1, "a:claim,stale,down", edits(noQuorum, replaceAsked("a")), "repair: RecreatePod a " + testVersion + " idle"},
		{"it may yet serve", 1, "a:claim,stale,sick", edits(noQuorum), "quorum: wait QuorumLost"},
		{"the last status did not know yet that it votes", 2, "a:claim,noleader b:claim,learner,stale,down", edits(noQuorum), "repair: RecreatePod b " + testVersion + " idle"},
		{"a learner without a volume is left alone", 2, "a:noleader b:learner,stale,down", edits(noQuorum), "quorum: wait NoLeader"},
		{"its image does not exist", 1, "a:outdated,sick", edits(noQuorum, lastSaid(testVersion)), "repair: UpgradePod a " + testVersion + " idle"},
		{"the image of the next minor version does not exist", 1, "a:down,neverran,podv=3.7.99", edits(noQuorum, lastSaid(testVersion)), "repair: UpgradePod a " + testVersion + " idle"},
		{"it is corrected to one that exists, and no member responds", 1, "a:down,neverran,podv=3.7.99", edits(noQuorum, lastSaid(testVersion), wants("3.7.3"), noResponse), "repair: UpgradePod a 3.7.3 idle"},
		{"awake, or after a reboot, with the next minor version declared", 3, "a:claim,down b:claim,down c:claim,down", edits(noQuorum, lastSaid(testVersion), wants("3.7.3"), noResponse), "quorum: wait QuorumLost"},
		{"the same, with another declaration too", 3, "a:claim,stale,down b:claim,down c:claim,down", edits(noQuorum, lastSaid(testVersion), wants("3.7.3"), noResponse), "quorum: wait QuorumLost"},
		{"the same, and it does not start as it was", 3, "a:claim,stale,down b:claim,down c:claim,down",
			edits(noQuorum, lastSaid(testVersion), wants("3.7.3"), noResponse, func(o *Observed) { o.Pods[0].Waiting = "CrashLoopBackOff" }), "repair: RecreatePod a " + testVersion + " idle"},
		{"a quorum serves beside it", 3, "a:claim,stale,down b:claim c:claim", edits(wants("3.7.3"), logIs(resources.LogRecord{ClusterID: "c0ffee", Minor: 6, Index: 100}, 120)), "rollout: wait PreparingLog"},
		{"the first pod of the next minor version has no container", 1, "a:claim,claimv=3.7.99,down,neverran,podv=3.7.99", edits(noQuorum, lastSaid(testVersion), ranBefore(testVersion)), "repair: UpgradePod a " + testVersion + " idle"},
		{"the same, and a status from before names an older version than that of the data", 1, "a:claim,claimv=3.7.99,down,neverran,podv=3.7.99", edits(noQuorum, lastSaid("3.5.27"), ranBefore(testVersion), wants("3.5.27")), "quorum: wait QuorumLost"},
		{"the image of the next minor version may have run", 1, "a:down,podv=3.7.99", edits(noQuorum, lastSaid(testVersion)), "quorum: wait QuorumLost"},
		{"the newer version stays if another member that the status names has neither pod nor PVC", 2, "a:claimv=3.7.0,podv=3.7.0,outdated,down b:nopod", edits(noQuorum, lastSaid(testVersion)), "quorum: FindMember b, wait QuorumLost"},
		{"another member that has a PVC keeps the way back", 2, "a:claimv=3.7.0,podv=3.7.0,outdated,down b:claimv=" + testVersion + ",sick", edits(noQuorum, lastSaid(testVersion)),
			"repair: UpgradePod a " + testVersion + " idle"},
		{"a corrected declaration keeps the newer version", 2, "a:claimv=3.7.0,podv=3.7.0,stale,down b:nopod", edits(noQuorum, lastSaid(testVersion)), "repair: RecreatePod a 3.7.0 idle"},
		{"it is as declared", 1, "a:claim,down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"without a volume its data would go", 1, "a:stale,down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"all that do not run", 3, "a:claim b:claim,stale,down c:claim,stale,down", edits(noQuorum),
			"repair: RecreatePod b " + testVersion + " idle, RecreatePod c " + testVersion + " idle"},
		{"the first one, that no status has named", 3, "a:claim,stale,down", edits(noQuorum, unnamed), "repair: RecreatePod a " + testVersion + " idle"},
		{"a voter that a status from before does not name", 2, "a:learner,nopod b:claim,stale,down", edits(noQuorum, onlyFirstNamed), "repair: RecreatePod b " + testVersion + " idle"},
		{"with an image that does not exist", 3, "a:claim,outdated,down", edits(noQuorum, unnamed), "repair: UpgradePod a " + testVersion + " idle"},
		{"as it was before another version is declared", 3, "a:claim,stale,down", edits(noQuorum, unnamed, wants("3.7.3")), "repair: RecreatePod a " + testVersion + " idle"},
		{"no repair with another version before the running version is known", 3, "a:claim,outdated,down", edits(noQuorum, unnamed, wants("3.7.3")), "quorum: wait QuorumLost"},
		{"it runs", 3, "a:claim,stale,sick", edits(noQuorum, unnamed), "quorum: wait QuorumLost"},
		{"it has no volume", 3, "a:stale,down", edits(noQuorum, unnamed), "quorum: wait QuorumLost"},
		{"a member that the only voter awaits, and whose pod was created for its data", 2, "a:claim b:claim,unstarted,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b")), "repair: RecreatePod b 3.3.27 idle"},
		{"the same, and no status has named it", 2, "a:claim b:claim,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b"), onlyFirstNamed), "repair: RecreatePod b 3.3.27 idle"},
		{"the same while it runs", 2, "a:claim b:claim,unstarted",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b")), "quorum: wait NoLeader"},
		{"the same, and its pod can join", 2, "a:claim b:claim,unstarted,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "a", "b")), "quorum: wait NoLeader"},
		{"the same, and a status has named it as started", 2, "a:claim b:claim,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b")), "quorum: wait QuorumLost"},
		{"the same while the voter does not respond", 2, "a:claim b:claim,unstarted,down",
			edits(noQuorum, withoutLearners, startedToJoin("b", "b"), outOfReach("a")), "quorum: wait NoLeader"},
		{"the same in an etcd with learners", 2, "a:claim b:claim,unstarted,down",
			edits(noQuorum, awaits("a", "b"), startedToJoin("b", "b")), "quorum: wait NoLeader"},
		{"the same beside the PVC of a third member", 2, "a:claim b:claim,unstarted,down c:claim,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b")), "quorum: wait NoLeader"},
		{"its pod can join, and is made as declared", 2, "a:claim b:claim,unstarted,stale,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "a", "b")), "repair: RecreatePod b 3.3.27 idle"},
		{"its pod can join, and beside the PVC of a removed member a new pod could not", 2, "a:claim b:claim,unstarted,stale,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "a", "b"), released("c")), "quorum: wait NoLeader"},
		{"the same, and no status has named it", 2, "a:claim b:claim,stale,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "a", "b"), onlyFirstNamed, released("c")), "quorum: wait EtcdUnreachable"},
		{"the same beside the PVC, and its pod was made for its data", 2, "a:claim b:claim,stale,down",
			edits(noQuorum, withoutLearners, awaits("a", "b"), startedToJoin("b", "b"), onlyFirstNamed, released("c")), "repair: RecreatePod b 3.3.27 idle"},
		{"what filled it no longer exists, and keeps its pod from starting", 1, "a:claim,fills,down", edits(noQuorum), "repair: RecreatePod a " + testVersion + " idle"},
		{"the same, and no status has named it", 3, "a:claim,fills,down", edits(noQuorum, unnamed), "repair: RecreatePod a " + testVersion + " idle"},
		{"the same without a volume: its data would go", 1, "a:fills,down", edits(noQuorum), "quorum: wait QuorumLost"},
		{"it goes", 3, "a:claim,stale,down,terminating", edits(noQuorum, unnamed), "quorum: wait QuorumLost"},
	})
}

// ranBefore is a first pod that says which version its data is of.
func ranBefore(version string) func(*Observed) {
	return func(o *Observed) { o.Pods[0].RanBefore = version }
}

// unnamed is a cluster whose status has not named a member yet.
func unnamed(o *Observed) { o.Etcd.Members = nil }

// startedToJoin is a pod that was created to join these members.
func startedToJoin(name string, peers ...string) func(*Observed) {
	return func(o *Observed) { podByName(o.Pods, name).Peers = peers }
}

// outOfReach is a member that the controller does not reach.
func outOfReach(name string) func(*Observed) {
	return func(o *Observed) {
		m := memberByName(o.Etcd.Members, name)
		m.Health, m.RaftIndex, m.View = Unknown, 0, nil
	}
}

// released is a PVC that the cluster has released.
func released(name string) func(*Observed) {
	return func(o *Observed) { o.PVCs = append(o.PVCs, PVC{Name: name, Version: "3.3.27"}) }
}

// onlyFirstNamed is a cluster whose status names one member, and not the members after it.
func onlyFirstNamed(o *Observed) { o.Etcd.Members = o.Etcd.Members[:1] }

// TestAdopt lets a pod say what it was made from that does not.
func TestAdopt(t *testing.T) {
	unknown := func(o *Observed) { o.Pods[1].Template = "" }
	checkDecisions(t, []decision{{"a pod of an earlier release", 3, "a b c", edits(unknown), "steady: LabelPod b voter"}})
}

// TestRestartThatCannotStart: the status shows what Kubernetes reports about the pod.
func TestRestartThatCannotStart(t *testing.T) {
	o := observed(t, 3, "a b c", func(o *Observed) {
		o.Pods[1].Restarting, o.Pods[1].Waiting = true, "ImagePullBackOff: there is no such image"
	})
	if plan, found := awaitRestarts(&o, false); !found || !strings.Contains(plan.Wait.Message, "there is no such image") {
		t.Errorf("waits for %+v", plan.Wait)
	}
}

// TestMemberThatHangsDoesNotRestart: a rollout that waits for a member says whether that restarts.
func TestMemberThatHangsDoesNotRestart(t *testing.T) {
	for name, test := range map[string]struct {
		started time.Duration
		says    string
	}{
		"its container has just started": {time.Second, "member b restarts with version"},
		"it hangs":                       {time.Hour, "member b does not respond, and other members restart after it"},
	} {
		o := observed(t, 3, "a b c", func(o *Observed) {
			o.Pods[1].Started, o.Etcd.Members[1].Version, o.Etcd.Members[1].Health = o.Now.Add(-test.started), "", Unhealthy
		})
		if plan, found := awaitRestarts(&o, true); !found || !strings.Contains(plan.Wait.Message, test.says) || (plan.Wait.Remedy == noActionNeeded) != (test.started < time.Minute) {
			t.Errorf("%s: %+v", name, plan.Wait)
		}
	}
}
