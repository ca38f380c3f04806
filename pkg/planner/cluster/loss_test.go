// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"
)

// viewOf has a member say which voters it knows.
func viewOf(name string, voters ...string) func(*Observed) {
	return func(o *Observed) {
		v := &View{}
		for _, voter := range voters {
			v.Members = append(v.Members, Member{Name: voter})
		}
		memberByName(o.Etcd.Members, name).View = v
	}
}

// labelled has the pod of a member say what that is.
func labelled(name string, role PodRole) func(*Observed) {
	return func(o *Observed) { podByName(o.Pods, name).Role = role }
}

// unmanagedPod is a pod of a member that the last status does not know.
func unmanagedPod(name string, role PodRole) func(*Observed) {
	return func(o *Observed) {
		o.Pods = append(o.Pods, Pod{Name: name, UID: "pod-" + name, Owned: true, Running: true, Role: role})
	}
}

// withoutLearners has the members run a version that knows no learners.
func withoutLearners(o *Observed) {
	const version = "3.3.27"
	o.Cluster.Spec.Version = version
	for i := range o.Etcd.Members {
		o.Etcd.Members[i].Version = version
	}
	for i := range o.Pods {
		o.Pods[i].Version = version
	}
}

// TestLossIsProved: the cluster recovers by itself only if it counts every member that may
// vote and may come back.
func TestLossIsProved(t *testing.T) {
	const goesOn = "recovery: RecordRecovery Filling from a lost "
	const waits = "quorum: wait QuorumLost"
	may := edits(noQuorum, automatic(time.Hour))
	checkDecisions(t, []decision{
		{"a member that was just added does not vote", 3, "a:noleader,index=90 b:nopod,index=0 d:unstarted,down,index=0", append(may, labelled("d", PodLearner)), goesOn + "b"},
		{"a member that was just added votes by its pod: the status is of an earlier time", 3, "a:noleader,index=90 b:nopod,index=0 d:unstarted,down,index=0", may, waits},
		{"a learner that no status has named does not count", 3, lost, append(may, unmanagedPod("d", PodLearner)), goesOn + "b c"},
		{"a voter that no status has named counts", 3, lost, append(may, unmanagedPod("d", PodVoter)), waits},
		{"a draining voter that no status has named counts", 3, lost, append(may, unmanagedPod("d", PodDraining)), waits},
		{"a voter that no status has named counts while it is being deleted", 3, lost, append(may, unmanagedPod("d", PodVoter), func(o *Observed) { o.Pods[len(o.Pods)-1].Terminating = true }), waits},
		{"not one that has ended", 3, lost, append(may, unmanagedPod("d", PodVoter), func(o *Observed) { o.Pods[len(o.Pods)-1].Finished = true }), goesOn + "b c"},
		{"a deletion that was requested proves nothing", 3, "a:noleader,index=90 b:terminating,index=0 c:terminating,index=0", may, waits},
		{"a requested deletion proves nothing for one of two that are missing", 3, "a:noleader,index=90 b:nopod,index=0 c:terminating,index=0", may, waits},
		{"a pod that was ended by its node does", 3, "a:noleader,index=90 b:nopod,index=0 c:terminating,index=0", append(may, func(o *Observed) { podByName(o.Pods, "c").Finished = true }), goesOn + "b c"},
		{"a pod that is not owned does not count", 3, lost, append(may, unmanagedPod("d", PodVoter), func(o *Observed) { o.Pods[len(o.Pods)-1].Owned = false }), goesOn + "b c"},
		{"a member that was just added votes in an etcd without learners", 3, "a:noleader,index=90 b:nopod,index=0 d:unstarted,down,index=0", append(may, withoutLearners), waits},
		{"an unresponsive learner may vote by now", 3, "a:noleader,index=90 b:nopod,index=0 d:learner,down,index=0", may, waits},
		{"one that responds reports that it does not vote", 3, "a:noleader,index=90 b:nopod,index=0 d:learner,noleader,index=80", may, goesOn + "b"},
		{"one that responds reports that it votes", 3, "a:noleader,index=90 b:nopod,index=0 d:learner,noleader,index=80",
			append(may, viewOf("d", "a", "b", "d")), waits},
		{"one without pod and PVC does not", 3, "a:noleader,index=90 b:nopod,index=0 d:learner,nopod,index=0", may, goesOn + "b"},
		{"a new member without pod and PVC makes no quorum larger", 3, "a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:unstarted,nopod,index=0", may, waits},
		{"the survivor knows of a smaller quorum", 3, "a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:nopod,index=0",
			append(may, viewOf("a", "a", "b", "c")), waits},
		{"the survivor knows of a quorum that is lost, too", 3, "a:noleader,index=90 b:nopod,index=0 c:nopod,index=0 d:nopod,index=0",
			append(may, viewOf("a", "a", "b", "x")), goesOn + "b c d x"},
		{"the survivor does not report a member list", 3, lost, append(may, func(o *Observed) { memberByName(o.Etcd.Members, "a").View = &View{} }),
			"quorum: wait QuorumLost"},
		{"a majority is lost, whichever members vote", 5, "a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0 f:learner,down,index=0", may,
			goesOn + "c d e"},
		{"a learner that comes back to its volume may vote by now", 3, "a:noleader,index=90 b:nopod,index=0 d:learner,terminating,claim,index=0", may, waits},
		{"a member that comes back to its PVC counts by the survivor's list", 3, "a:noleader,index=90 b:terminating,claim,index=0 c:nopod,index=0 d:nopod,index=0",
			append(may, viewOf("a", "a", "b", "c")), waits},
		{"an unmanaged member, whose state is unknown, counts by the survivor's list", 3, lost,
			append(may, viewOf("a", "a", "b", "x"), func(o *Observed) { memberByName(o.Etcd.Members, "a").View.Members[2].Unmanaged = true }), waits},
		{"a member that comes back is not lost where a majority is", 5, "a:noleader,index=90 b:terminating,claim,index=0 c:nopod,index=0 d:nopod,index=0 e:nopod,index=0", may,
			goesOn + "c d e"},
	})
}

