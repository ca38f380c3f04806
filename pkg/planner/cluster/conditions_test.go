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

// initials are the short names of the conditions in the table below.
var initials = []struct {
	short byte
	is    v1beta2.ClusterConditionType
}{
	{'A', v1beta2.ClusterConditionAvailable},
	{'P', v1beta2.ClusterConditionProgressing},
	{'D', v1beta2.ClusterConditionDegraded},
	{'Q', v1beta2.ClusterConditionQuorumLost},
	{'S', v1beta2.ClusterConditionScaling},
	{'U', v1beta2.ClusterConditionUpgrading},
	{'Z', v1beta2.ClusterConditionPaused},
}

// marks writes the conditions that are True in upper case and those that are Unknown
// with a question mark.
func marks(t *testing.T, s v1beta2.ClusterStatus) string {
	t.Helper()
	var parts []string
	for _, i := range initials {
		c := find(s, i.is)
		if c == nil {
			t.Fatalf("no condition %s", i.is)
		}
		if c.Reason == "" || c.LastUpdateTime == "" || c.LastTransitionTime == "" {
			t.Errorf("condition without reason or times: %+v", c)
		}
		switch c.Status {
		case corev1.ConditionTrue:
			parts = append(parts, string(i.short))
		case corev1.ConditionUnknown:
			parts = append(parts, string(i.short)+"?")
		case corev1.ConditionFalse:
		}
	}
	return strings.Join(parts, " ")
}

func find(s v1beta2.ClusterStatus, t v1beta2.ClusterConditionType) *v1beta2.ClusterCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// wasDegraded is a last status that said so.
func wasDegraded(o *Observed) {
	o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, LastTransitionTime: testNow.Format(time.RFC3339)}}
}

