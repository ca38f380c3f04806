// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// waitingPod adds a prepared pod, with a PVC if the members of the cluster have any.
func waitingPod(name string, changes ...func(*Pod)) func(*Observed) {
	return func(o *Observed) {
		p := Pod{Name: name, UID: "pod-" + name, Owned: true, Running: true, Version: testVersion, Template: testTemplate, Made: testNow, Role: PodLearner}
		for _, change := range changes {
			change(&p)
		}
		o.Prepared = append(o.Prepared, p)
		if isPersistent(o.Cluster) {
			o.PreparedPVCs = append(o.PreparedPVCs, PVC{Name: name, UID: "claim-" + name, Owned: true, Version: testVersion})
		}
	}
}

func unscheduled(p *Pod) { p.Running, p.Waiting = false, "Unschedulable: 0/3 nodes are available" }

func bound(o *Observed) {
	for i := range o.PreparedPVCs {
		o.PreparedPVCs[i].Bound = true
	}
}

func notReadyFor(d time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionReady, Status: corev1.ConditionFalse, LastTransitionTime: testNow.Add(-d).Format(time.RFC3339),
		})
	}
}

func unusedPVC(name string) func(*Observed) {
	return func(o *Observed) {
		o.PreparedPVCs = append(o.PreparedPVCs, PVC{Name: name, UID: "claim-" + name, Owned: true, Version: testVersion})
	}
}

// wasRemoved has the record name a member that was removed from etcd.
func wasRemoved(name string) func(*Observed) {
	return func(o *Observed) { o.Record.Removed = append(o.Record.Removed, name) }
}

