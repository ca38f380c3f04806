// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// decision is one row of a table: what was observed, and what the plan must be.
type decision struct {
	name    string
	size    int
	members string
	edits   []func(*Observed)
	want    string
}

func edits(e ...func(*Observed)) []func(*Observed) { return e }

func checkDecisions(t *testing.T, table []decision) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			o := observed(t, tt.size, tt.members, tt.edits...)
			plan := Decide(o)
			if got := describe(plan); got != tt.want {
				t.Errorf("plan:\n got %s\nwant %s", got, tt.want)
			}
			if w := plan.Wait; w != nil && (w.Reason == "" || w.Message == "" || w.Remedy == "") {
				t.Errorf("a wait must say what for and what would end it: %+v", *w)
			}
		})
	}
}

func unheld(o *Observed) { o.Cluster.Finalizers = nil }

func deleting(o *Observed) {
	now := metav1.NewTime(testNow)
	o.Cluster.DeletionTimestamp = &now
}

func pausedSpec(o *Observed) { o.Cluster.Spec.Paused = true }

func TestRulesBeforeThereIsACluster(t *testing.T) {
	serviceNotOwned := func(o *Observed) { o.PeerService = NotOwned }
	recordNotOwned := func(o *Observed) {
		o.Record = Record{State: NotOwned, Record: resources.Record{BootstrapMember: "x", ClusterID: "bad"}}
	}
	checkDecisions(t, []decision{
		{"a cluster that is deleted is dissolved", 3, "a:nopod b", edits(deleting), "deleting: FinishDeletion"},
		{"a cluster that is deleted and has no finalizer is left alone", 3, "a:nopod b", edits(deleting, unheld), "deleting"},
		{"deleting wins over paused", 3, "a", edits(deleting, pausedSpec), "deleting: FinishDeletion"},
		{"nothing is repaired while deleting", 3, "a", edits(deleting, missingServices, unheld), "deleting"},
		{"paused does nothing, whatever is broken", 3, "a:nopod b c", edits(pausedSpec, missingServices), "paused"},
		{"paused does not bootstrap", 3, "", edits(unresponsive, pausedSpec), "paused"},
		{"a headless Service that is not owned", 3, "", edits(unresponsive, serviceNotOwned), "name-conflict: wait NameConflict"},
		{"a headless Service that is not owned, cluster serving", 3, "a b c", edits(serviceNotOwned), "name-conflict: wait NameConflict"},
		{"a bootstrap record that is not owned proves nothing", 3, "", edits(unresponsive, recordNotOwned), "name-conflict: wait NameConflict"},
		{"a client Service that is not owned is reported, and no rule waits for it", 3, "a b c", edits(clients(NotOwned)), "steady: wait NameConflict"},
		{"a cluster that has not started does not start", 3, "", edits(unresponsive, clients(NotOwned)), "name-conflict: wait NameConflict"},
		{"a member is replaced all the same", 3, "a b c:nopod", edits(clients(NotOwned)), "replace: RemoveMember c Lost"},
		{"pods of an earlier cluster", 3, "", edits(unresponsive, pod("old", false)), "name-conflict: wait OldPods"},
		{"pods of an earlier cluster do not hold up a living one", 3, "a b c", edits(pod("old", false)), "steady"},
		{"PVCs of an earlier cluster do not hold up a new one", 3, "", edits(unresponsive, noRecord, withPVC("old", false)),
			"record: WriteRecord a"},
		{"the record is created first, and with it the headless Service", 3, "", edits(unresponsive, noRecord, noService), "record: WriteRecord a, CreatePeerService"},
		{"the headless Service is created before any member", 3, "", edits(unresponsive, noService), "peer-service: CreatePeerService"},
		{"the headless Service of a living cluster is created again", 3, "a b:nopod c", edits(noService), "peer-service: CreatePeerService"},
	})
}

func noService(o *Observed) { o.PeerService = Missing }

func noRecord(o *Observed) { o.Record = Record{} }

func noID(o *Observed) { o.Etcd.ClusterID = 0 }

func clients(s ObjectState) func(*Observed) { return func(o *Observed) { o.ClientService = s } }

func pod(name string, owned bool) func(*Observed) {
	return func(o *Observed) {
		o.Pods = append(o.Pods, Pod{Name: name, UID: "pod-" + name, Owned: owned, Running: true, Version: testVersion})
	}
}

func withPVC(name string, owned bool) func(*Observed) {
	return func(o *Observed) {
		persist(o)
		o.PVCs = append(o.PVCs, PVC{Name: name, UID: "claim-" + name, Owned: owned})
	}
}

