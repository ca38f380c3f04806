// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFaultTolerance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		voters, serving int
		confirmed       bool
		want            int32
	}{
		{1, 1, true, 0},
		{3, 3, true, 1},
		{3, 2, true, 0},
		{4, 4, true, 1},
		{5, 4, true, 1},
		{3, 1, false, -1},
		{3, 0, false, -2},
		{3, 3, false, -1},
	} {
		if got := FaultTolerance(test.voters, test.serving, test.confirmed); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

func TestEvidenceOfPods(t *testing.T) {
	t.Parallel()
	pod := func(phase corev1.PodPhase, deleted bool) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		if deleted {
			p.DeletionTimestamp = &metav1.Time{}
		}
		return p
	}
	for name, test := range map[string]struct {
		pod           *corev1.Pod
		want          Evidence
		ended, ending bool
	}{
		"no pod":                        {nil, PodAbsent, true, true},
		"running pod":                   {pod(corev1.PodRunning, false), PodExists, false, false},
		"running pod with a deletion":   {pod(corev1.PodRunning, true), DeletionRequested, false, true},
		"failed pod":                    {pod(corev1.PodFailed, false), PodFinished, true, true},
		"succeeded pod with a deletion": {pod(corev1.PodSucceeded, true), PodFinished, true, true},
		"pod with the phase Unknown":    {pod(corev1.PodUnknown, false), PodExists, false, false},
	} {
		if got := EvidenceOf(test.pod); got != test.want || got.HasEnded() != test.ended || got.IsEnding() != test.ending {
			t.Errorf("%s: %s, ended %t, ending %t", name, got, got.HasEnded(), got.IsEnding())
		}
	}
}

func TestStateOfMembers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signs Signs
		want  MemberState
	}{
		"follows a leader":                           {Signs{Vote: Votes, Response: FollowsLeader, Evidence: PodExists, Running: true}, Serving},
		"is far behind":                              {Signs{Vote: Votes, Response: FollowsLeader, Lag: NoticeableLag, Evidence: PodExists}, Lagging},
		"is a little behind":                         {Signs{Vote: Votes, Response: FollowsLeader, Lag: NoticeableLag - 1, Evidence: PodExists}, Serving},
		"knows no leader":                            {Signs{Vote: Votes, Response: NoLeader, Evidence: PodExists, Running: true, Ready: true}, NotServing},
		"is unresponsive in a ready pod":             {Signs{Vote: Votes, Evidence: PodExists, Running: true, Ready: true}, Unreachable},
		"is unresponsive in a pod that is not ready": {Signs{Vote: Votes, Evidence: PodExists, Running: true}, NotServing},
		"is unresponsive in a pod that does not run": {Signs{Vote: Votes, Evidence: PodExists}, Stopped},
		"is unresponsive and Kubernetes is too":      {Signs{Vote: Votes, Evidence: PodUnknown}, Unreachable},
		"serves in a pod that is being deleted":      {Signs{Vote: Votes, Response: FollowsLeader, Evidence: DeletionRequested}, Stopped},
		"has a PVC and no pod":                       {Signs{Vote: Votes, Evidence: PodAbsent, HasPVC: true}, Stopped},
		"has neither":                                {Signs{Vote: Votes, Evidence: PodAbsent}, ProvenAbsent},
		"has ended without a PVC":                    {Signs{Vote: MayVote, Evidence: PodFinished}, ProvenAbsent},
		"is being deleted and may serve":             {Signs{Vote: Votes, Evidence: DeletionRequested}, Stopped},
		"does not vote":                              {Signs{Vote: DoesNotVote, Response: FollowsLeader, Evidence: PodExists}, Joining},
		"does not vote and has lost pod and volume":  {Signs{Vote: DoesNotVote, Evidence: PodAbsent}, ProvenAbsent},
	} {
		if got := StateOf(test.signs); got != test.want {
			t.Errorf("a member that %s is %s, want %s", name, got, test.want)
		}
	}
}

// survivors is a cluster whose members all respond without a leader.
func survivors(members ...Member) *Cluster {
	c := &Cluster{Members: members, HasLearners: true, Options: Options{Cluster: "c"}}
	for _, m := range members {
		c.Pods = append(c.Pods, Pod{Name: m.Name, Evidence: PodExists, Running: true, Ready: true})
	}
	return c
}