func TestPodsArePreparedBeforeTheirMembers(t *testing.T) {
	slow := func(p *Pod) { unscheduled(p); p.Made = testNow.Add(-preparedPatience - time.Second) }
	checkDecisions(t, []decision{
		{"next to the bootstrap member while that starts", 3, "", edits(unresponsive, pod("a", true), unprepared), "bootstrap: PreparePod c-new, wait WaitingForBootstrapMember"},
		{"with their volumes", 3, "", edits(unresponsive, pod("a", true), persist, withPVC("a", true), unprepared), "bootstrap: PreparePodAndPVC c-new, wait WaitingForBootstrapMember"},
		{"one after the other", 3, "", edits(unresponsive, pod("a", true), waitingPod("b")), "bootstrap: PreparePod c-new, wait WaitingForBootstrapMember"},
		{"as many as are missing", 3, "", edits(unresponsive, pod("a", true), waitingPod("b"), waitingPod("c", unscheduled)), "bootstrap: wait WaitingForBootstrapMember"},
		{"not more", 2, "", edits(unresponsive, pod("a", true), waitingPod("b"), waitingPod("c", unscheduled)), "bootstrap: DeletePrepared c, wait WaitingForBootstrapMember"},
		{"while another member joins", 3, "a b:learner,sick", edits(unprepared), "joining: PreparePod c-new, wait WaitingForMember"},
		{"to replace a lost member, which stays in the list meanwhile", 3, "a b c:nopod", edits(unprepared), "replace: PreparePod c-new, FindMember c, wait WaitingForPod"},
		{"a lost member is removed when the pod of its successor waits", 3, "a b c:nopod", edits(waitingPod("d")), "replace: RemoveMember c Lost"},
		{"a lost member stays while the pod of its successor is pending", 3, "a b c:nopod", edits(waitingPod("d", unscheduled)), "replace: FindMember c, wait PodUnschedulable"},
		{"only one, also when a person asked to replace the member", 3, "a b:nopod c", edits(replaceAsked("b"), waitingPod("d")), "replace: RemoveMember b Lost"},
		{"no member is added for a pod that is pending", 3, "a b", edits(waitingPod("c", unscheduled)), "scale-up: wait PodUnschedulable"},
		{"the one that waits goes first", 3, "a", edits(waitingPod("b", unscheduled), waitingPod("c")), "scale-up: AddLearner c, AdmitPod c[a c]"},
		{"one that was made for another declaration is made again", 3, "a b", edits(waitingPod("c", func(p *Pod) { p.Template = "before" })),
			"scale-up: DeletePrepared c, PreparePod c-new, wait WaitingForPod"},
		{"a prepared pod with another image is made again", 3, "a b", edits(waitingPod("c", func(p *Pod) { p.Outdated = true })),
			"scale-up: DeletePrepared c, PreparePod c-new, wait WaitingForPod"},
		{"one that failed", 3, "a b", edits(waitingPod("c", unscheduled, func(p *Pod) { p.Finished = true })),
			"scale-up: DeletePrepared c, PreparePod c-new, wait WaitingForPod"},
		{"with its volume, which may be tied to the node", 3, "a:claim b:claim", edits(waitingPod("c", unscheduled, func(p *Pod) { p.Finished = true })),
			"scale-up: DeletePrepared c, DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"one that no node takes stays: another pod would not help", 3, "a b", edits(waitingPod("c", slow)), "scale-up: wait PodUnschedulable"},
		{"one that no node takes stays with a PVC that is not bound: the PVC goes where the pod goes", 3, "a:claim b:claim", edits(waitingPod("c", slow)), "scale-up: wait PodUnschedulable"},
		{"one whose PVC is bound, perhaps to a node that does not come back, is made again", 3, "a:claim b:claim", edits(waitingPod("c", slow), bound),
			"scale-up: DeletePrepared c, DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"one whose PVC is bound stays longer if the cluster has not been Ready for an hour", 3, "a:claim b:claim", edits(waitingPod("c", slow), bound, notReadyFor(time.Hour)), "scale-up: wait PodUnschedulable"},
		{"one whose PVC is bound is made again after half of the time for which the cluster has not been Ready", 3, "a:claim b:claim", edits(waitingPod("c", unscheduled, func(p *Pod) { p.Made = testNow.Add(-31 * time.Minute) }), bound, notReadyFor(time.Hour)),
			"scale-up: DeletePrepared c, DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"one whose PVC is bound is made again in time if the cluster has been Ready for a day", 3, "a:claim b:claim", edits(waitingPod("c", slow), bound, notReadyFor(24*time.Hour), func(o *Observed) {
			o.Cluster.Status.Conditions[0].Status = corev1.ConditionTrue
		}), "scale-up: DeletePrepared c, DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"one whose PVC is bound stays longer if a voter has been on a cordoned node for an hour", 3, "a:claim b:claim", edits(waitingPod("c", slow), bound, notReadyFor(time.Hour), func(o *Observed) {
			o.Cluster.Status.Conditions[0].Type, o.Cluster.Status.Conditions[0].Status = v1beta2.ClusterConditionOnCordonedNode, corev1.ConditionTrue
		}), "scale-up: wait PodUnschedulable"},
		{"one that has a node and does not start", 3, "a b", edits(waitingPod("c", slow, func(p *Pod) { p.Waiting, p.Node = "", "n9" })), "scale-up: DeletePrepared c, PreparePod c-new, wait WaitingForPod"},
		{"one whose image cannot be pulled stays", 3, "a b", edits(waitingPod("c", slow, func(p *Pod) { p.Waiting, p.Node = "ImagePullBackOff: etcd:9", "n9" })), "scale-up: wait ImageNotPulled"},
		{"a volume whose pod was rejected gets a pod", 3, "a:claim b:claim", edits(unprepared, unusedPVC("c")), "scale-up: PreparePod c, wait WaitingForPod"},
		{"a volume with the name of a removed member gets no pod", 3, "a:claim b:claim", edits(unprepared, unusedPVC("c"), wasRemoved("c")), "scale-up: DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"a pod with the name of a removed member gets no member", 3, "a:claim b:claim", edits(unprepared, waitingPod("c"), wasRemoved("c")), "scale-up: DeletePrepared c, DeletePVC c, PreparePodAndPVC c-new, wait WaitingForPod"},
		{"a PVC that is not needed goes", 3, "a:claim b:claim c:claim", edits(unprepared, unusedPVC("d")), "steady: DeletePVC d"},
		{"a pod that is not needed goes", 3, "a b c", edits(waitingPod("d")), "steady: DeletePrepared d"},
		{"a prepared pod goes when the cluster shrinks", 1, "a b", edits(waitingPod("c"), func(o *Observed) { o.PodDisruptionBudget.MinAvailable = 2 }), "scale-down: DeletePrepared c, LabelPod b leaving"},
		{"a prepared pod goes when the cluster hibernates", 0, "a:claim", edits(waitingPod("d")), "hibernate: DeletePrepared d, DeletePVC d, DeletePod a"},
		{"nothing is prepared without a quorum", 3, "a b:nopod c:nopod", edits(noQuorum, unprepared), "quorum: FindMember b, FindMember c, wait QuorumLost"},
		{"a member whose pod was not admitted yet gets it", 3, "a b:unstarted,learner,nopod", edits(waitingPod("b"), waitingPod("c")), "joining: AdmitPod b[a b]"},
		{"one whose pod failed before goes", 3, "a b:unstarted,learner,nopod", edits(waitingPod("b", unscheduled, func(p *Pod) { p.Finished = true }), waitingPod("c"), waitingPod("d")),
			"joining: DeletePrepared b, RemoveMember b Lost"},
		{"one whose PVC is being deleted under the waiting pod goes", 3, "a:claim b:unstarted,learner,nopod", edits(waitingPod("b"), waitingPod("c"), waitingPod("d"), func(o *Observed) { o.PreparedPVCs[0].Terminating = true }),
			"joining: DeletePrepared b, RemoveMember b Lost"},
		{"a volume that was admitted before its pod is not a member that returns", 3, "a:claim b:unstarted,learner,nopod,claim", edits(waitingPod("b"), waitingPod("c"), func(o *Observed) { o.PreparedPVCs = o.PreparedPVCs[1:] }),
			"joining: AdmitPod b[a b]"},
		{"a prepared pod in the place of a learner that has started is admitted", 2, "a:claim b:learner,sick,nopod,claim", edits(waitingPod("b"), func(o *Observed) { o.PreparedPVCs = nil }),
			"joining: LabelAndAdmitPod b learner, wait WaitingForMember"},
		{"a prepared pod in the place of a voter is admitted", 3, "a:claim b:claim c:claim,sick,nopod", edits(waitingPod("c"), func(o *Observed) { o.PreparedPVCs = nil }),
			"steady: LabelAndAdmitPod c voter"},
		{"a prepared pod in the place of a voter is admitted without a quorum", 3, "a:claim b:nopod,claim c:nopod,claim", edits(noQuorum, waitingPod("c"), func(o *Observed) { o.PreparedPVCs = nil }),
			"recreate-pods: LabelAndAdmitPod c learner, CreatePod b[a b c]"},
		{"a prepared pod is admitted whose PVC was admitted for a member that no status names", 3, "a:claim,down", edits(noQuorum, withPVC("b", true), waitingPod("b"), func(o *Observed) { o.PreparedPVCs = nil }),
			"quorum: LabelAndAdmitPod b learner, wait QuorumLost"},
		{"in an etcd without learners a prepared pod goes whose PVC was admitted for a member that no status names", 3, "a:claim,down", edits(noQuorum, withoutLearners, withPVC("b", true), waitingPod("b"), waitingPod("c"), func(o *Observed) { o.PreparedPVCs = o.PreparedPVCs[1:] }),
			"quorum: DeletePrepared b, wait QuorumLost"},
	})
}

