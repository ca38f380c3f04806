// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// unreadSince says for how long the last status could not read a member list.
func unreadSince(d time.Duration) func(*Observed) {
	return func(o *Observed) {
		noQuorum(o)
		o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{
			Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionUnknown, LastTransitionTime: testNow.Add(-d).Format(time.RFC3339),
		}}
	}
}

// TestRepairUnresponsive takes back a declaration with which etcd runs and is out of reach.
func TestRepairUnresponsive(t *testing.T) {
	long, again := unreadSince(unresponsiveFor), "repair: RecreatePod "
	unready := func(o *Observed) { podByName(o.Pods, "c").Ready = false }
	started := func(name string, ago time.Duration) func(*Observed) {
		return func(o *Observed) { podByName(o.Pods, name).Started = o.Now.Add(-ago) }
	}
	checkDecisions(t, []decision{
		{"the only member", 1, "a:claim,stale,unknown", edits(long), again + "a " + testVersion + " unresponsive"},
		{"the only member, and Kubernetes does not call it ready either", 1, "a:claim,stale,sick", edits(long), again + "a " + testVersion + " unresponsive"},
		{"not before it has been so for long", 1, "a:claim,stale,unknown", edits(unreadSince(unresponsiveFor - time.Second)), "quorum: wait EtcdUnreachable"},
		{"not before its container has had the time to respond", 1, "a:claim,stale,unknown", edits(long, started("a", time.Second)), "quorum: wait EtcdUnreachable"},
		{"it has had the time", 1, "a:claim,stale,unknown", edits(long, started("a", time.Hour)), again + "a " + testVersion + " unresponsive"},
		{"a pod on a lost node is not waited for", 3, "a:claim,noleader,notready b:claim,unknown,terminating d:claim,stale,sick", edits(long, func(o *Observed) {
			podByName(o.Pods, "b").EndsBy = o.Now.Add(-time.Hour)
		}), again + "d " + testVersion + " unresponsive"},
		{"an unmanaged voter is not known to be ready", 3, "a:claim,stale,unknown b:claim c:claim d:podless", edits(degradedFor(time.Hour)), "unmanaged-members: wait UnmanagedMember"},
		{"it is as declared", 1, "a:claim,unknown", edits(long), "quorum: wait EtcdUnreachable"},
		{"without a PVC its data would go", 1, "a:stale,unknown", edits(long), "quorum: wait EtcdUnreachable"},
		{"its image can change in place", 1, "a:unknown,podv=3.6.16", edits(long, lastSaid(testVersion)), "repair: UpgradePod a " + testVersion + " unresponsive"},
		{"a version step that is not allowed", 1, "a:unknown", edits(long, lastSaid(testVersion), wants("3.8.0")), "quorum: wait EtcdUnreachable"},
		{"the next minor version is declared, too", 1, "a:claim,stale,unknown", edits(long, lastSaid(testVersion), wants("3.7.3")), "quorum: wait EtcdUnreachable"},
		{"the next minor version is declared, too, and it has been so for ten minutes", 1, "a:claim,stale,unknown", edits(unreadSince(diagnosis.ReturnGrace), lastSaid(testVersion), wants("3.7.3")), again + "a " + testVersion + " unresponsive"},
		{"its container does not run", 1, "a:claim,stale,down", edits(long), again + "a " + testVersion + " idle"},
		{"etcd rejects the controller", 1, "a:claim,stale,unknown", edits(long, func(o *Observed) { o.Etcd.Denied = true }), "quorum: wait EtcdDenied"},
		{"the controller could not query it", 1, "a:claim,stale,unknown", edits(long, func(o *Observed) { o.Etcd.Unasked = true }), "quorum: wait EtcdUnreachable"},

		{"one of two: the outage cannot be avoided", 2, "a:claim,stale,unknown b:claim,stale,unknown", edits(long), again + "a " + testVersion + " unresponsive"},
		{"the other ones are ready and a quorum", 3, "a:claim,stale,unknown b:claim,stale,unknown c:claim,stale,unknown", edits(long), again + "a " + testVersion + " unresponsive"},
		{"the one that is not ready first", 3, "a:claim,stale,unknown b:claim,stale,unknown c:claim,stale,unknown", edits(long, unready), again + "c " + testVersion + " unresponsive"},
		{"no other one is ready", 3, "a:claim,stale,sick b:claim,stale,sick c:claim,stale,sick", edits(long), again + "a " + testVersion + " unresponsive"},
		{"another member is ready, and may need its vote", 3, "a:claim,unknown b:claim,stale,sick c:claim,down", edits(long), "quorum: wait QuorumLost"},
		{"one at a time: one has just restarted", 3, "a:claim,stale,unknown b:claim,stale,unknown c:claim,unknown", edits(long, started("c", time.Second)), "quorum: wait EtcdUnreachable"},
		{"one at a time: one is still about to end", 3, "a:claim,stale,unknown b:claim,stale,unknown c:claim,stale,unknown,terminating", edits(long), "quorum: wait EtcdUnreachable"},
		{"the next one", 3, "a:claim,stale,unknown b:claim,unknown c:claim,stale,unknown", edits(long, started("b", time.Hour)), again + "a " + testVersion + " unresponsive"},
		{"one follows a leader", 3, "a:claim b:claim,stale,unknown c:claim,stale,unknown", edits(long), "quorum: wait EtcdUnreachable"},
		{"one responds, knows no leader, and needs another voter", 3, "a:claim,noleader,notready b:claim,stale,sick c:claim,down", edits(long), again + "b " + testVersion + " unresponsive"},

		{"a joining member on its PVC", 3, "a:claim b:claim d:learner,stale,unknown,claim", nil, "joining: RecreatePod d " + testVersion},
		{"a joining member without a PVC", 3, "a b d:learner,stale,unknown", nil, "joining: RemoveMember d Surplus, DeletePod d"},
		{"a joining member that has not had the time", 3, "a b d:learner,stale,unknown", edits(started("d", time.Second)), "joining: PromoteMember d"},
		{"with a quorum it restarts as in a rollout", 3, "a:claim b:claim,stale,unknown c:claim", edits(degradedFor(time.Hour)), "repair: RecreatePod b " + testVersion},
		{"it leads, and no other voter can be removed meanwhile", 2, "a:claim,stale,unknown,leads b:claim c:claim", edits(degradedFor(time.Hour)), "repair: RecreatePod a " + testVersion},
		{"it leads, and no other voter can restart meanwhile", 3, "a:claim,stale,unknown,leads b:claim,stale c:claim,stale", edits(degradedFor(time.Hour)), "repair: RecreatePod a " + testVersion},
		{"it is one of two, and no member can be added meanwhile", 3, "a:claim b:claim,stale,unknown", edits(degradedFor(time.Hour)), "repair: RecreatePod b " + testVersion + " outage"},
		{"not while another member is about to restart", 3, "a:claim,podv=3.6.12 b:claim,stale,unknown c:claim", edits(degradedFor(time.Hour)), "rollout: wait WaitingForMember"},
		{"most voters do not respond, and Kubernetes calls them ready", 3, "a:claim b:claim,stale,unknown c:claim,stale,unknown", edits(degradedFor(time.Hour)), again + "b " + testVersion + " unresponsive"},
		{"most voters do not respond, and one of them has just restarted", 3, "a:claim b:claim,stale,unknown c:claim,unknown", edits(degradedFor(time.Hour), started("c", time.Second)), "rollout: wait WaitingForMember"},
		{"most voters do not respond, and the others are not ready", 3, "a:claim b:claim,stale,unknown c:claim,stale,sick", edits(degradedFor(time.Hour)), again + "c " + testVersion + " unresponsive"},
		{"a lost member is replaced after that", 5, "a:claim b:claim,stale,unknown c:claim,stale,unknown d:claim e:nopod", edits(degradedFor(time.Hour)), again + "b " + testVersion + " unresponsive"},
		{"one of two that remain, as the third is lost: the outage cannot be avoided", 3, "a:claim b:claim,stale,unknown,leads c:nopod", edits(degradedFor(time.Hour)), again + "b " + testVersion + " unresponsive"},
		{"the third is lost, and one has not responded for a moment", 3, "a:claim b:claim,stale,unknown,leads c:nopod", edits(degradedFor(time.Second)), "replace: FindMember c, wait QuorumAtRisk"},
		{"the third is lost, and its PVC remains", 3, "a:claim b:claim,stale,unknown c:claim,down,notready", edits(degradedFor(time.Hour)), "rollout: wait WaitingForMember"},
		{"two of five are lost, and another voter is not ready", 5, "a:claim b:claim,stale,unknown c:claim,unknown,notready d:nopod e:nopod", edits(degradedFor(time.Hour)), "replace: FindMember d, FindMember e, wait QuorumAtRisk"},
		{"two that remain do not respond, and the third is lost", 3, "a:claim,stale,unknown b:claim,stale,unknown c:nopod", edits(long), again + "a " + testVersion + " unresponsive"},
		{"the others are no quorum", 3, "a:claim b:claim,stale,unknown c:claim,sick", edits(degradedFor(time.Hour)), "rollout: wait WaitingForMember"},
		{"most voters have not responded for a moment", 3, "a:claim b:claim,stale,unknown c:claim,stale,unknown", edits(degradedFor(time.Second)), "rollout: wait QuorumAtRisk"},
		{"only another voter has not served for long", 3, "a:claim,stale,unknown b:claim,sick c:claim", edits(degradedFor(time.Hour, "b")), "rollout: wait WaitingForMember"},
		{"it has not responded for a moment, and another voter for long", 3, "a:claim b:claim,stale,unknown c:claim,stale,unknown", edits(degradedFor(time.Hour, "c")), again + "c " + testVersion + " unresponsive"},
		{"the controller moves the leader first", 3, "a:claim,stale,unknown,leads b:claim c:claim", edits(degradedFor(time.Second)), "rollout: MoveLeader a>b"},
		{"a leader that has not responded for long restarts at once", 3, "a:claim,stale,unknown,leads b:claim c:claim", edits(degradedFor(unresponsiveFor)), "repair: RecreatePod a " + testVersion},
		{"without a PVC it is removed after its successor has joined", 3, "a:stale,unknown,leads b c d", edits(degradedFor(unresponsiveFor)), "scale-down: RemoveMember a Replaced, DeletePod a"},
	})
}
