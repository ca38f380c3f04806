// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// onLostNodes is a cluster of three whose member a responds, and whose members b and c have PVCs and the given pods.
func onLostNodes(pods ...Pod) *Cluster {
	c := survivors(Member{Name: "a", Started: true, Response: NoLeader, RaftIndex: 9})
	for _, name := range []string{"b", "c"} {
		c.Members = append(c.Members, Member{Name: name, Started: true})
		c.PVCs = append(c.PVCs, PVC{Name: name})
	}
	c.Pods, c.UnreadFor = append(c.Pods, pods...), time.Hour
	return c
}

// TestReturning: a recovery waits for members that may bring the quorum back, each for a limited time.
func TestReturning(t *testing.T) {
	t.Parallel()
	starting := func(name string, age time.Duration) Pod { return Pod{Name: name, Evidence: PodExists, Age: age} }
	failing := func(name string, failures int) Pod {
		return Pod{Name: name, Evidence: PodExists, Age: time.Minute, Failures: failures}
	}
	back := func(name string, runs bool, ready time.Duration) Pod {
		return Pod{Name: name, Evidence: PodExists, Age: time.Hour, Running: runs, RunningFor: time.Hour, NodeReadyFor: ready}
	}
	running := func(name string, runs time.Duration) Pod {
		return Pod{Name: name, Evidence: PodExists, Running: true, RunningFor: runs, Age: time.Hour}
	}
	edited := func(c *Cluster, edit func(*Cluster)) *Cluster {
		edit(c)
		return c
	}
	noPVCs := func(c *Cluster) { c.PVCs = nil }
	for name, test := range map[string]struct {
		c    *Cluster
		want string
	}{
		"their pods were removed":                                        {onLostNodes(), "b c"},
		"one pod was removed, and one has ended":                         {onLostNodes(Pod{Name: "b", Evidence: PodFinished}, running("c", time.Hour)), "b"},
		"their pods are being deleted":                                   {onLostNodes(Pod{Name: "b", Evidence: DeletionRequested}, Pod{Name: "c", Evidence: DeletionRequested}), "b c"},
		"their new pods start":                                           {onLostNodes(starting("b", ReturnGrace-1), starting("c", ReturnGrace-1)), "b c"},
		"their new pods do not start":                                    {onLostNodes(starting("b", ReturnGrace), starting("c", ReturnGrace)), ""},
		"one new pod does not start":                                     {onLostNodes(starting("b", ReturnGrace), starting("c", ReturnGrace-1)), "c"},
		"their containers end again and again":                           {onLostNodes(failing("b", returnFailures), failing("c", returnFailures)), ""},
		"their containers have ended before":                             {onLostNodes(failing("b", returnFailures-1), failing("c", returnFailures-1)), "b c"},
		"their containers have just started":                             {onLostNodes(running("b", time.Second), running("c", time.Second)), "b c"},
		"they had the time to respond":                                   {onLostNodes(running("b", IncompleteGrace), running("c", IncompleteGrace)), ""},
		"their nodes have just come back, and their pods look as before": {onLostNodes(back("b", true, time.Second), back("c", true, time.Second)), "b c"},
		"their nodes came back, and their containers have not started":   {onLostNodes(back("b", false, IncompleteGrace), back("c", false, ReturnGrace-1)), "b c"},
		"their nodes came back long ago":                                 {onLostNodes(back("b", true, IncompleteGrace), back("c", false, ReturnGrace)), ""},
		"their nodes came back with pods that have no PVC":               {edited(onLostNodes(back("b", true, time.Second), back("c", false, time.Second)), noPVCs), "b c"},
		"their PVCs are lost, too":                                       {edited(onLostNodes(), noPVCs), ""},
		"their PVCs are being deleted":                                   {edited(onLostNodes(), func(c *Cluster) { c.PVCs[0].Terminating, c.PVCs[1].Terminating = true, true }), ""},
		"a recovery has stopped the only one": {edited(onLostNodes(running("c", time.Hour)), func(c *Cluster) {
			c.Members[0].Response, c.Members[0].RaftIndex, c.StoppedSource = NoResponse, 0, "b"
		}), ""},
		"the only member":              {&Cluster{Members: []Member{{Name: "a", Started: true}}, PVCs: []PVC{{Name: "a"}}}, "a"},
		"Kubernetes could not be read": {edited(onLostNodes(), func(c *Cluster) { c.PodsUnknown = true }), ""},
		"the status does not name them, and the list of a does": {edited(onLostNodes(), func(c *Cluster) {
			c.Members = append(c.Members[:1:1], Member{Name: "x", Started: true}, Member{Name: "y", Started: true})
			c.Members[0].View = &View{Members: []ListedMember{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
		}), "b c"},
		"they are no quorum": {edited(onLostNodes(), func(c *Cluster) {
			c.PVCs = c.PVCs[:1]
			c.Members = append(c.Members, Member{Name: "d", Started: true}, Member{Name: "e", Started: true})
		}), ""},
	} {
		if got := test.c.Returning(); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRemedyOfLostNodes: before any recovery, the remedy says how the members of lost nodes come back.
func TestRemedyOfLostNodes(t *testing.T) {
	t.Parallel()
	pod := func(name string, edit func(*Pod)) Pod {
		p := Pod{Name: name, Node: "n-" + name, Evidence: PodExists, Running: true}
		edit(&p)
		return p
	}
	notReady := func(p *Pod) { p.NodeNotReady = true }
	ending := func(p *Pod) { p.Evidence = DeletionRequested }
	overdue := func(p *Pod) { p.Evidence, p.Overdue = DeletionRequested, true }
	reports := func(*Pod) {}
	without := func(c *Cluster) *Cluster {
		c.PVCs = nil
		return c
	}
	for name, test := range map[string]struct {
		c       *Cluster
		message string
		asks    bool
		moves   bool
	}{
		"two nodes are not ready":              {onLostNodes(pod("b", notReady), pod("c", notReady)), "pod b may run, because its node n-b is not ready and reports nothing. Member c does", true, true},
		"two pods are overdue":                 {onLostNodes(pod("b", overdue), pod("c", overdue)), "pod c is being deleted, and its node n-c", true, true},
		"one node is not ready":                {onLostNodes(pod("b", notReady), pod("c", reports)), "its node n-b", true, true},
		"two pods are being deleted":           {onLostNodes(pod("b", ending), pod("c", ending)), "", false, false},
		"the nodes report":                     {onLostNodes(pod("b", reports), pod("c", reports)), "", false, false},
		"two nodes are not ready, and no PVCs": {without(onLostNodes(pod("b", notReady), pod("c", notReady))), "its node n-b", true, false},
	} {
		loss := test.c.QuorumLoss()
		if !loss.Certain || loss.Permanent || !strings.Contains(loss.Message, test.message) {
			t.Errorf("%s: %+v", name, loss)
		}
		confirm, move, recover := strings.Index(loss.Remediation, ConfirmNodeOff), strings.Index(loss.Remediation, volumesMove), strings.Index(loss.Remediation, "If they cannot come back")
		if confirm >= 0 != test.asks || move >= 0 != test.moves || recover < confirm || recover < move {
			t.Errorf("%s: the remediation is %q", name, loss.Remediation)
		}
	}
}

// TestEstimateOfALaggingSource: only a member that served until the loss has all but the last writes, and nothing says for how
// long a member has not served.
func TestEstimateOfALaggingSource(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source Member
		want   string
	}{
		"voter":   {Member{Name: "a", Started: true, RaftIndex: 9}, "If that member served until the quorum was lost, these are at most"},
		"learner": {Member{Name: "a", Started: true, Learner: true, RaftIndex: 9}, "is a learner, so how many it lacks is unknown"},
	} {
		plan, err := survivors(test.source).PlanRecovery("")
		if err != nil || !strings.Contains(plan.EstimatedDataLoss, test.want) || !strings.Contains(plan.EstimatedDataLoss, "unknown: compare its data with the last backup") {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}
