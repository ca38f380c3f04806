// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
)

// joining has the PVC of a member say that it is joining.
func joining(name string) func(*Observed) {
	return func(o *Observed) { pvcByName(o.PVCs, name).Joining = true }
}

// TestSecondVoterStartsAgain: the second voter of an etcd without learners may lose its pod before it has
// started. The first voter has no quorum without it, and does not respond. Only the PVC says then that the
// second voter may start without data.
func TestSecondVoterStartsAgain(t *testing.T) {
	t.Parallel()
	awaited := edits(noQuorum, withoutLearners, withPVC("b", true), joining("b"))
	for _, test := range []struct {
		name, members string
		edits         []func(*Observed)
		joins         bool
	}{
		{"the first voter does not respond", "a:claim,down", awaited, true},
		{"the first voter has no pod", "a:claim,nopod", awaited, true},
		{"a third member is prepared", "a:claim,down", append(awaited, func(o *Observed) {
			o.Prepared = []Pod{{Name: "c", UID: "pod-c", Owned: true, Running: true}}
		}), true},
		{"the PVC says that it has joined", "a:claim,down", edits(noQuorum, withoutLearners, withPVC("b", true)), false},
		{"a third member may have joined", "a:claim,down", append(awaited, withPVC("c", true)), false},
		{"another member was to be the second voter before", "a:claim,down", append(awaited, withPVC("c", true), joining("c")), true},
		{"that other PVC was released", "a:claim,down", append(awaited, withPVC("c", false), func(o *Observed) { o.PVCs[len(o.PVCs)-1].Joining = true }), true},
		{"PVCs of the cluster that had the name before are left", "a:claim,down", append(awaited, withPVC("old", false), func(o *Observed) { o.PVCs[len(o.PVCs)-1].HasOtherOwner = true }), true},
		{"the status names it as started", "a:claim,down b:claim,nopod", edits(noQuorum, withoutLearners, joining("b")), false},
		{"the status names two others", "a:claim,down c:claim,down", awaited, false},
		{"etcd knows learners", "a:claim,down", edits(noQuorum, withPVC("b", true), joining("b")), false},
		{"no status names a member", "", append(edits(withPVC("a", true)), awaited...), true},
		{"no status names a member, and two have PVCs", "", append(edits(withPVC("a", true), withPVC("c", true)), awaited...), false},
	} {
		recreated := false
		for _, a := range Decide(observed(t, 2, test.members, test.edits...)).Actions {
			if pod, is := a.(CreatePod); is && pod.Name == "b" {
				recreated = true
				if pod.Joining != test.joins || pod.Joined == test.joins || test.joins && !slices.Equal(pod.Peers, []string{"a", "b"}) {
					t.Errorf("%s: %+v", test.name, pod)
				}
			}
		}
		if !recreated {
			t.Errorf("%s: no pod is recreated", test.name)
		}
	}
}

// TestPodForMissingDataIsReplaced: a pod that was made for the data of the second voter does not start on
// an empty disk. The PVC says that there is no such data yet.
func TestPodForMissingDataIsReplaced(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, members string
		edits         []func(*Observed)
		replaced      bool
	}{
		{"a status names the first voter", "a:claim,down", nil, true},
		{"no status names a member", "", edits(withPVC("a", true), pod("a", true)), true},
		{"the PVC says that the member has started", "a:claim,down", edits(func(o *Observed) { pvcByName(o.PVCs, "b").Joining = false }), false},
		{"a third member may have joined", "a:claim,down", edits(withPVC("c", true)), false},
	} {
		stuck := func(o *Observed) {
			o.Pods = append(o.Pods, Pod{Name: "b", UID: "pod-b", Owned: true, Peers: []string{"b"}, Version: testVersion, Template: testTemplate})
		}
		plan := Decide(observed(t, 2, test.members, append(edits(noQuorum, withoutLearners, withPVC("b", true), joining("b"), stuck), test.edits...)...))
		replaced := slices.ContainsFunc(plan.Actions, func(a Action) bool {
			pod, is := a.(RecreatePod)
			return is && pod.Name == "b" && pod.Mode == RestartIdle
		})
		if replaced != test.replaced {
			t.Errorf("%s: %+v", test.name, plan.Actions)
		}
	}
}

// TestSecondVoterIsConfirmed: what the PVC says ends before the list of members changes again.
func TestSecondVoterIsConfirmed(t *testing.T) {
	t.Parallel()
	old := edits(wants("3.3.9"), joining("b"))
	checkDecisions(t, []decision{
		{"before another member is added", 3, "a:v=3.3.9,podv=3.3.9,claim b:v=3.3.9,podv=3.3.9,claim", old, "scale-up: ConfirmPVC b, AddVoter c-new, AdmitPod c-new[a b c-new]"},
		{"before a member is removed", 1, "a:v=3.3.9,podv=3.3.9,claim b:v=3.3.9,podv=3.3.9,claim", old, "scale-down: ConfirmPVC b, LabelPod b leaving"},
		{"at rest", 2, "a:v=3.3.9,podv=3.3.9,claim b:v=3.3.9,podv=3.3.9,claim", old, "steady: ConfirmPVC b"},
		{"not by a list that no quorum confirmed", 2, "a:v=3.3.9,podv=3.3.9,claim b:v=3.3.9,podv=3.3.9,claim", append(old, noQuorum), "quorum: wait EtcdUnreachable"},
	})
}
