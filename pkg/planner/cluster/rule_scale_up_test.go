// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func versionUndecided(o *Observed) { o.Etcd.VersionUndecided = true }

// seenBefore has the last status report member c at a version before that of its pod, and the record
// lose what it knew of the log.
func seenBefore(o *Observed) {
	o.Record.Log = resources.LogRecord{}
	o.Cluster.Status.MemberStatuses = []v1beta2.MemberStatus{{ID: hexID(3), Name: "c", Version: "3.5.27"}}
}

func decided(v string) func(*Observed) { return func(o *Observed) { o.Etcd.ClusterVersion = v } }

func TestRuleScaleUp(t *testing.T) {
	checkDecisions(t, []decision{
		{"a learner", 3, "a", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"with a volume", 3, "a:claim b:claim", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"while a minority is sick", 5, "a b c:sick", nil, "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"not while a new member would request the list from one that only responds", 5, "a b:leads c", edits(onlyResponds("a")), "scale-up: wait WaitingForMember"},
		{"not while a voter that only responds knows no leader", 5, "a:noleader b:leads c", nil, "scale-up: wait WaitingForMember"},
		{"while another member comes before the one that only responds", 5, "a b c", edits(onlyResponds("b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"not to a cluster at its limit", 5, "a b c:sick d:sick", nil, "scale-up: wait QuorumAtRisk"},
		{"a voter where learners are unknown", 3, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.9", edits(wants("3.3.9")),
			"scale-up: AddVoter c-new, AdmitPod c-new[a b c-new]"},
		{"the second voter needs its pod at once: without it there is no quorum to read from", 3, "a:v=3.3.9,podv=3.3.9", edits(wants("3.3.9")),
			"scale-up: AdmitPodOfSecondVoter c-new[a c-new], AddVoter c-new"},
		{"the second voter needs its pod and its volume at once", 3, "a:v=3.3.9,podv=3.3.9,claim", edits(wants("3.3.9")),
			"scale-up: AdmitPodOfSecondVoter c-new[a c-new], AddVoter c-new"},
		{"a voter only while no voter is about to restart", 5, "a:v=3.3.9,podv=3.3.9 b:v=3.3.9,podv=3.3.10 c:v=3.3.9,podv=3.3.9", edits(wants("3.3.10")),
			"scale-up: wait QuorumAtRisk"},
		{"a voter waits for the cluster version, without which it could not start", 3, "a:v=3.3.9,podv=3.3.9", edits(wants("3.3.9"), versionUndecided),
			"scale-up: wait ClusterVersionUndecided"},
		{"a member that is not seen may have run a version that none may follow", 5, "a b c:sick,podv=3.6.11", edits(seenBefore), "scale-up: wait ClusterVersionUndecided"},
		{"it has not", 5, "a b c:sick,podv=3.6.11", edits(seenBefore, decided("3.5.0")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"a learner does not", 3, "a", edits(versionUndecided), "scale-up: AddLearner c-new, AdmitPod c-new[a c-new]"},
		{"a learner next to members that know them, whatever is declared", 3, "a b", edits(wants("3.3.9"), unprepared),
			"scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"a voter while one old member is left", 5, "a b:v=3.3.9,podv=3.3.9 c", edits(wants("3.4.0")), "scale-up: AddVoter c-new, AdmitPod c-new[a b c c-new]"},
		{"a voter only to voters that all serve", 5, "a:v=3.3.9 b:v=3.3.9 c:sick", edits(wants("3.3.9")), "scale-up: wait QuorumAtRisk"},
		{"a new member takes the step that the others may take", 3, "a b", edits(wants("3.7.0")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a new member does not take a step that the others may not take yet", 3, "a:v=3.5.21,podv=3.5.21 b:v=3.5.21,podv=3.5.21", edits(wants("3.6.11"), unprepared),
			"scale-up: PreparePod c-new 3.5.21, wait WaitingForPod"},
		{"a new member does not take two steps at once", 3, "a b", edits(wants("3.8.0"), unprepared), "scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"a new member does not take a step back", 3, "a b", edits(wants("3.5.9"), unprepared), "scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"one back while one of them is still there", 3, "a b:v=3.5.26,podv=3.5.26", edits(wants("3.5.26")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"no step back when the last older member is about to restart", 3, "a b:v=3.5.26,podv=3.6.11", edits(wants("3.5.26"), unprepared),
			"scale-up: PreparePod c-new 3.6.11, wait WaitingForPod"},
		{"judged by the slowest, even if it does not respond", 4, "a b c:down,podv=3.5.0", edits(wants("3.7.0"), unprepared),
			"scale-up: PreparePod c-new 3.5.0, wait WaitingForPod"},
	})
}
