// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// lastSaid puts into the last status that every member ran a version.
func lastSaid(version string) func(*Observed) {
	return func(o *Observed) {
		for i := range o.Etcd.Members {
			m := &o.Etcd.Members[i]
			o.Cluster.Status.MemberStatuses = append(o.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{Name: m.Name, ID: hexID(m.ID), Version: version})
		}
	}
}

func TestRuleRolloutVersion(t *testing.T) {
	const next = "3.7.0"
	checkDecisions(t, []decision{
		{"at the wanted version", 3, "a b c", nil, "steady"},
		{"a v in front is no difference", 3, "a b c", edits(wants("v" + testVersion)), "steady"},
		{"a follower first", 3, "a b c", edits(wants(next)), "rollout: UpgradePod b " + next},
		{"one at a time: the pod says new and etcd says old", 3, "a b:podv=3.7.0 c", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"one at a time: it is about to restart with a version that is not wanted any more", 3, "a b:v=3.6.0 c:podv=3.5.9,v=3.5.9", nil, "rollout: wait WaitingForMember"},
		{"one at a time: it restarts", 3, "a b:podv=3.7.0,down c", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"one at a time: it responds, and Kubernetes does not show its restart yet", 3, "a b:v=3.7.0,podv=3.7.0,restarting c", edits(wants(next)),
			"rollout: wait WaitingForMember"},
		{"one at a time: it is not ready for clients yet", 3, "a b:v=3.7.0,podv=3.7.0,notready c", edits(wants(next)), "rollout: wait WaitingForReady"},
		{"the next member is upgraded when the one before is ready", 3, "a b:v=3.7.0,podv=3.7.0 c", edits(wants(next)), "rollout: UpgradePod c " + next},
		{"the leader hands over", 3, "a b:v=3.7.0,podv=3.7.0 c:v=3.7.0,podv=3.7.0,index=101", edits(wants(next)), "rollout: MoveLeader a>c"},
		{"the old leader is last", 3, "a b:v=3.7.0,podv=3.7.0,leads c:v=3.7.0,podv=3.7.0", edits(wants(next)), "rollout: UpgradePod a " + next},
		{"no member that serves while the leader is unknown", 4, "a b c d", edits(wants(next), disagree), "rollout: wait NoLeader"},
		{"a broken one first", 3, "a b c:sick", edits(wants(next)), "rollout: UpgradePod c " + next},
		{"the leader is last even if only the controller cannot reach it", 3, "a:leads,unknown b c", edits(wants(next)), "rollout: wait QuorumAtRisk"},
		{"a healthy one only while all others serve", 5, "a b c:v=3.7.0,podv=3.7.0 d:sick,podv=3.7.0 e", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"two broken ones: not even a broken one", 3, "a b:unknown c:sick", edits(wants(next)), "rollout: wait QuorumAtRisk"},
		{"fewer than three have no quorum meanwhile", 2, "a b", edits(wants(next)), "rollout: UpgradePod b " + next + " outage"},
		{"the leader of two hands over before its upgrade", 2, "a b:v=3.7.0,podv=3.7.0", edits(wants(next)), "rollout: MoveLeader a>b"},
		{"the former leader of two is upgraded", 2, "a b:v=3.7.0,podv=3.7.0,leads", edits(wants(next)), "rollout: UpgradePod a " + next + " outage"},
		{"an unresponsive member first", 2, "a b:sick", edits(wants(next)), "rollout: UpgradePod b " + next + " outage"},
		{"no other member is upgraded before the unresponsive one serves", 2, "a b:sick,v=,podv=3.7.0", edits(wants(next)), "rollout: wait WaitingForMember"},
		{"one restarts in place", 1, "a", edits(wants(next)), "rollout: UpgradePod a " + next + " outage"},
		{"one minor version at a time", 3, "a b c", edits(wants("3.8.0")), "rollout: wait VersionStep"},
		{"judged by the slowest, even if it does not respond", 3, "a:v=3.7.0,podv=3.7.0 b:v=3.7.0,podv=3.7.0 c:down,podv=3.6.11", edits(wants("3.8.0")), "rollout: wait VersionStep"},
		{"no step back", 3, "a b c", edits(wants("3.5.9")), "rollout: wait VersionStep"},
		{"not to 3.6 from a 3.5 that loses promotions", 3, "a:v=3.5.25,podv=3.5.25 b:v=3.5.26,podv=3.5.26 c:v=3.5.26,podv=3.5.26", edits(wants("3.6.16")), "rollout: wait VersionStep"},
		{"to 3.6 from a 3.5 that keeps them", 3, "a:v=3.5.26,podv=3.5.26 b:v=3.5.26,podv=3.5.26 c:v=3.5.26,podv=3.5.26", edits(wants("3.6.16")), "rollout: UpgradePod b 3.6.16"},
		{"not to 3.7 from a 3.6 that is too old for it", 3, "a:v=3.6.10,podv=3.6.10 b c", edits(wants("3.7.3")), "rollout: wait VersionStep"},
		{"not to 3.7 from a 3.6 that is too old and only unresponsive", 3, "a b c:down,podv=3.6.10", edits(wants("3.7.3")), "rollout: wait VersionStep"},
		{"not to 3.7 from a member that may run a 3.6 that is too old again", 3, "a b c:down,podv=3.6.10", edits(wants("3.7.3"), lastSaid(testVersion)), "rollout: wait VersionStep"},
		{"an upgrade that is taken back leads to a patch release that the newer members may follow", 3, "a b c:v=3.7.0,podv=3.7.0", edits(wants("3.6.8")), "rollout: wait VersionStep"},
		{"an upgrade that is taken back to a patch release that the newer members may follow", 3, "a b c:v=3.7.0,podv=3.7.0", edits(wants(testVersion)), "rollout: UpgradePod c 3.6.11"},
		{"no return to an older patch release while the newer member does not respond", 3, "a b c:down,podv=3.7.0", edits(wants("3.6.8")), "rollout: wait VersionStep"},
		{"from a patch release that is too old to one that is not", 3, "a b:v=3.6.10,podv=3.6.10 c", edits(wants("3.6.11")), "rollout: UpgradePod b 3.6.11"},
		{"no step back even if no status reports the upgrade of the last one", 3, "a:v=3.7.0,podv=3.7.0 b:v=3.7.0,podv=3.7.0 c:sick,podv=3.7.0",
			edits(lastSaid(testVersion)), "rollout: wait VersionStep"},
		{"no step back even if only its volume has seen it", 3, "a:v=3.7.0,podv=3.7.0,claim b:v=3.7.0,podv=3.7.0,claim c:sick,podv=3.6.0,claimv=3.7.0",
			edits(lastSaid(testVersion)), "rollout: wait VersionStep"},
		{"a step back while the last one still responds", 3, "a:v=3.7.0,podv=3.7.0 b:v=3.7.0,podv=3.7.0 c:podv=3.7.0", nil, "rollout: wait WaitingForMember"},
		{"no other major version", 3, "a b c", edits(wants("4.0.0")), "rollout: wait VersionStep"},
		{"a patch back is allowed", 3, "a b c", edits(wants("3.6.0")), "rollout: UpgradePod b 3.6.0"},
		{"back while one is still there", 3, "a b:v=3.7.0,podv=3.7.0 c", nil, "rollout: UpgradePod b " + testVersion},
		{"a version that says nothing is not acted on", 3, "a b c", edits(wants("latest")), "steady"},
		{"members that said nothing are not acted on", 3, "a:v=,podv= b:v=,podv= c:v=,podv=", edits(wants(next)), "steady"},
		{"another repository is another image", 3, "a b c", edits(func(o *Observed) { o.Pods[2].Outdated = true }), "rollout: UpgradePod c " + testVersion},
		{"without a quorum nothing restarts", 3, "a b c", edits(wants(next), noQuorum), "quorum: wait EtcdUnreachable"},
		{"after replacing", 3, "a b c:nopod", edits(wants(next)), "replace: RemoveMember c Lost"},
		{"after growing", 3, "a b", edits(wants(next)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
	})
}

// TestVersionStepWithANewPod takes steps for which the image alone is not enough.
func TestVersionStepWithANewPod(t *testing.T) {
	const next, bad = "3.7.0", "3.7.99"
	checkDecisions(t, []decision{
		{"on a volume the pod is made again", 3, "a:claim,needsnew b:claim,needsnew c:claim,needsnew", edits(wants(next)), "rollout: RecreatePod b " + next},
		{"a pod in which the version may run restarts in place", 3, "a:claim,needsnew b:claim c:claim,needsnew,podv=3.7.0,v=3.7.0", edits(wants(next)), "rollout: UpgradePod b " + next},
		{"not before the step is allowed", 3, "a:claim,needsnew b:claim,needsnew c:claim,needsnew", edits(wants("3.8.0")), "rollout: wait VersionStep"},
		{"two restart with an outage", 2, "a:claim,needsnew b:claim,needsnew", edits(wants(next)), "rollout: RecreatePod b " + next + " outage"},
		{"a step that is taken back", 3, "a:claim b:claim,needsnew,podv=3.7.0,v=3.7.0 c:claim", nil, "rollout: RecreatePod b " + testVersion},
		{"a step that is taken back, and the member does not run", 3, "a:claim b:claim,needsnew,podv=3.7.0,down c:claim", nil, "repair: RecreatePod b " + testVersion + " idle"},
		{"the same without a quorum", 1, "a:claimv=3.7.99,needsnew,podv=3.7.99,neverran,down", edits(noQuorum, lastSaid(testVersion)), "repair: RecreatePod a " + testVersion + " idle"},
		{"without a PVC a new member joins first", 3, "a:needsnew b:needsnew c:needsnew", edits(wants(next)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"without a PVC not before the step is allowed", 3, "a:needsnew b:needsnew c:needsnew", edits(wants("3.8.0")), "rollout: wait VersionStep"},
		{"without a PVC and without a quorum it is repaired in place", 1, "a:needsnew,podv=3.7.99,neverran,down", edits(noQuorum, lastSaid(testVersion)), "repair: UpgradePod a " + testVersion + " idle"},
		{"without a PVC and without learners it restarts in place", 3, "a:needsnew,v=3.2.13,podv=3.2.13 b:needsnew,v=3.2.13,podv=3.2.13 c:needsnew,v=3.2.13,podv=3.2.13",
			edits(wants("3.3.27")), "rollout: UpgradePod b 3.3.27"},
		{"to the first version with learners, too", 3, "a:needsnew,v=3.3.27,podv=3.3.27 b:needsnew,v=3.3.27,podv=3.3.27 c:needsnew,v=3.3.27,podv=3.3.27",
			edits(wants("3.4.30")), "rollout: UpgradePod b 3.4.30"},
		{"where a policy changes images the pod is made again", 3, "a:claim,policy b:claim,policy c:claim,policy", edits(wants(next)), "rollout: RecreatePod b " + next},
		{"where a policy changes images, and the member does not run", 3, "a:claim b:claim,policy,podv=3.7.0,down c:claim", nil, "repair: RecreatePod b " + testVersion + " idle"},
		{"where a policy changes images, without a name and a status", 3, "a:claim,outdated,policy", edits(noQuorum, unnamed), "repair: RecreatePod a " + testVersion + " idle"},
		{"where a policy changes images, a joining member", 3, "a:claim b:claim d:learner,unstarted,outdated,policy,claim,podv=3.6.99", nil, "joining: RecreatePod d " + testVersion + " idle"},
		{"where a policy changes images, a joining member whose image someone has set", 3, "a:claim b:claim d:learner,unstarted,down,policy,claim", edits(image("d", resources.ImageChanged)),
			"joining: RecordPutBack 1, RecreatePod d " + testVersion + " idle"},
		{"where a policy changes images, without a PVC", 3, "a:policy b:policy c:policy", edits(wants(next)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"where a policy changes images, without a PVC, in an etcd without learners", 3, "a:policy,v=3.3.27,podv=3.3.27 b:policy,v=3.3.27,podv=3.3.27 c:policy,v=3.3.27,podv=3.3.27", edits(wants("3.3.28")), "rollout: UpgradePod b 3.3.28"},
		{"where a policy changes images at rest nothing is due", 3, "a:claim,policy b:claim,policy c:policy", nil, "steady"},
		{"at rest nothing is due", 3, "a:needsnew b:needsnew,claim c:needsnew", nil, "steady"},
		{"a joining member whose image does not exist", 3, "a:claim b:claim d:learner,unstarted,outdated,needsnew,claim,podv=3.6.99", edits(wants(testVersion)),
			"joining: RecreatePod d " + testVersion + " idle"},
		{"a member without a name and a status, from another repository", 3, "a:claim,outdated,needsnew", edits(noQuorum, unnamed), "repair: RecreatePod a " + testVersion + " idle"},
		{"another bad image", 3, "a:claim b:claim,outdated,needsnew,podv=" + bad + " c:claim", nil, "repair: RecreatePod b " + testVersion + " idle"},
	})
}

func TestRuleRollout(t *testing.T) {
	const next = "3.7.0"
	checkDecisions(t, []decision{
		{"on a volume the pod is made again", 3, "a:claim,stale b:claim,stale c:claim,stale", nil, "rollout: RecreatePod b " + testVersion},
		{"one at a time", 3, "a:claim,stale b:claim,terminating c:claim,stale", nil, "replace: wait WaitingForPod"},
		{"no pod is made again until the one before serves", 3, "a:claim,stale b:claim,sick c:claim,stale", nil, "rollout: wait WaitingForMember"},
		{"no pod is made again until clients reach the one before", 3, "a:claim,stale b:claim,notready c:claim,stale", nil, "rollout: wait WaitingForReady"},
		{"the next pod is made again when clients reach the one before", 3, "a:claim,stale b:claim c:claim,stale", nil, "rollout: RecreatePod c " + testVersion},
		{"the leader hands over", 3, "a:claim,stale b:claim c:claim", nil, "rollout: MoveLeader a>b"},
		{"the former leader does not restart while another member still follows it", 3, "a:claim,stale b:claim,leads c:claim",
			edits(func(o *Observed) { o.Etcd.Members[2].Leader = o.Etcd.Members[0].ID }), "rollout: wait QuorumAtRisk"},
		{"the former leader restarts last", 3, "a:claim,stale b:claim,leads c:claim", nil, "rollout: RecreatePod a " + testVersion},
		{"a broken one first", 3, "a:claim,stale b:claim,stale c:claim,stale,sick", nil, "rollout: RecreatePod c " + testVersion},
		{"one that does not run needs no quorum", 3, "a:claim,stale b:claim,unknown c:claim,stale,down", nil, "repair: RecreatePod c " + testVersion + " idle"},
		{"not even a broken one that runs without a quorum", 3, "a:claim,stale b:claim,unknown,stale c:claim,stale,sick", nil, "rollout: wait QuorumAtRisk"},
		{"with another version at the same time", 3, "a:claim,stale b:claim,stale c:claim,stale", edits(wants(next)), "rollout: RecreatePod b " + next},
		{"with its version if it may not have the declared one", 3, "a:claim,stale b:claim,stale c:claim,stale", edits(wants("3.9.0")), "rollout: RecreatePod b " + testVersion},
		{"two restart with an outage", 2, "a:claim,stale b:claim,stale", nil, "rollout: RecreatePod b " + testVersion + " outage"},
		{"one restarts with an outage", 1, "a:claim,stale", nil, "rollout: RecreatePod a " + testVersion + " outage"},
		{"a request to restart", 3, "a:claim b:claim,unasked c:claim", edits(asks), "rollout: RecreatePod b " + testVersion},
		{"on a volume nothing stays of what filled a member", 3, "a:claim b:claim,fills c:claim", nil, "rollout: RecreatePod b " + testVersion},
		{"what filled a member stays until the others serve", 3, "a:claim b:claim,fills c:claim,unknown", nil, "rollout: wait WaitingForMember"},
		{"without a volume another member takes the place of one that was filled", 3, "a:fills b c", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"a request that was served before", 3, "a:claim b:claim c:claim", edits(asks), "steady"},
		{"no request", 3, "a:claim,unasked b:claim c:claim", nil, "steady"},

		{"without a PVC a new member joins first", 3, "a:stale b:stale c:stale", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"it is wanted", 3, "a:stale b:stale c:stale d:learner", nil, "joining: EnsurePodDisruptionBudget 3, PromoteMember d"},
		{"clients must reach it", 3, "a:stale b:stale c:stale d:notready", nil, "scale-down: wait WaitingForReady"},
		{"the new member must know that it votes", 3, "a:stale b:stale c:stale,leaving d:unknown", made("d", 10*time.Second), "scale-down: wait WaitingForMember"},
		{"one whose clients are sent away is not kept for that", 3, "a:stale b:stale c:stale,leaving,terminating d:unknown", made("d", 10*time.Second), "scale-down: RemoveMember c Replaced"},
		{"a member that has not responded for minutes is not waited for", 3, "a:stale b:stale c:stale,leaving d:unknown", made("d", 10*time.Minute), "scale-down: RemoveMember c Replaced, DeletePod c"},
		{"a member that is not the leader is replaced first, and drains its clients", 3, "a:stale b:stale c:stale d", nil, "scale-down: LabelPod c leaving"},
		{"a draining member is replaced, although another could be", 3, "a:stale b:stale,leaving c:stale d", nil, "scale-down: DrainReplaced b"},
		{"it ends what clients have asked for", 3, "a:stale b:stale c:stale,leaving,terminating d", nil, "scale-down: wait WaitingForPod"},
		{"a replaced member is removed when its clients are drained", 3, "a:stale b:stale c:stale,leaving,terminating,sick d", nil, "scale-down: RemoveMember c Replaced"},
		{"a surplus member without a pod is removed", 3, "a:stale b:stale c:unknown,nopod d", nil, "scale-down: RemoveMember c ScaleDown"},
		{"one that was evicted goes instead of it", 3, "a:stale b:finished c:stale,leaving d", nil,
			"scale-down: LabelPod c voter, RemoveMember b ScaleDown, DeletePod b"},
		{"a new one that does not serve yet is not the one to leave", 3, "a:stale b:stale c:stale d:sick", nil, "scale-down: wait QuorumAtRisk"},
		{"a new one that does not run is", 3, "a:stale b:stale c:stale d:down", nil, "scale-down: RemoveMember d ScaleDown, DeletePod d"},
		{"a broken one first", 3, "a:stale b:stale,sick c:stale d", nil, "scale-down: RemoveMember b Replaced, DeletePod b"},
		{"the leader hands over before it leaves", 3, "a:stale,leaving b c d", nil, "scale-down: MoveLeader a>b"},
		{"a leader that cannot be reached does not", 3, "a:stale,unknown,leads b c d", nil, "scale-down: wait WaitingForMember"},
		{"the former leader is replaced last", 3, "a:stale,leaving b:leads c d", nil, "scale-down: DrainReplaced a"},
		{"one is replaced like three", 1, "a:stale", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"it hands over", 1, "a:stale,leaving b", nil, "scale-down: MoveLeader a>b"},
		{"the only member leaves after it has handed over", 1, "a:stale,leaving b:leads", nil, "scale-down: RemoveMember a Replaced, DeletePod a"},
		{"a change that was taken back", 3, "a b c d:learner,stale", nil, "joining: RemoveMember d Surplus, DeletePod d"},
		{"a learner with the previous declaration is replaced by one with the new declaration", 3, "a b d:learner,unstarted,stale", nil, "joining: RemoveMember d Surplus, DeletePod d"},
		{"on its volume", 3, "a:claim b:claim d:learner,unstarted,stale,down,claim", nil, "joining: RecreatePod d " + testVersion + " idle"},
		{"a voter that has not told its name, and that the others do not need", 3, "a:claim b:claim d:unstarted,sick,stale,claim", nil, "joining: RecreatePod d " + testVersion},
		{"one that the others may need", 3, "a:claim b:claim,unknown d:unstarted,sick,stale,claim", nil, "joining: wait QuorumAtRisk"},
		{"the second of two", 3, "a:claim d:unstarted,sick,stale,claim", nil, "joining: RecreatePod d " + testVersion + " outage"},
		{"a member that has joined is promoted first", 3, "a b d:learner,stale", nil, "joining: PromoteMember d"},
		{"not without a quorum", 3, "a:stale b:stale,sick c:stale,sick", edits(noQuorum), "quorum: wait QuorumLost"},
	})
}

// made says how long ago the pod of a member was made.
func made(name string, ago time.Duration) []func(*Observed) {
	return edits(func(o *Observed) { podByName(o.Pods, name).Made = o.Now.Add(-ago) })
}