func TestSourcesAreRankedByIndexThenVoteThenName(t *testing.T) {
	t.Parallel()
	c := survivors(
		Member{Name: "e", Started: true, RaftIndex: 7},
		Member{Name: "d", Started: true, RaftIndex: 8},
		Member{Name: "a", Started: true, Learner: true, RaftIndex: 8},
		Member{Name: "c", Started: true, RaftIndex: 8},
		Member{Name: "b", Started: true},
	)
	names := ""
	for _, m := range c.RankSources() {
		names += m.Name
	}
	if names != "cdae" {
		t.Errorf("the order is %s", names)
	}
	c.pod("c").Evidence = DeletionRequested
	plan, err := c.PlanRecovery("")
	if err != nil || plan.Source.Name != "d" || !strings.Contains(plan.EstimatedDataLoss, "Member b is not available as a source") ||
		!strings.Contains(plan.EstimatedDataLoss, "Member c is not available as a source") {
		t.Errorf("%+v, %v", plan, err)
	}
	if plan, err = c.PlanRecovery("e"); err != nil || !strings.Contains(plan.EstimatedDataLoss, "Member d has 1 raft entries that member e does not have") {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err = c.PlanRecovery("c"); !errors.Is(err, ErrNotASource) {
		t.Errorf("a source whose pod is being deleted: %v", err)
	}
	c.DataDiffers = true
	if _, err = c.PlanRecovery(""); !errors.Is(err, ErrDataDiffers) {
		t.Errorf("data differs, and nothing says which is right: %v", err)
	}
	if plan, err = c.PlanRecovery("e"); err != nil || plan.Source.Name != "e" {
		t.Errorf("a person says which is right: %+v, %v", plan, err)
	}
	if _, err = (&Cluster{}).PlanRecovery(""); !errors.Is(err, ErrNoSource) {
		t.Errorf("no source: %v", err)
	}
}

func TestRemedyOfALoss(t *testing.T) {
	t.Parallel()
	lost := func(pods ...Pod) *Cluster {
		return &Cluster{
			Members: []Member{{Name: "a", Started: true}, {Name: "b", Started: true}, {Name: "c", Started: true}}, Pods: pods,
			HasLearners: true, Options: Options{Cluster: "c"},
		}
	}
	responds := lost(Pod{Name: "a", Evidence: PodExists, Running: true})
	responds.Members[0].Response, responds.Members[0].RaftIndex = NoLeader, 9
	responds.Members[0].View = &View{Members: []ListedMember{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for name, test := range map[string]struct {
		cluster   *Cluster
		permanent bool
		want      Remedy
	}{
		"nothing exists":                        {lost(), true, RemedyRestore},
		"one pod exists, unresponsive":          {lost(Pod{Name: "a", Evidence: PodExists}), true, RemedyBringBack},
		"one member responds":                   {responds, true, RemedyRecover},
		"two pods exist and do not run":         {lost(Pod{Name: "a", Evidence: PodExists}, Pod{Name: "b", Evidence: PodExists}), false, RemedyWaitForMembers},
		"a deletion was requested, and no more": {lost(Pod{Name: "a", Evidence: PodExists}, Pod{Name: "b", Evidence: DeletionRequested}), false, RemedyWaitForMembers},
	} {
		if loss := test.cluster.QuorumLoss(); loss.Permanent != test.permanent || loss.Remedy != test.want || !loss.Certain {
			t.Errorf("%s: %+v", name, loss)
		}
	}
}

// TestRemedyOfALossWithoutAResponse: the remedy names the PVC that a recovery reads, and asks for a
// choice where there are several.
func TestRemedyOfALossWithoutAResponse(t *testing.T) {
	t.Parallel()
	five := func(pvcs ...string) *Cluster {
		c := &Cluster{HasLearners: true, Options: Options{Cluster: "c", Grace: ElectionGrace}}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			c.Members = append(c.Members, Member{Name: name, Started: true})
		}
		for _, name := range pvcs {
			c.PVCs = append(c.PVCs, PVC{Name: name})
			c.Pods = append(c.Pods, Pod{Name: name, Evidence: PodExists, Running: true})
		}
		return c
	}
	automatic := func(c *Cluster) *Cluster {
		c.Options.Automatic = true
		return c
	}
	ready := five("a")
	ready.Pods[0].Ready = true
	stopped := five("a")
	stopped.Pods[0].Running = false
	beside := five("a")
	beside.Pods = append(beside.Pods, Pod{Name: "b", Evidence: PodExists, Running: true})
	for name, test := range map[string]struct {
		cluster *Cluster
		remedy  Remedy
		want    string
	}{
		"one PVC":                        {five("a"), RemedyReadVolume, "from the PVC of member a, whose pod is stopped for it"},
		"two PVCs":                       {five("a", "b"), RemedyReadVolume, "spec.member set to one of a, b"},
		"a quorum has its PVCs":          {five("a", "b", "c"), RemedyWaitForMembers, "If they cannot come back, restore a backup"},
		"one PVC, by itself":             {automatic(five("a")), RemedyReadVolume, "the controller stops pod a and recovers from its PVC"},
		"two PVCs, not by itself":        {automatic(five("a", "b")), RemedyReadVolume, "spec.member set to one of a, b"},
		"beside a pod, not by itself":    {automatic(beside), RemedyReadVolume, "The controller does not do it by itself"},
		"its pod is ready":               {automatic(ready), RemedyCheckNetwork, "Check the nodes of these members"},
		"its pod does not run":           {automatic(stopped), RemedyReadVolume, "The controller does not do it by itself"},
		"a pod without a PVC is no help": {&Cluster{Members: five().Members, Pods: beside.Pods[:1], HasLearners: true}, RemedyBringBack, "Bring back a quorum of voters"},
	} {
		if loss := test.cluster.QuorumLoss(); loss.Remedy != test.remedy || !strings.Contains(loss.Remediation, test.want) {
			t.Errorf("%s: %+v", name, loss)
		}
	}
	if only := five("a").OnlyVolume(); only == nil || only.Name != "a" || beside.OnlyVolume() != nil || five("a", "b").OnlyVolume() != nil || five("a", "b", "c").VolumeSources() != nil {
		t.Errorf("the only volume is that of %+v", only)
	}
}
