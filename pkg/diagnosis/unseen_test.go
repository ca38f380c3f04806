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

// TestSurvivorsMayServe: the status names voters that no longer exist. They may have been removed from
// etcd after it was written, and then the others are a quorum.
func TestSurvivorsMayServe(t *testing.T) {
	t.Parallel()
	type state struct{ ready, cutOff, stopped, ending, gone, unmanaged bool }
	ready, unready, cutOff := state{ready: true}, state{}, state{cutOff: true}
	responds := func(list ...ListedMember) *View { return &View{Members: list} }
	both := responds(ListedMember{Name: "a"}, ListedMember{Name: "b"})
	for name, test := range map[string]struct {
		pods map[string]state
		// lost are voters of the status that no longer exist.
		lost []string
		view map[string]*View
		// source is the member that a recovery has stopped.
		source             string
		certain, permanent bool
	}{
		"one of two, in a ready pod":                                {map[string]state{"a": ready}, []string{"b"}, nil, "", false, false},
		"one of two, on a node that is not ready":                   {map[string]state{"a": cutOff}, []string{"b"}, nil, "", true, false},
		"one of two, on a node that is not ready, being deleted":    {map[string]state{"a": {cutOff: true, ending: true}}, []string{"b"}, nil, "", true, false},
		"one of two, on a node that reports that it does not serve": {map[string]state{"a": unready}, []string{"b"}, nil, "", true, true},
		"one of two, stopped on a node that reports":                {map[string]state{"a": {stopped: true}}, []string{"b"}, nil, "", true, true},
		"one of two, whose pod no longer exists":                    {map[string]state{"a": {gone: true}}, []string{"b"}, nil, "", true, true},
		"one of two, which responds with both":                      {map[string]state{"a": ready}, []string{"b"}, map[string]*View{"a": both}, "", true, true},
		"one of two, which a recovery stops":                        {map[string]state{"a": {cutOff: true, ending: true}}, []string{"b"}, nil, "a", true, true},
		"two of four, on nodes that are not ready":                  {map[string]state{"a": cutOff, "b": cutOff}, []string{"c", "d"}, nil, "", true, false},
		"two of four, in ready pods":                                {map[string]state{"a": ready, "b": ready}, []string{"c", "d"}, nil, "", false, false},
		"two of four, and one reports that it does not serve":       {map[string]state{"a": cutOff, "b": unready}, []string{"c", "d"}, nil, "", true, false},
		"two of four report that they do not serve":                 {map[string]state{"a": unready, "b": unready}, []string{"c", "d"}, nil, "", true, true},
		"two of four, and one responds with a removal":              {map[string]state{"a": ready, "b": cutOff}, []string{"c", "d"}, map[string]*View{"a": responds(ListedMember{Name: "a"}, ListedMember{Name: "b"}, ListedMember{Name: "c"})}, "", true, false},
		"two of four, and one responds without a removal":           {map[string]state{"a": ready, "b": cutOff}, []string{"c", "d"}, map[string]*View{"a": responds(ListedMember{Name: "a"}, ListedMember{Name: "b"}, ListedMember{Name: "c"}, ListedMember{Name: "d"})}, "", true, true},
		"a learner that responds tells nothing":                     {map[string]state{"a": ready, "l": ready}, []string{"b"}, map[string]*View{"l": {Learner: true}}, "", false, false},
		"one of three after an API of before two removals":          {map[string]state{"a": cutOff}, []string{"b", "c"}, nil, "", true, false},
		"three of seven, and two report that they do not serve":     {map[string]state{"a": cutOff, "b": unready, "c": unready}, []string{"d", "e", "f", "g"}, nil, "", true, true},
		"three of seven, and one reports that it does not serve":    {map[string]state{"a": cutOff, "b": cutOff, "c": unready}, []string{"d", "e", "f", "g"}, nil, "", true, false},
		"one of two, which the operator has not added":              {map[string]state{"a": {unmanaged: true}}, []string{"b"}, nil, "", false, false},
		"none of two": {nil, []string{"a", "b"}, nil, "", true, true},
	} {
		c := &Cluster{HasLearners: true, UnreadFor: ElectionGrace, StoppedSource: test.source, Options: Options{Cluster: "c"}}
		for name, is := range test.pods {
			m := Member{Name: name, Started: true, Learner: name == "l", View: test.view[name]}
			if m.View != nil {
				m.Response, m.RaftIndex = NoLeader, 9
			}
			m.Unmanaged = is.unmanaged
			c.Members = append(c.Members, m)
			if !is.unmanaged {
				c.PVCs = append(c.PVCs, PVC{Name: name})
			}
			if !is.gone && !is.unmanaged {
				c.Pods = append(c.Pods, Pod{Name: name, Evidence: EvidenceFrom(false, is.ending), Running: !is.stopped, Ready: is.ready, NodeNotReady: is.cutOff})
			}
		}
		for _, name := range test.lost {
			c.Members = append(c.Members, Member{Name: name, Started: true})
		}
		loss := c.QuorumLoss()
		if loss.Certain != test.certain || loss.Permanent != test.permanent {
			t.Errorf("%s: %+v", name, loss)
		}
		if doubted := strings.Contains(loss.Message, "may have been removed from etcd"); doubted && test.permanent || !test.permanent && test.view == nil && !doubted {
			t.Errorf("%s: the message is %q", name, loss.Message)
		}
		if asks := strings.Contains(loss.Remediation, ConfirmNodeOff); !test.permanent && asks != test.certain {
			t.Errorf("%s: the remediation is %q", name, loss.Remediation)
		}
	}
}

// TestLossByList: a status from an earlier time does not name a voter that is lost. The list of a member
// that responds does, and the message repeats that.
func TestLossByList(t *testing.T) {
	t.Parallel()
	list := func(names ...string) *View {
		v := &View{}
		for _, name := range names {
			v.Members = append(v.Members, ListedMember{Name: name})
		}
		return v
	}
	const lost = "By the member list of a, 2 of 4 voters and their data no longer exist."
	for name, test := range map[string]struct {
		view *View
		want string
	}{
		"a voter that the status does not name is lost": {list("a", "b", "c", "d"), lost},
		"the list is that of the status":                {list("a", "b", "c"), ""},
		"the list could not be read":                    {list(), ""},
		"a learner has no list":                         {&View{Learner: true, Members: list("a", "b", "c", "d").Members}, ""},
	} {
		c := survivors(Member{Name: "a", Started: true, Response: NoLeader, View: test.view}, Member{Name: "b", Started: true, Response: NoLeader})
		c.Members = append(c.Members, Member{Name: "c", Started: true})
		c.UnreadFor = ElectionGrace
		loss := c.QuorumLoss()
		if loss.Permanent || strings.Contains(loss.Message, "member list") != (test.want != "") || !strings.Contains(loss.Message, test.want) {
			t.Errorf("%s: %+v", name, loss)
		}
	}
}