// TestWhatTheProofWaitsFor: a loss that is not proved says what it would take.
func TestWhatTheProofWaitsFor(t *testing.T) {
	for _, tt := range []struct {
		members string
		edits   []func(*Observed)
		want    string
	}{
		{"a:noleader,index=90 b:nopod,index=0 d:learner,down,index=0", nil, "unconfirmed until member d, which may vote by now, responds"},
		{"a:noleader,index=90 b:nopod,index=0 d:unstarted,down,index=0", edits(withoutLearners), "unconfirmed until member d, which may vote by now, responds"},
		{"a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:nopod,index=0", edits(viewOf("a", "a", "b", "c")), "by the member list of a enough voters may come back"},
		{lost, edits(func(o *Observed) { memberByName(o.Etcd.Members, "a").View = &View{} }), "the member list of a could not be read"},
		{"a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:learner,noleader,index=80", edits(viewOf("d", "a", "b", "c", "d")), "of 4 voters do not serve"},
		{"a:noleader,index=90 b:down,index=0 c:nopod,index=0 d:learner,nopod,index=0", nil, "3 of 3 voters do not serve"},
		{"a:noleader,index=90 b:terminating,index=0 c:terminating,index=0", nil, "pod b is being deleted, and its node "},
	} {
		o := observed(t, 3, tt.members, append(edits(noQuorum, automatic(time.Hour)), tt.edits...)...)
		if loss := diagnoseQuorumLoss(&o); loss.Permanent || !strings.Contains(loss.Message, tt.want) || !strings.Contains(loss.Remediation, "/recover ") {
			t.Errorf("%s: permanent %t: %q; %q", tt.members, loss.Permanent, loss.Message, loss.Remediation)
		}
	}
}

// TestMembersThatDecideNothing: no member is named whose vote would change nothing.
func TestMembersThatDecideNothing(t *testing.T) {
	o := observed(t, 3, "a:noleader,index=90 b:down,index=0 c:down,index=0 d:learner,down,index=0", noQuorum, automatic(time.Hour))
	if loss := diagnoseQuorumLoss(&o); loss.Permanent || strings.Contains(loss.Message, "unconfirmed until") || !strings.Contains(loss.Message, "voters do not serve") {
		t.Errorf("permanent %t: %q", loss.Permanent, loss.Message)
	}
}

// TestVoteComesAfterTheStatus: a member whose start no status reports is not promoted.
func TestVoteComesAfterTheStatus(t *testing.T) {
	unsaid := func(o *Observed) { o.Cluster.Status.MemberStatuses = nil }
	pendingYet := func(o *Observed) { o.Cluster.Status.MemberStatuses[0].Role = "Pending" }
	checkDecisions(t, []decision{
		{"the status reports its start", 3, "a b c:learner", nil, "joining: PromoteMember c"},
		{"the status does not report its start", 3, "a b c:learner", edits(unsaid), "joining"},
		{"the status calls it pending", 3, "a b c:learner", edits(pendingYet), "joining"},
		{"the status calls it pending, and it does not respond yet", 3, "a b c:learner,sick", edits(pendingYet), "joining"},
	})
}
