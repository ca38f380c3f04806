// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// again has the pods and PVCs of members say again that no member has used them, as after a restore of Kubernetes.
func again(names ...string) func(*Observed) {
	return func(o *Observed) {
		for _, name := range names {
			pod := func(p Pod) bool { return p.Name == name }
			pvc := func(c PVC) bool { return c.Name == name }
			for _, p := range o.Pods {
				if pod(p) {
					p.Role = PodLearner
					o.Prepared = append(o.Prepared, p)
				}
			}
			for _, c := range o.PVCs {
				if pvc(c) {
					o.PreparedPVCs = append(o.PreparedPVCs, c)
				}
			}
			o.Pods, o.PVCs = slices.DeleteFunc(o.Pods, pod), slices.DeleteFunc(o.PVCs, pvc)
		}
	}
}

// reported is the last status.
func reported(members ...v1beta2.MemberStatus) func(*Observed) {
	return func(o *Observed) { o.Cluster.Status.MemberStatuses = members }
}

// unlisted takes members out of what etcd says.
func unlisted(names ...string) func(*Observed) {
	return func(o *Observed) {
		o.Etcd.Members = slices.DeleteFunc(o.Etcd.Members, func(m Member) bool { return slices.Contains(names, m.Name) })
	}
}

// TestStartedMembersAreNotPrepared: Kubernetes is restored to a time at which pods waited for members that vote by
// now. Nothing of these members is deleted, and their pods and PVCs stop saying that they wait.
func TestStartedMembersAreNotPrepared(t *testing.T) {
	follower := v1beta2.MemberStatus{ID: "2", Name: "b", Role: v1beta2.MemberRoleFollower}
	pending := v1beta2.MemberStatus{ID: "2", Name: "b", Role: v1beta2.MemberRolePending}
	viewed := func(o *Observed) {
		o.Etcd.Members[0].View = &View{Members: []Member{{ID: 1, Name: "a", Started: true}, {ID: 2, Name: "b", Started: true}}}
	}
	onlyPod := func(o *Observed) { o.PVCs, o.PreparedPVCs = append(o.PVCs, o.PreparedPVCs...), nil }
	const both = "ConfirmPVC b, ConfirmPVC c, LabelAndAdmitPod b voter, LabelAndAdmitPod c voter"
	checkDecisions(t, []decision{
		{"two voters of three", 3, "a:claim b:claim c:claim", edits(again("b", "c")), "steady: " + both},
		{"without volumes", 3, "a b c", edits(again("b", "c")), "steady: LabelAndAdmitPod b voter, LabelAndAdmitPod c voter"},
		{"only a PVC", 3, "a:claim b:claim c:claim", edits(again("b"), func(o *Observed) {
			o.Pods, o.Prepared = append(o.Pods, o.Prepared[0]), []Pod{}
			o.Pods[2].Role = PodVoter
		}), "steady: ConfirmPVC b"},
		{"a cluster of the desired size 0", 0, "a:claim b:claim", edits(again("b")), "hibernate: ConfirmPVC b, LabelAndAdmitPod b voter, DeletePod a, DeletePod b"},
		{"the last status names the voter", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), unlisted("b"), reported(follower)), "quorum: ConfirmPVC b, LabelAndAdmitPod b learner, wait QuorumLost"},
		{"one voter names the other", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), unlisted("b"), viewed), "quorum: ConfirmPVC b, LabelAndAdmitPod b learner, wait QuorumLost"},
		{"its PVC was admitted and no status names it", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), unlisted("b"), onlyPod), "quorum: LabelAndAdmitPod b learner, wait QuorumLost"},
		{"the same, and the pod has ended", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), unlisted("b"), onlyPod, func(o *Observed) { o.Prepared[0].Finished = true }), "quorum: DeletePrepared b, wait QuorumLost"},
		{"a member that the last status calls pending", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), unlisted("b"), reported(pending)), "quorum: wait QuorumLost"},
		{"a member that was removed since is no new one", 1, "a:claim b:claim", edits(again("b"), unlisted("b"), reported(follower), func(o *Observed) { o.PodDisruptionBudget.MinAvailable = 1 }), "orphans: VerifyWrite, DeletePod b, DeletePVC b"},
		{"a PVC that no quorum has confirmed since it was taken back", 3, "a:claim,down b:claim,down", edits(noQuorum, again("b"), func(o *Observed) { o.PreparedPVCs[0].TakenBackFrom = "before" }), "quorum: LabelAndAdmitPod b learner, wait QuorumLost"},
	})
}