func TestWaitSaysWhyThePodDoesNotRun(t *testing.T) {
	plan := Decide(observed(t, 3, "a b", waitingPod("c", unscheduled)))
	if plan.Wait == nil || !strings.Contains(plan.Wait.Message, "pod c of the next member does not run yet: no node takes the pod: 0/3 nodes are available") || !strings.Contains(plan.Wait.Remedy, "Add a node") {
		t.Errorf("wait %+v", plan.Wait)
	}
}

// TestPreparedPodsGiveWay: the first member of a recovery may need the node that a pod takes
// which only waits.
func TestPreparedPodsGiveWay(t *testing.T) {
	unscheduled := func(r *RecoveryMember) {
		r.Pod.Running, r.Pod.Node, r.Pod.Waiting = false, "", "Unschedulable: 0/3 nodes are available"
	}
	for name, test := range map[string]struct {
		member func(*RecoveryMember)
		want   int
	}{
		"it finds no node":  {unscheduled, 1},
		"it has a node":     {func(r *RecoveryMember) { unscheduled(r); r.Pod.Node = "n1" }, 0},
		"it is not told of": {func(r *RecoveryMember) { unscheduled(r); r.Pod.Waiting = "" }, 0},
	} {
		o := observed(t, 3, lost, noQuorum, recorded(filling), recoveryPod(0, test.member))
		o.Prepared = []Pod{{Name: "next", UID: "pod-next", Owned: true, Running: true}}
		var dropped int
		for _, a := range Decide(o).Actions {
			if d, deletes := a.(DeletePod); deletes && d.Why == DeletePrepared && d.Name == "next" {
				dropped++
			}
		}
		if dropped != test.want {
			t.Errorf("%s: %d prepared pods are deleted, want %d", name, dropped, test.want)
		}
	}
}
