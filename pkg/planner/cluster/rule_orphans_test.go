// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func retain(o *Observed) {
	persist(o)
	o.Cluster.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta2.PVCRetain}
}

func TestRuleOrphans(t *testing.T) {
	going := func(o *Observed) {
		o.Pods[len(o.Pods)-1].Terminating = true
	}
	checkDecisions(t, []decision{
		{"a pod of no member", 3, "a b c", edits(pod("x", true)), "orphans: DeletePod x"},
		{"with its volume", 3, "a:claim b:claim c:claim", edits(pod("x", true), withPVC("x", true)), "orphans: DeletePod x, DeletePVC x"},
		{"of the only voter, which may not have the removal on its disk", 1, "a", edits(pod("x", true)), "orphans: VerifyWrite, DeletePod x"},
		{"of the only voter, whose database is full", 1, "a", edits(pod("x", true), full), "orphans: DeletePod x"},
		{"a volume that is kept", 3, "a:claim b:claim c:claim", edits(withPVC("x", true), retain), "orphans: ReleasePVC x"},
		{"one that goes already", 3, "a b c", edits(pod("x", true), going), "steady"},
		{"a pod that is not owned", 3, "a b c", edits(pod("x", false)), "steady"},
		{"the second voter before learners, which may yet be added", 3, "a:v=3.3.27,podv=3.3.27", secondVoter(0), "orphans: wait WaitingForMember"},
		{"that has ended too often", 3, "a:v=3.3.27,podv=3.3.27", secondVoter(3), "orphans: VerifyWrite, DeletePod x"},
		{"that has waited too long", 3, "a:v=3.3.27,podv=3.3.27", append(secondVoter(0), func(o *Observed) { podByName(o.Pods, "x").Made = o.Now.Add(-time.Hour) }), "orphans: VerifyWrite, DeletePod x"},
		{"that has joined before", 3, "a:v=3.3.27,podv=3.3.27", append(secondVoter(0), func(o *Observed) { podByName(o.Pods, "x").MayFill = false }), "orphans: VerifyWrite, DeletePod x"},
		{"that was to join other members", 3, "a:v=3.3.27,podv=3.3.27", append(secondVoter(0), func(o *Observed) { podByName(o.Pods, "x").Peers = []string{"b", "x"} }), "orphans: VerifyWrite, DeletePod x"},
		{"that joins an etcd with learners", 3, "a", secondVoter(0)[1:], "orphans: VerifyWrite, DeletePod x"},
		{"before a change goes on", 3, "a b c:learner", edits(pod("x", true)), "orphans: DeletePod x"},
		{"a recovery member that was abandoned", 3, "a b c", edits(begun("one"), recorded(succeeded), createdFor("one", "x", filling, true)), "orphans: DeleteRecoveryMember x"},
		{"that of an earlier recovery", 3, "a b c", edits(begun("zero", "one"), recorded(abandoned), createdFor("zero", "x", filling, true)), "orphans: DeleteRecoveryMember x"},
		{"not while a recovery is under way", 3, "a b c", edits(begun("one"), recorded(filling, restores), createdFor("one", "x", filling, true), recoveryPod(0)), "steady"},
		{"not while one is requested", 3, "a b c", edits(begun("one"), recorded(succeeded), asked(later), createdFor("one", "x", filling, true)), "recovery: RecordRecovery Abandoned"},
		{"not one that was published", 3, "a b c", edits(begun("one"), recorded(succeeded), createdFor("one", "x", cutover, false)), "steady"},
		{"not a member", 3, "a b c", edits(begun("one"), recorded(succeeded), createdFor("one", "a", cutover, true)), "steady"},
		{"not without a quorum", 3, "a:noleader b:nopod,claim c:nopod,claim", edits(noQuorum, begun("one"), recorded(abandoned), createdFor("one", "x", filling, true)),
			"recreate-pods: CreatePod b[a b c], CreatePod c[a b c]"},
	})
}

// secondVoter is a cluster of etcd 3.3 with the pod x, which was admitted as the second voter and whose
// container has ended so often.
func secondVoter(ends int) []func(*Observed) {
	return edits(wants("3.3.27"), pod("x", true), func(o *Observed) {
		p := podByName(o.Pods, "x")
		p.MayFill, p.Peers, p.RestartCount, p.Made = true, []string{"a", "x"}, ends, o.Now
	})
}