func TestConditions(t *testing.T) {
	other := func(o *Observed) { o.Etcd.Members[0].Alarms = []Alarm{{Type: "OTHER", RaisedBy: 1}} }
	corrupt := func(o *Observed) { o.Etcd.Members[0].Alarms = []Alarm{{alarmNoSpace, 1}, {alarmCorrupt, 2}} }
	for _, tt := range []struct {
		name    string
		size    int
		members string
		edits   []func(*Observed)
		want    string
	}{
		{"at rest", 3, "a b c", nil, "A"},
		{"nothing yet", 3, "", edits(unresponsive), "P S"},
		{"the bootstrap member responds", 3, "a", edits(neverServed), "A P S"},
		{"growing", 3, "a b", nil, "A P S"},
		{"one that did not serve was removed", 3, "a b", edits(wasDegraded), "A P D S"},
		{"its replacement joins", 3, "a b c:learner,unstarted", edits(wasDegraded), "A P D S"},
		{"its replacement votes", 3, "a b c", edits(wasDegraded), "A"},
		{"no voter knows a leader at the moment", 3, "a:noleader b:noleader c:noleader", edits(noQuorum), "A? P D? Q?"},
		{"joining", 3, "a b c:learner,unstarted", nil, "A P S"},
		{"shrinking", 1, "a b c", nil, "A P S"},
		{"one does not serve", 3, "a b c:sick", nil, "A D"},
		{"one cannot be reached", 3, "a b c:unknown", nil, "A D"},
		{"one goes", 3, "a b c:terminating", nil, "A P D"},
		{"one is replaced", 3, "a b c:nopod", nil, "A P D"},
		{"an alarm that rejects no write", 3, "a b c", edits(other), "A D"},
		{"a database is full: writes are rejected", 3, "a b c", edits(size(16<<20), noSpace(1)), "D"},
		{"data that differs: writes are rejected", 3, "a b c", edits(corrupt), "D"},
		{"lost", 3, "a b:nopod c:nopod", edits(noQuorum), "P D Q"},
		{"lost until they come back", 3, "a b:down c:down", edits(noQuorum), "P D Q"},
		{"lost, and the one that is left says it serves", 3, "a b:nopod c:nopod", edits(noQuorum), "P D Q"},
		{"lost while coming back", 3, "a:nopod,claim b:nopod,claim c:nopod,claim", edits(noQuorum), "P D Q"},
		{"nothing is left", 3, "", edits(noQuorum), "P D Q S"},
		{"no member can be reached", 3, "a:unknown b:unknown c:unknown", edits(noQuorum), "A? P D? Q?"},
		{"rejects the controller", 3, "a:unknown b:unknown c:unknown", edits(noQuorum, denied), "A? P D? Q?"},
		{"unreachable by status: all healthy, no list", 3, "a b c", edits(noQuorum), "A? P D? Q?"},
		{"upgrading", 3, "a b:v=3.7.0,podv=3.7.0 c", edits(wants("3.7.0")), "A P U"},
		{"a version out of reach", 3, "a b c", edits(wants("3.9.0")), "A P U"},
		{"paused", 3, "a b c", edits(pausedSpec), "A Z"},
		{"paused and lost", 3, "a b:nopod c:nopod", edits(pausedSpec, noQuorum), "D Q Z"},
		{"a restore replaces the members", 3, "a:nopod b:nopod c:nopod", edits(noQuorum, recorded(cleaning, restores), recoveryPod(0xbeef)), "A? P D? Q?"},
		{"a recovery replaces the members", 3, "a:nopod b:nopod c:nopod", edits(noQuorum, recorded(cleaning), recoveryPod(0xbeef)), "P D Q"},
		{"a restore replaces the members, and the recovery member is lost", 3, "a:nopod b:nopod c:nopod", edits(noQuorum, recorded(cleaning, restores)), "P D Q"},
		{"a restore has replaced the members too long ago", 3, "a:nopod b:nopod c:nopod",
			edits(noQuorum, recorded(cleaning, restores), recoveryPod(0xbeef), unknownFor(3*time.Minute)), "P D Q"},
		{"asleep", 0, "a:nopod,claim", edits(noQuorum), ""},
		{"falling asleep", 0, "a:claim", nil, "P"},
		{"name-conflict", 3, "", edits(unresponsive, pod("old", false)), "P S"},
	} {
		if got := marks(t, statusOf(observed(t, tt.size, tt.members, tt.edits...))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// unknownFor is the last status of a cluster whose quorum could not be read for d.
func unknownFor(d time.Duration) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionUnknown, LastTransitionTime: testNow.Add(-d).Format(time.RFC3339),
		})
	}
}

// TestUpgradingNamesTwoVersions: the message names no change from a version to the same version.
func TestUpgradingNamesTwoVersions(t *testing.T) {
	for name, test := range map[string]struct {
		members, want string
		edits         []func(*Observed)
	}{
		"an upgrade":                            {"a b c", "from 3.6.11 to 3.7.0", edits(wants("3.7.0"))},
		"one member runs a later version":       {"a b c:v=3.7.3", "from 3.7.3 to 3.6.11", nil},
		"a change that was taken back too late": {"a b:v=3.7.0,podv=3.7.0 c", "from 3.7.0 to 3.6.11", nil},
	} {
		if c := find(statusOf(observed(t, 3, test.members, test.edits...)), v1beta2.ClusterConditionUpgrading); c.Status != corev1.ConditionTrue || c.Message != test.want {
			t.Errorf("%s: Upgrading is %s: %q, want %q", name, c.Status, c.Message, test.want)
		}
	}
}

func TestConditionTimes(t *testing.T) {
	o := observed(t, 3, "a b c")
	first := statusOf(o)
	then, later := testNow.Format(time.RFC3339), testNow.Add(time.Minute).Format(time.RFC3339)

	check := func(o Observed, update, transition string) {
		t.Helper()
		c := find(statusOf(o), v1beta2.ClusterConditionDegraded)
		if c.LastUpdateTime != update || c.LastTransitionTime != transition {
			t.Errorf("updated %s, changed %s; want %s, %s (%+v)", c.LastUpdateTime, c.LastTransitionTime, update, transition, c)
		}
	}
	check(o, then, then)

	o.Cluster.Status = first
	o.Now = testNow.Add(time.Minute)
	check(o, then, then)

	sick := observed(t, 3, "a b c:sick")
	sick.Cluster.Status = first
	sick.Now = testNow.Add(time.Minute)
	check(sick, later, later)

	other := observed(t, 3, "a b:sick c")
	other.Cluster.Status = statusOf(sick)
	other.Now = testNow.Add(2 * time.Minute)
	check(other, testNow.Add(2*time.Minute).Format(time.RFC3339), later)
}