func missingServices(o *Observed) {
	o.ClientService = Missing
	o.PodDisruptionBudget = PodDisruptionBudget{State: Drifted}
}

func TestUpkeep(t *testing.T) {
	budget := func(s ObjectState, min int) func(*Observed) {
		return func(o *Observed) { o.PodDisruptionBudget = PodDisruptionBudget{State: s, MinAvailable: min} }
	}
	noBudget := func(o *Observed) {
		o.PodDisruptionBudget.State = Missing
		o.Cluster.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetEnabled
	}
	disabled := func(o *Observed) { o.Cluster.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled }
	peer := func(s ObjectState) func(*Observed) { return func(o *Observed) { o.PeerService = s } }
	wiped := func(o *Observed) { o.Record.ClusterID = "" }
	unknown := func(o *Observed) { o.Record.ClusterID = unknownClusterID }
	checkDecisions(t, []decision{
		{"nothing to do", 3, "a b c", nil, "steady"},
		{"headless service changed", 3, "a b c", edits(peer(Drifted)), "steady: RepairPeerService"},
		{"client service gone", 3, "a b c", edits(clients(Missing)), "steady: EnsureClientService"},
		{"client service changed", 3, "a b c", edits(clients(Drifted)), "steady: EnsureClientService"},
		{"client Service that is not owned", 3, "a b c", edits(clients(NotOwned)), "steady: wait NameConflict"},
		{"record wiped", 3, "a b c", edits(wiped), "record: WriteRecord c0ffee"},
		{"record unknown", 3, "a b c", edits(unknown), "steady: RecordBootstrap c0ffee"},
		{"record unknown, no quorum", 3, "a b:down c:down", edits(unknown, noQuorum), "quorum: wait QuorumLost"},
		{"record wiped, no quorum", 3, "a b:down c:down", edits(wiped, noQuorum, noID), "record: WriteRecord unknown"},
		{"budget too small", 3, "a b c", edits(budget(Current, 1)), "steady: EnsurePodDisruptionBudget 2"},
		{"budget that is not owned is reported", 3, "a b c", edits(budget(NotOwned, 1)), "steady: wait NameConflict"},
		{"budget that is not owned, and none is declared", 3, "a b c", edits(budget(NotOwned, 1), disabled), "steady"},
		{"budget that is not owned, and a member is replaced all the same", 3, "a b c:nopod", edits(budget(NotOwned, 1)), "replace: RemoveMember c Lost"},
		{"budget unwanted", 3, "a b c", edits(disabled, budget(Current, 2)), "steady: DeletePodDisruptionBudget"},
		{"budget unwanted and absent", 3, "a b c", edits(disabled, budget(Missing, 0)), "steady"},
		{"budget while hibernating", 0, "a:nopod,claim", edits(noQuorum, budget(Current, 2)), "hibernate: DeletePodDisruptionBudget"},
		{"budget while the data of hibernated voters goes with their pods", 0, "a:deadclaim b:deadclaim c:deadclaim", edits(budget(Current, 2)), "hibernate: wait VolumesBeingDeleted"},
		{"the same without a quorum", 0, "a:deadclaim b:claim,nopod c:claim,nopod", edits(noQuorum, budget(Current, 2)), "hibernate: wait VolumesBeingDeleted"},
		{"budget is not judged without a quorum", 3, "a b:down c:down", edits(noQuorum, budget(Current, 1)), "quorum: wait QuorumLost"},
		{"upkeep goes along with a change", 3, "a b", edits(clients(Missing)),
			"scale-up: EnsureClientService, AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"the budget grows before the voters do", 5, "a b c d:learner", edits(budget(Current, 2)),
			"joining: EnsurePodDisruptionBudget 3, PromoteMember d"},
		{"the budget stays while the voters shrink", 3, "a b c d e", edits(budget(Current, 3)), "scale-down: LabelPod e leaving"},
		{"the budget that was raised stays while a voter restarts", 3, "a b:leaving c", edits(budget(Current, 3), wants("3.6.16")), "rollout: UpgradePod b 3.6.16"},
		{"the budget that was raised shrinks after the restart of the voter", 3, "a b c", edits(budget(Current, 3)), "steady: EnsurePodDisruptionBudget 2"},
		{"no budget yet", 3, "a b c", edits(noBudget, budget(Drifted, 0)), "steady: EnsurePodDisruptionBudget 2"},
	})
}

