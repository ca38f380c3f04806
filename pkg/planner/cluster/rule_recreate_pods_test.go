// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

func TestRuleRecreatePods(t *testing.T) {
	checkDecisions(t, []decision{
		{"a lost pod comes back to its volume", 3, "a:claim b:claim c:claim,nopod", nil, "recreate-pods: CreatePod c[a b c]"},
		{"without a quorum too", 3, "a:claim b:claim,nopod c:claim,nopod", edits(noQuorum), "recreate-pods: CreatePod b[a b c], CreatePod c[a b c]"},
		{"all of them, from nothing", 3, "a:claim,nopod b:claim,nopod c:claim,nopod", edits(noQuorum),
			"recreate-pods: CreatePod a[a b c], CreatePod b[a b c], CreatePod c[a b c]"},
		{"without any list the volumes are the list", 3, "", edits(noQuorum, withPVC("a", true), withPVC("b", true)),
			"recreate-pods: CreatePod a[a b], CreatePod b[a b]"},
		{"a member that the last status did not know counts itself in", 3, "a:claim", edits(noQuorum, withPVC("b", true)), "recreate-pods: CreatePod b[a b]"},
		{"an evicted pod makes room", 3, "a:claim b:claim c:claim,finished", nil, "recreate-pods: DeletePod c"},
		{"a pod that goes is waited for", 3, "a:claim b:claim c:claim,terminating", nil, "replace: wait WaitingForPod"},
		{"a pod whose PVC was deleted before it ran", 3, "a:claim b:claim c:down", nil, "recreate-pods: DeleteWithoutPVC c"},
		{"the same, of a learner", 3, "a:claim b:claim c:down,learner,unstarted", nil, "recreate-pods: DeleteWithoutPVC c"},
		{"a pod whose volume goes with it", 3, "a:claim b:claim c:down,deadclaim", nil, "steady"},
		{"a pod that runs on a volume that cannot be seen", 3, "a:claim b:claim c", nil, "steady"},
		{"a PVC that is being deleted brings no member back", 3, "a:claim b:claim c:deadclaim,nopod", nil, "replace: RemoveMember c Lost"},
		{"a PVC of no member brings no member back", 3, "a:claim b:claim c:claim", edits(withPVC("gone", true)), "orphans: DeletePVC gone"},
		{"a PVC that is not owned brings no member back", 3, "a:claim b:claim c:claim", edits(withPVC("old", false)), "steady"},
		{"a learner too", 3, "a:claim b:claim c:claim,learner,nopod", nil, "recreate-pods: CreatePod c[a b c]"},
		{"as what it was, not as what is wanted", 3, "a:claim b:claim c:claim,nopod", edits(wants("3.7.0"), lastSaid("3.6.11")),
			"recreate-pods: CreatePod c[a b c] 3.6.11"},
		{"one that has never run comes as the others are", 3, "a:claim b:claim c:claim,learner,unstarted,nopod", edits(wants("3.8.0")),
			"recreate-pods: CreatePod c[a b c] 3.6.11"},
		{"as what its volume has seen, whatever was last said", 3, "a:claim b:claim c:claimv=3.7.0,nopod", edits(wants("3.6.11"), lastSaid("3.6.11")),
			"recreate-pods: CreatePod c[a b c] 3.7.0"},
		{"awake as it fell asleep", 1, "a:claim,nopod", edits(noQuorum, wants("3.6.9"), lastSaid("3.6.11")), "recreate-pods: CreatePod a[a] 3.6.11"},
	})
}

// awaits makes voter a list itself, and b as a member that has not started.
func awaits(a, b string) func(*Observed) {
	return func(o *Observed) {
		memberByName(o.Etcd.Members, a).View = &View{Members: []Member{{ID: 1, Name: a, Started: true}, {ID: 2, Name: b}}}
	}
}

// TestAMemberIsRecreatedOnItsDataOnly: unless a list that was read through a quorum says that a
// member has not started, the pod of the member must not begin on an empty disk.
func TestAMemberIsRecreatedOnItsDataOnly(t *testing.T) {
	for _, test := range []struct {
		name, members string
		edits         []func(*Observed)
		joined        bool
	}{
		{"a voter", "a:claim b:claim c:claim,nopod", nil, true},
		{"a learner that has started", "a:claim b:claim c:claim,learner,nopod", nil, true},
		{"a voter whose name the others have not heard", "a:claim b:claim c:claim,unstarted,nopod", nil, true},
		{"the same in an etcd without learners, with a quorum", "a:claim b:claim c:claim,unstarted,nopod", edits(withoutLearners), false},
		{"a learner that has not started", "a:claim b:claim c:claim,learner,unstarted,nopod", nil, false},
		{"a voter, without a quorum", "a:claim b:claim,nopod c:claim", edits(noQuorum), true},
		{"a member that the status calls pending, without a quorum", "a:claim b:claim c:claim,learner,unstarted,nopod", edits(noQuorum), true},
		{"the same in an etcd without learners", "a:claim b:claim c:claim,unstarted,nopod", edits(noQuorum, withoutLearners), false},
		{"a member that the status does not name", "a:claim", edits(noQuorum, withPVC("b", true)), true},
		{"the same in an etcd without learners", "a:claim", edits(noQuorum, withoutLearners, withPVC("b", true)), true},
		{"one that the only voter has added since, in an etcd without learners", "a:claim", edits(noQuorum, withoutLearners, withPVC("b", true), awaits("a", "b")), false},
		{"the same where a third member may have joined", "a:claim", edits(noQuorum, withoutLearners, withPVC("b", true), withPVC("c", true), awaits("a", "b")), true},
		{"one that the only voter has seen start", "a:claim", edits(noQuorum, withoutLearners, withPVC("b", true), awaits("a", "b"), func(o *Observed) { memberByName(o.Etcd.Members, "a").View.Members[1].Started = true }), true},
		{"one that the only voter has added since, in an etcd with learners", "a:claim", edits(noQuorum, withPVC("b", true), awaits("a", "b")), true},
		{"members without any list", "", edits(noQuorum, withPVC("a", true), withPVC("b", true)), true},
	} {
		recreated := 0
		for _, a := range Decide(observed(t, 3, test.members, test.edits...)).Actions {
			if pod, ok := a.(CreatePod); ok {
				recreated++
				if pod.Joined != test.joined {
					t.Errorf("%s: %+v", test.name, pod)
				}
			}
		}
		if recreated == 0 {
			t.Errorf("%s: no pod is recreated", test.name)
		}
	}
}
