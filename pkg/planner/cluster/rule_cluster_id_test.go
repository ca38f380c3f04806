// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleClusterID(t *testing.T) {
	otherID := func(id string) func(*Observed) { return func(o *Observed) { o.Record.ClusterID = id } }
	unproven := func(id string) func(*Observed) {
		return func(o *Observed) { o.Record.ClusterID, o.Etcd.OtherClusterID = id, 0xbad }
	}
	checkDecisions(t, []decision{
		{"another cluster responds", 3, "a:nopod b c", edits(otherID("bad")), "cluster-id: FindMember a, wait ClusterIDMismatch"},
		{"only another cluster responds", 3, "a b c", edits(noQuorum, noID, unproven("c0ffee")), "cluster-id: wait ClusterIDMismatch"},
		{"only another cluster responds, and the record is lost", 3, "a b c", edits(noQuorum, noID, unproven("")), "record: WriteRecord unknown"},
		{"only another cluster responds, and the ID was lost", 3, "a b c", edits(noQuorum, noID, unproven(unknownClusterID)), "cluster-id: wait ClusterIDMismatch"},
		{"an ID that is not known is not compared", 3, "a b c", edits(otherID(unknownClusterID)), "steady: RecordBootstrap c0ffee"},
	})
}
