// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// createdFor is a recovery member that exists.
func createdFor(id, seed string, phase v1beta2.RecoveryPhase, hidden bool) func(*Observed) {
	return func(o *Observed) {
		o.Witnesses.RecoveryMembers = append(o.Witnesses.RecoveryMembers, RecoveryWitness{
			Recovery: v1beta2.RecoveryStatus{ID: id, RecoveryMember: seed, Phase: phase}, Hidden: hidden,
		})
	}
}

func known(ids ...string) func(*Observed) {
	return func(o *Observed) { o.Witnesses.Recoveries = ids }
}

// said is what the status says of a recovery.
func said(id, seed string, phase v1beta2.RecoveryPhase) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Recovery = &v1beta2.RecoveryStatus{ID: id, RecoveryMember: seed, Phase: phase}
	}
}

// TestRuleRecord: a lost record never names a bootstrap member of a cluster that has begun, and
// has the last recovery at the phase that it has reached at least.
func TestRuleRecord(t *testing.T) {
	checkDecisions(t, []decision{
		{"a new cluster", 3, "", edits(unresponsive, noRecord), "record: WriteRecord a"},
		{"emptied before the bootstrap member exists", 3, "", edits(unresponsive, emptied), "record: WriteRecord a"},
		{"the bootstrap member has not responded", 3, "", edits(unresponsive, noRecord, pod("a", true)), "record: WriteRecord a"},
		{"it has only a PVC", 3, "", edits(unresponsive, noRecord, withPVC("a", true)), "record: WriteRecord a"},
		{"it has responded and was not published to clients", 3, "a", edits(neverServed, noRecord), "record: WriteRecord a"},
		{"another bootstrap member is recorded before one exists", 3, "", edits(unresponsive, func(o *Observed) { o.Record.BootstrapMember = "x" }), "record: WriteRecord a"},
		{"the only pod is of a member that joined", 3, "", edits(unresponsive, noRecord, pod("b", true)), "record: WriteRecord unknown"},
		{"the only PVC is of a member that joined", 3, "", edits(unresponsive, noRecord, withPVC("b", true)), "record: WriteRecord unknown"},
		{"the client Service exists", 3, "", edits(unresponsive, noRecord, clients(Current)), "record: WriteRecord unknown"},
		{"members respond", 3, "a b c", edits(noRecord), "record: WriteRecord c0ffee"},
		{"members respond without a quorum", 3, "a:noleader b:nopod c:nopod", edits(noRecord, noQuorum), "record: WriteRecord c0ffee"},
		{"only a learner responds", 3, "a:nopod b:nopod c:learner", edits(noRecord, noQuorum, func(o *Observed) { o.Etcd.Unlisted = true }), "record: WriteRecord unknown"},
		{"no member responds", 3, "a b c", edits(noRecord, noQuorum, noID), "record: WriteRecord unknown"},
		{"the cluster ID was removed", 3, "a b c", edits(func(o *Observed) { o.Record.ClusterID = "" }), "record: WriteRecord c0ffee"},

		{"a recovery that fills its member", 3, lost, edits(noQuorum, noRecord, createdFor("one", "seed", filling, true)), "record: WriteRecord c0ffee Filling one"},
		{"the status has not heard of it", 3, lost, edits(noQuorum, noRecord, createdFor("one", "seed", filling, true), said("one", "", pending)), "record: WriteRecord c0ffee Filling one"},
		{"the status knows more", 3, lost, edits(noQuorum, noRecord, createdFor("one", "seed", filling, true), said("one", "seed", cutover)), "record: WriteRecord c0ffee Cutover one"},
		{"the status knows less", 3, lost, edits(noQuorum, noRecord, createdFor("one", "seed", cutover, true), said("one", "seed", filling)), "record: WriteRecord c0ffee Cutover one"},
		{"the status has the member of an earlier attempt", 3, lost, edits(noQuorum, noRecord, createdFor("one", "seed", filling, true), said("one", "before", cutover)), "record: WriteRecord c0ffee Filling one"},
		{"its member was published", 3, "seed", edits(noRecord, createdFor("one", "seed", cutover, false), said("one", "seed", cutover)), "record: WriteRecord c0ffee Cleaning one"},
		{"it has ended", 3, "seed", edits(noRecord, createdFor("one", "seed", cutover, false), said("one", "seed", succeeded)), "record: WriteRecord c0ffee Succeeded one"},
		{"it has ended, and the member of an earlier attempt was created late", 3, "a b c", edits(noRecord, createdFor("one", "seed", filling, true), said("one", "other", succeeded)), "record: WriteRecord c0ffee Succeeded one"},
		{"it was cancelled, and its member is about to be deleted", 3, "a b c", edits(noRecord, createdFor("one", "seed", filling, true), said("one", "seed", abandoned)), "record: WriteRecord c0ffee Abandoned one"},
		{"a member that was created for an earlier recovery", 3, "a b c", edits(noRecord, createdFor("one", "seed", filling, true), said("two", "other", abandoned)), "record: WriteRecord c0ffee Abandoned two"},
		{"other members know a later recovery", 3, "a b c", edits(noRecord, createdFor("one", "seed", filling, true), known("one", "two")), "record: WriteRecord c0ffee"},
		{"the first member of the cluster is from an earlier recovery", 3, "a b c",
			edits(noRecord, createdFor("one", "a", cutover, false), createdFor("two", "seed", filling, true)), "record: WriteRecord c0ffee Filling two"},
		{"only the status shows one that is over", 3, "a b c", edits(noRecord, said("one", "seed", succeeded)), "record: WriteRecord c0ffee Succeeded one"},
		{"only the status shows one that is under way", 3, "a b c", edits(noRecord, said("one", "seed", filling)), "record: WriteRecord c0ffee"},
		{"a request has not begun", 3, "a b c", edits(noRecord, said("one", "", pending)), "record: WriteRecord c0ffee"},
		{"only the recovery was removed from the record", 3, "a b c", edits(createdFor("one", "seed", filling, true)), "record: WriteRecord c0ffee Filling one"},
		{"only the IDs were removed from the record", 3, "a b c", edits(known("one")), "record: WriteRecord c0ffee"},
		{"nothing is missing", 3, "a b c", edits(known("one"), begun("one", "two"), recorded(succeeded, later)), "steady"},
	})
}

