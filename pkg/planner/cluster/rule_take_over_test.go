// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// joins has the cluster take over a running etcd and keep its members.
func joins(o *Observed) {
	o.Cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old:2379"}}}
	for i := range o.Etcd.Members {
		m := &o.Etcd.Members[i]
		o.Cluster.Status.MemberStatuses = append(o.Cluster.Status.MemberStatuses, v1beta2.MemberStatus{ID: hexID(m.ID), Name: m.Name, Unmanaged: m.Unmanaged})
	}
	o.PodDisruptionBudget.MinAvailable = 2
}

// removesOld is joins, with the request to remove the old members.
func removesOld(o *Observed) {
	joins(o)
	o.Cluster.Spec.Bootstrap.Existing.OldMembers = v1beta2.OldMembersRemove
}

func peersAt(url string) func(*Observed) {
	return func(o *Observed) { o.Etcd.Members[0].PeerURLs = []string{url} }
}

func ofOther(o *Observed) { o.Etcd.OfCluster = "n/other" }

func TestBeginWithExisting(t *testing.T) {
	checkDecisions(t, []decision{
		{"the record gets the ID of the running etcd before anything is added", 3, "x:old y:old z:old", edits(neverServed, joins), "bootstrap: RecordBootstrap c0ffee"},
		{"nothing begins without a place", 3, "", edits(neverServed, joins, noQuorum, func(o *Observed) { o.Etcd.NoPlace = "as many as may" }), "bootstrap: wait TooManyTakeOvers"},
		{"nothing begins while the running etcd does not respond", 3, "", edits(neverServed, joins, noQuorum), "bootstrap: wait ExistingEtcdUnreachable"},
		{"nothing begins while an old member does not serve", 3, "x:old y:old z:old,unknown", edits(neverServed, joins), "bootstrap: wait ExistingEtcdUnreachable"},
		{"nothing begins beside a learner", 3, "x:old y:old z:old,learner", edits(neverServed, joins), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"nothing begins beside a member that has not started", 3, "x:old y:old z:old,unstarted", edits(neverServed, joins), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"nothing begins in an etcd without learners", 3, "x:old,v=3.3.27", edits(neverServed, joins, wants("3.3.27")), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"nothing begins with an older minor version", 3, "x:old,v=3.5.27", edits(neverServed, joins), "bootstrap: wait VersionStep"},
		{"nothing begins with a newer minor version", 3, "x:old,v=3.6.1", edits(neverServed, joins, wants("3.5.27")), "bootstrap: wait VersionStep"},
		{"another patch release is no obstacle", 3, "x:old,v=3.6.1", edits(neverServed, joins), "bootstrap: RecordBootstrap c0ffee"},
		{"a member of another EtcdCluster is left alone", 3, "x:old", edits(neverServed, joins, ofOther), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"the etcd of another EtcdCluster that does not respond is left alone", 3, "", edits(neverServed, joins, noQuorum, ofOther), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"peers with TLS are out of reach of members without", 3, "x:old", edits(neverServed, joins, peersAt("https://x:2380")), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"peers at a loopback address are out of reach", 3, "x:old", edits(neverServed, joins, peersAt("http://127.0.0.1:2380")), "bootstrap: wait ExistingEtcdUnsuitable"},
		{"a lost record is made again from what runs", 3, "x:old y:old z:old a", edits(func(o *Observed) { o.Record = Record{} }, joins), "record: WriteRecord c0ffee"},
	})
}