// TestBudgetThroughTransitions looks at the budget in every step on the way from one size
// to another, with and without a member that joins or replaces another. The budget never
// allows more evictions than the quorum of the voters at that moment tolerates.
func TestBudgetThroughTransitions(t *testing.T) {
	for live := 1; live <= 5; live++ {
		for size := 1; size <= 5; size++ {
			for before := 0; before <= 4; before++ {
				for _, joins := range []string{"", " z:learner", " z:learner,unstarted", " z:learner,nopod"} {
					for _, mark := range []string{"", ":stale", ":leaving"} {
						words := []string{"a", "b", "c", "d", "e"}[:live]
						members := strings.Join(words, " ") + mark + joins
						o := observed(t, size, members, func(o *Observed) { o.PodDisruptionBudget = PodDisruptionBudget{State: Current, MinAvailable: before} })
						checkBudget(t, members, &o, Decide(o))
					}
				}
			}
		}
	}
}

func checkBudget(t *testing.T, members string, o *Observed, plan Plan) {
	t.Helper()
	guarded, voters := o.PodDisruptionBudget.MinAvailable, len(listVoters(o.Etcd.Members))
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case EnsurePodDisruptionBudget:
			guarded = a.MinAvailable
		case PromoteMember:
			voters++
		case AddMember:
			if a.As == JoinAsVoter {
				voters++
			}
		case RemoveMember:
			continue // what guards one more until the next step guards too much
		default:
			continue
		}
		if guarded < voters/2+1 {
			t.Errorf("%q of %d, budget %d: %s leaves %d voters with a budget of %d", members, desiredSize(o.Cluster), o.PodDisruptionBudget.MinAvailable, describe(plan), voters, guarded)
		}
	}
	if want := max(voters, desiredSize(o.Cluster))/2 + 1; guarded != want && guarded != want+countDraining(o.Etcd.Members, o.Pods, plan) {
		t.Errorf("%q of %d, budget %d: %s ends with a budget of %d, not %d", members, desiredSize(o.Cluster), o.PodDisruptionBudget.MinAvailable, describe(plan), guarded, want)
	}
}

// TestLookAgain makes sure that no plan waits for something that may never be
// announced without looking again.
func TestLookAgain(t *testing.T) {
	for _, tt := range []decision{
		{name: "steady", size: 3, members: "a b c"},
		{name: "paused", size: 3, members: "a b c", edits: edits(pausedSpec)},
		{name: "no quorum", size: 3, members: "a b:down c:down", edits: edits(noQuorum)},
		{name: "joining", size: 3, members: "a b c:learner,unstarted"},
		{name: "terminating with a volume", size: 3, members: "a b c:terminating,claim"},
		{name: "name-conflict", size: 3, members: "", edits: edits(unresponsive, pod("old", false))},
		{name: "bootstrap member", size: 3, members: "", edits: edits(unresponsive, pod("a", true))},
		{name: "promotion", size: 3, members: "a b c:learner"},
		{name: "unmanaged", size: 3, members: "a b c:unmanaged"},
	} {
		if plan := Decide(observed(t, tt.size, tt.members, tt.edits...)); plan.RequeueAfter <= 0 {
			t.Errorf("%s: plan %q never looks again", tt.name, describe(plan))
		}
	}
}

// TestJoinedIsNoted: the pod of a member that votes and has started is labelled at once,
// because it must never start without its data again.
func TestJoinedIsNoted(t *testing.T) {
	mayFill := func(o *Observed) {
		for i := range o.Pods {
			o.Pods[i].MayFill = true
		}
	}
	checkDecisions(t, []decision{
		{"the first one", 1, "a", edits(mayFill), "steady: LabelPod a voter"},
		{"a member that joins may still start without data", 2, "a b:learner", edits(mayFill), "joining: LabelPod a voter, PromoteMember b"},
		{"a member that has not started may start without data", 2, "a b:unstarted", edits(mayFill), "joining: LabelPod a voter, wait WaitingForMember"},
		{"not without a list of the members", 1, "a:unknown", edits(mayFill, noQuorum), "quorum: wait EtcdUnreachable"},
	})
	for text, joined := range map[string]bool{"a:claim b:claim c:claim,nopod": true, "a:claim b:claim c:claim,learner,unstarted,nopod": false, "a:claim b:claim c:claim,learner,nopod": true} {
		plan := Decide(observed(t, 3, text))
		for _, a := range plan.Actions {
			if pod, creates := a.(CreatePod); creates && pod.Joined != joined {
				t.Errorf("%s: it comes back to its data: %t", text, pod.Joined)
			}
		}
		if plan.Rule != "recreate-pods" {
			t.Errorf("%s: rule %s speaks", text, plan.Rule)
		}
	}
	plan := Decide(observed(t, 1, "a", mayFill))
	if label, labels := plan.Actions[0].(LabelPod); !labels || !label.Joined {
		t.Errorf("%+v", plan.Actions)
	}
}