func emptied(o *Observed) { o.Record.Record = resources.Record{} }

// TestRecordIsCompletedOnce: what was completed is complete.
func TestRecordIsCompletedOnce(t *testing.T) {
	for name, edit := range map[string][]func(*Observed){
		"new":                    edits(unresponsive, noRecord),
		"living":                 edits(noRecord),
		"wiped":                  edits(emptied),
		"recovering":             edits(noRecord, createdFor("one", "seed", filling, true), said("one", "", pending)),
		"recovered":              edits(noRecord, createdFor("two", "seed", cutover, false), known("one")),
		"recovered twice":        edits(noRecord, createdFor("two", "seed", cutover, false), createdFor("three", "next", filling, true), known("one", "two")),
		"told by the status":     edits(noRecord, said("one", "seed", abandoned), known("zero")),
		"IDs in another order":   edits(begun("two", "one"), known("one", "two")),
		"the status is older":    edits(noRecord, said("one", "seed", succeeded), known("one", "two")),
		"the ID is not recorded": edits(recorded(filling), known("zero")),
	} {
		o := observed(t, 3, "a b c", edit...)
		first := completeRecord(&o)
		o.Record = Record{State: Current, Record: first}
		if second := completeRecord(&o); !second.Equal(first) {
			t.Errorf("%s: %+v, then %+v", name, first, second)
		}
	}
}

// TestRecordRemembersWhatMembersKnow: IDs come back from wherever they are.
func TestRecordRemembersWhatMembersKnow(t *testing.T) {
	o := observed(t, 3, "a b c", noRecord, known("one", "two"), createdFor("three", "seed", filling, true))
	if got := completeRecord(&o).Recoveries; !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("it remembers %q", got)
	}
	o = observed(t, 3, "a b c", noRecord, known("one"), said("two", "seed", succeeded))
	if got := completeRecord(&o).Recoveries; !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("with the status it remembers %q", got)
	}
	o = observed(t, 3, "a b c", noRecord, known("one"), asked(restores))
	written := completeRecord(&o)
	o.Record = Record{State: Current, Record: written}
	if plan := describe(Decide(o)); plan != "recovery: RecordRecovery Abandoned" {
		t.Errorf("a request that was carried out before leads to %s", plan)
	}
}