func TestRuleTakeOver(t *testing.T) {
	unwritten := func(o *Observed) { o.Record.Unwritten = "1" }
	checkDecisions(t, []decision{
		{"the only voter has the removal of the last old member on its disk after a write", 1, "a", edits(func(o *Observed) { o.Record.Unwritten = "dead" }), "steady: WriteRemoval"},
		{"not before the old member is removed", 1, "x:old a", edits(joins, unwritten), "take-over: EnsurePodDisruptionBudget 1, wait OldMembersKept"},
		{"no member joins the etcd of another EtcdCluster", 3, "x:old", edits(joins, ofOther), "take-over: wait ExistingEtcdUnsuitable"},
		{"no member joins before the status says that the cluster has begun", 3, "x:old y:old z:old", edits(joins, func(o *Observed) {
			o.ClientService, o.Cluster.Status.Phase = Missing, v1beta2.ClusterPhaseCreating
		}), "take-over"},
		{"a member joins as a learner, and knows all old members", 3, "x:old y:old z:old", edits(joins),
			"take-over: AddLearner c-new, AdmitPod c-new[x y z c-new]"},
		{"no member is added before its pod waits", 3, "x:old y:old z:old", edits(joins, unprepared), "take-over: PreparePod c-new, wait WaitingForPod"},
		{"a member that was added and not admitted is admitted", 1, "x:old y:old z:old c-new:unstarted,learner,nopod", edits(joins, func(o *Observed) {
			o.Prepared = []Pod{{Name: "c-new", UID: "u", Owned: true, Running: true, Version: testVersion, Template: testTemplate}}
		}, budget(1)), "take-over: AdmitPod c-new[x y z c-new]"},
		{"a learner is promoted beside old members", 3, "x:old y:old z:old a:learner", edits(joins), "take-over: PromoteMember a"},
		{"old members do not count for the size", 3, "x:old y:old z:old a b", edits(joins), "take-over: AddLearner c-new, AdmitPod c-new[x y z a b c-new]"},
		{"no member is added at another minor version", 3, "x:old,v=3.5.27 y:old,v=3.5.27 a:v=3.5.27,podv=3.5.27", edits(joins), "take-over: wait VersionStep"},
		{"no member is added while an old member is being added", 3, "x:old y:old z:old,unstarted a", edits(joins), "take-over: wait ExistingEtcdUnsuitable"},
		{"old members are kept until their removal is requested", 3, "x:old y:old z:old a b c", edits(joins), "take-over: wait OldMembersKept"},
		{"no member is replaced beside old members", 3, "x:old y:old z:old a:stale b c", edits(joins), "take-over: wait OldMembersKept"},
		{"no member is upgraded beside old members", 3, "x:old y:old z:old a b c", edits(joins, wants("3.6.12")), "take-over: wait OldMembersKept"},
		{"the cluster does not shrink beside old members", 3, "x:old y:old z:old a b c d", edits(joins, budget(3)), "take-over: wait OldMembersKept"},
		{"a voter without pod and data makes room for another member", 3, "x:old y:old z:old a:nopod b c", edits(joins), "take-over: RemoveMember a Lost"},
		{"a voter without pod and data needs its successor first", 3, "x:old y:old z:old a:nopod b c", edits(joins, unprepared), "take-over: PreparePod c-new, FindMember a, wait WaitingForPod"},
		{"a voter without pod and data above the size has no successor", 2, "x:old y:old z:old a:nopod b c", edits(joins), "take-over: RemoveMember a Lost"},
		{"a voter that does not come back by itself gets a successor", 3, "x:old y:old z:old a:away=10,claim b:claim c:claim", edits(joins), "take-over: AddLearner c-new, AdmitPod c-new[x y z a b c c-new]"},
		{"a voter that does not come back by itself goes when its successor votes", 3, "x:old y:old z:old a:away=10,claim b:claim c:claim d:claim", edits(joins, budget(3)), "take-over: RemoveMember a Away, DeletePod a, DeletePVC a"},
		{"a voter that its declaration stops gets a successor", 3, "x:old y:old z:old a:down,stale b c", edits(joins), "take-over: AddLearner c-new, AdmitPod c-new[x y z a b c c-new]"},
		{"a voter that only responds keeps its successor from joining", 3, "x:old y:old z:old a:claim b:claim c:claim", edits(joins, onlyResponds("a")), "take-over: wait OldMembersKept"},
		{"a voter that only responds and is to be replaced goes first", 3, "x:old y:old z:old a:claim b:leads,claim c:claim", edits(joins, replaceAsked("a"), onlyResponds("a")), "take-over: RemoveMember a Replaced, DeletePod a, DeletePVC a"},
		{"a voter that only responds goes before a missing member joins", 3, "x:old y:old z:old a:claim b:leads,claim", edits(joins, replaceAsked("a"), onlyResponds("a")), "take-over: RemoveMember a Replaced, DeletePod a, DeletePVC a"},
		{"a voter that only responds stays before its successor can join", 3, "x:old y:old z:old a:claim b:leads,claim c:claim", edits(joins, replaceAsked("a"), onlyResponds("a"), unprepared), "take-over: PreparePodAndPVC c-new, wait WaitingForPod"},
		{"a voter that only responds stays without the request", 3, "x:old y:old z:old a:claim b:leads,claim", edits(joins, onlyResponds("a")), "take-over: wait WaitingForMember"},
		{"orphans are deleted beside old members", 3, "x:old y:old z:old a b c", edits(joins, func(o *Observed) {
			o.Pods = append(o.Pods, Pod{Name: "o", UID: "pod-o", Owned: true, Running: true, Version: testVersion, Template: testTemplate})
		}), "take-over: DeletePod o"},
		{"orphans stay while only old members return the member list", 3, "x:old y:old z:old", edits(joins, func(o *Observed) {
			o.Pods = append(o.Pods, Pod{Name: "o", UID: "pod-o", Owned: true, Running: true, Version: testVersion, Template: testTemplate})
		}), "take-over: AddLearner c-new, AdmitPod c-new[x y z c-new]"},
		{"the leadership moves to a member of the cluster first", 3, "x:old,leads y:old z:old a b c", edits(removesOld), "take-over: MoveLeader x>a"},
		{"the leadership of an unresponsive old member cannot be moved", 3, "x:old,leads,unknown y:old z:old a b c", edits(removesOld), "take-over: wait NoLeader"},
		{"an old member is removed", 3, "x:old y:old z:old a:leads b c", edits(removesOld), "take-over: RemoveMember x Old"},
		{"an old member that does not serve goes first", 3, "x:old y:old,unknown z:old a:leads b c", edits(removesOld), "take-over: RemoveMember y Old"},
		{"the last old member is removed", 3, "x:old a:leads b c", edits(removesOld), "take-over: RemoveMember x Old"},
		{"no old member is removed while a member of the cluster does not serve", 3, "x:old y:old z:old a:leads b c:sick", edits(removesOld), "take-over: wait QuorumAtRisk"},
		{"no old member is removed without a leader", 3, "x:old y:old a b:leads c", edits(removesOld, func(o *Observed) {
			for i := range o.Etcd.Members {
				o.Etcd.Members[i].Leader = uint64(i + 1)
			}
		}), "take-over: wait NoLeader"},
		{"no old member is removed before all members of the cluster vote", 3, "x:old y:old z:old a:leads b", edits(removesOld), "take-over: AddLearner c-new, AdmitPod c-new[x y z a b c-new]"},
		{"no old member is removed without a quorum of the others", 1, "x:old y:old,unknown z:old,unknown w:old,unknown a:leads", edits(removesOld), "take-over: wait QuorumAtRisk"},
		{"without old members the cluster is an ordinary one", 3, "a b c", edits(removesOld), "steady"},
		{"an unmanaged member of another cluster is left alone", 3, "a b c x:old", nil, "unmanaged-members: wait UnmanagedMember"},
	})
}