func denied(o *Observed) { o.Etcd.Denied = true }

// TestLossIsExplained: the status of a lost quorum says what to do.
func TestLossIsExplained(t *testing.T) {
	o := observed(t, 3, "a:unknown b:unknown c:unknown", noQuorum, denied)
	if s := Status(o, Decide(o)); s.BlockedBy == nil || s.BlockedBy.Reason != "EtcdDenied" || !strings.Contains(s.BlockedBy.Unblock, "root") {
		t.Errorf("an etcd that rejects the controller is reported as %+v", s.BlockedBy)
	}
	o = observed(t, 3, "a b c", noQuorum, func(o *Observed) { o.Etcd.ListTooLarge, o.Etcd.Err = true, "65 members instead of at most 64" })
	if s := Status(o, Decide(o)); s.BlockedBy == nil || s.BlockedBy.Reason != "MemberListTooLarge" || !strings.Contains(s.BlockedBy.Message, "65 members") || !strings.Contains(s.BlockedBy.Unblock, "etcdctl member remove") {
		t.Errorf("a member list that is too large is reported as %+v", s.BlockedBy)
	}
	for members, want := range map[string]string{
		"a b:nopod c:nopod":                       "restore a backup",
		"a b:down c:down":                         "resumes untouched as soon as enough members come back",
		"a:nopod,claim b:nopod,claim c":           "resumes untouched",
		"a:unknown b:unknown c:unknown":           "Check the network",
		"a:noleader b:noleader c:noleader":        "know no leader. An election normally takes a few seconds",
		"a:nopod b:nopod c:nopod d:nopod,claim e": "restore a backup",
	} {
		o := observed(t, 3, members, noQuorum)
		plan := Decide(o)
		s := Status(o, plan)
		if c := find(s, v1beta2.ClusterConditionQuorumLost); !strings.Contains(c.Message, want) {
			t.Errorf("%s: %q does not say %q", members, c.Message, want)
		}
		if len(plan.Actions) == 0 && s.BlockedBy == nil {
			t.Errorf("%s: nothing said of what it waits for", members)
		}
	}
}

// TestBudgetThatIsNotOwnedIsShownEarly: evictions are not limited while another owner has the name of the budget. The status says
// so beside whatever the cluster waits for, and nothing waits for it.
func TestBudgetThatIsNotOwnedIsShownEarly(t *testing.T) {
	notOwned := func(o *Observed) { o.PodDisruptionBudget.State = NotOwned }
	disabled := func(o *Observed) { o.Cluster.Spec.PodDisruptionBudget = v1beta2.PodDisruptionBudgetDisabled }
	for name, test := range map[string]struct {
		members string
		edits   []func(*Observed)
		rule    RuleName
		told    bool
	}{
		"a member is missing": {"a b", edits(unprepared, notOwned), RuleScaleUp, true},
		"without a quorum":    {"a b c", edits(noQuorum, notOwned), RuleQuorum, true},
		"at rest":             {"a b c", edits(notOwned), RuleSteady, true},
		"no budget is wanted": {"a b c", edits(notOwned, disabled), RuleSteady, false},
		"its own budget":      {"a b c", nil, RuleSteady, false},
	} {
		o := observed(t, 3, test.members, test.edits...)
		plan := Decide(o)
		c := find(Status(o, plan), v1beta2.ClusterConditionBudgetAsDeclared)
		if plan.Rule != test.rule || (c != nil) != test.told || c != nil && (c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "Delete that PodDisruptionBudget")) {
			t.Errorf("%s: rule %s, condition %+v", name, plan.Rule, c)
		}
	}
}
