// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strings"
	"testing"
)

// TestNoLossIsCertainWhileAQuorumMayServeUnseen: the status names the voters a, b and
// c, and neither b nor c has a pod or a PVC. It may be from an earlier time.
func TestNoLossIsCertainWhileAQuorumMayServeUnseen(t *testing.T) {
	t.Parallel()
	ready := func(name string) Pod {
		return Pod{Name: name, Evidence: PodExists, Running: true, Ready: true, LabelledVoter: true}
	}
	notReady := func(name string) Pod { return Pod{Name: name, Evidence: PodExists, Running: true, LabelledVoter: true} }
	ending := func(name string) Pod {
		return Pod{Name: name, Evidence: DeletionRequested, Running: true, LabelledVoter: true}
	}
	learner := func(name string) Pod { return Pod{Name: name, Evidence: PodExists, Running: true, Ready: true} }
	lists := func(names ...string) []ListedMember {
		var list []ListedMember
		for _, name := range names {
			list = append(list, ListedMember{Name: name})
		}
		return list
	}
	for name, test := range map[string]struct {
		pods    []Pod
		list    []ListedMember
		certain bool
		// unseen is why no recovery may replace the members; empty if it may.
		unseen string
	}{
		"the survivor agrees with the status":                    {nil, lists("a", "b", "c"), true, ""},
		"the survivor names two that are ready":                  {[]Pod{ready("d"), ready("e")}, lists("a", "d", "e"), false, "by the member list of a, d, e are a quorum"},
		"the survivor names two, and one is ready":               {[]Pod{learner("d"), notReady("e")}, lists("a", "d", "e"), true, ""},
		"the survivor names two that are not ready":              {[]Pod{notReady("d"), notReady("e")}, lists("a", "d", "e"), true, ""},
		"the survivor names two that are being deleted":          {[]Pod{ending("d"), ending("e")}, lists("a", "d", "e"), true, "by the member list of a, d, e are a quorum"},
		"the survivor does not know two that are labelled":       {[]Pod{ready("d"), ready("e")}, lists("a", "b", "c"), false, "does not know d, e"},
		"the survivor's list could not be read, and one is left": {[]Pod{ready("d")}, nil, false, "does not know d"},
		"two learners are ready":                                 {[]Pod{learner("d"), learner("e")}, lists("a", "b", "c"), true, ""},
	} {
		c := &Cluster{
			Members: []Member{
				{Name: "a", Started: true, Response: NoLeader, RaftIndex: 9, View: &View{Members: test.list}},
				{Name: "b", Started: true}, {Name: "c", Started: true},
			},
			Pods: append([]Pod{ready("a")}, test.pods...), HasLearners: true, UnreadFor: ElectionGrace, Options: Options{Cluster: "c"},
		}
		if loss := c.QuorumLoss(); loss.Certain != test.certain || !test.certain && (loss.Permanent || !strings.Contains(loss.Remediation, "would lose what they acknowledge")) {
			t.Errorf("%s: %+v", name, loss)
		}
		if got := c.UnseenQuorum(); (got == "") != (test.unseen == "") || !strings.Contains(got, test.unseen) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestUnseenQuorumOfTheStatus: members that the status names count by what they respond.
func TestUnseenQuorumOfTheStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		b, c  Response
		ready bool
		want  bool
	}{
		"two are ready and do not respond":     {NoResponse, NoResponse, true, true},
		"two are not ready and do not respond": {NoResponse, NoResponse, false, false},
		"two respond and know no leader":       {NoLeader, NoLeader, true, false},
		"one of two knows no leader":           {NoResponse, NoLeader, true, false},
		"two follow a leader":                  {FollowsLeader, FollowsLeader, true, true},
	} {
		c := survivors(Member{Name: "a", Started: true, Response: NoLeader}, Member{Name: "b", Started: true, Response: test.b}, Member{Name: "c", Started: true, Response: test.c})
		c.pod("b").Ready, c.pod("c").Ready = test.ready, test.ready
		if got := c.UnseenQuorum(); (got != "") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