// budget has the disruption budget keep so many pods.
func budget(keep int) func(*Observed) {
	return func(o *Observed) { o.PodDisruptionBudget.MinAvailable = keep }
}

// TestNoRecoveryBesideOldMembers: nothing proves that members of another program are lost.
func TestNoRecoveryBesideOldMembers(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{
		"the status names old members": "x:old,unknown y:old,unknown z:old,unknown a:nopod",
		"the status names no member":   "",
	} {
		o := observed(t, 3, members, joins, noQuorum, func(o *Observed) {
			o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
			o.Cluster.Status.LastBackup = &v1beta2.LastBackup{Name: "b", Verified: true}
		})
		if loss := diagnoseQuorumLoss(&o); loss.Permanent || loss.Certain {
			t.Errorf("%s: the loss is called proven: %+v", name, loss)
		}
		if plan := Decide(o); plan.Rule != RuleQuorum || plan.Wait == nil || plan.Wait.Reason != "EtcdUnreachable" {
			t.Errorf("%s: %s", name, describe(plan))
		}
	}
}

// TestStatusBesideOldMembersRests: old members write on while no member of the cluster responds, and the
// status does not change with each entry.
func TestStatusBesideOldMembersRests(t *testing.T) {
	t.Parallel()
	o := observed(t, 3, "x:old y:old z:old a:down,claim b:down,claim c:down,claim", joins, noQuorum)
	o.Cluster.Status = Status(o, Decide(o))
	before := Status(o, Decide(o))
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].RaftIndex += 10
	}
	if after := Status(o, Decide(o)); !slices.Equal(before.Conditions, after.Conditions) {
		t.Errorf("conditions change:\n%+v\n%+v", before.Conditions, after.Conditions)
	}
}

// TestReadyBesideOldMembers: a cluster whose members all vote is Ready while the old members are
// kept, and Reconciling while they are removed.
func TestReadyBesideOldMembers(t *testing.T) {
	t.Parallel()
	ready := func(o Observed) v1beta2.ClusterCondition {
		s := Status(o, Decide(o))
		if s.Replicas != int32(len(s.Members.Ready)) || len(s.MemberStatuses) != len(o.Etcd.Members) {
			t.Errorf("the status counts %d members and lists %d, ready are %v", s.Replicas, len(s.MemberStatuses), s.Members.Ready)
		}
		return *find(s, v1beta2.ClusterConditionReady)
	}
	if c := ready(observed(t, 3, "x:old,v=3.6.1 y:old z:old a b c", joins)); c.Status != corev1.ConditionTrue || c.Reason != string(ReasonOldMembersKept) || !strings.Contains(c.Message, "x, y, z") {
		t.Errorf("kept: %+v", c)
	}
	if c := ready(observed(t, 3, "x:old y:old z:old a b c", removesOld)); c.Status != corev1.ConditionFalse || c.Reason != string(ReasonTakingOver) {
		t.Errorf("being removed: %+v", c)
	}
	if c := ready(observed(t, 3, "x:old y:old z:old a b", joins)); c.Status != corev1.ConditionFalse {
		t.Errorf("joining: %+v", c)
	}
}
