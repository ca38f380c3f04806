// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"testing"
	"time"
)

var (
	start     = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	testNames = []string{"server.ns.svc", "localhost"}
)

const day = 24 * time.Hour

// walk takes steps at the given times after the start, beginning with StepCreate.
func walk(t *testing.T, steps ...any) *bundle {
	t.Helper()
	var current *bundle
	for i := 0; i < len(steps); i += 2 {
		next, err := current.step(steps[i+1].(Step), start.Add(steps[i].(time.Duration)), testNames)
		if err != nil {
			t.Fatal(err)
		}
		current = next
	}
	return current
}

func TestPlan(t *testing.T) {
	t.Parallel()
	none := time.Duration(0)
	fresh := walk(t, none, StepCreate)
	renewCA := caLifetime - caRenewBefore
	// The leaf was renewed a day before the CA is due.
	twoCAs := walk(t, none, StepCreate, renewCA-day, StepIssueLeaf, renewCA+day, StepAddCA)
	newLeaf := walk(t, none, StepCreate, renewCA-day, StepIssueLeaf, renewCA+day, StepAddCA, renewCA+2*day, StepIssueLeaf)

	for _, test := range []struct {
		name  string
		after time.Duration
		have  *bundle
		names []string
		want  Step
	}{
		{"nothing there", 0, nil, testNames, StepCreate},
		{"just made", 0, fresh, testNames, StepNone},
		{"clock is behind that of the issuer", -time.Minute, fresh, testNames, StepNone},
		{"clock is a day behind that of the issuer", -day, fresh, testNames, StepNone},
		{"leaf and CA are valid only later", -26 * time.Hour, fresh, testNames, StepAddCA},
		{"leaf is valid only later", 0, walk(t, none, StepCreate, 3*day, StepIssueLeaf), testNames, StepIssueLeaf},
		{"CA of the leaf is valid only later", 0, walk(t, 3*day, StepCreate, none, StepIssueLeaf, none, StepAddCA), testNames, StepIssueLeaf},
		{"newest CA is valid only later, and no leaf is of it", 0, walk(t, none, StepCreate, 3*day, StepAddCA), testNames, StepAddCA},
		{"a name was added", 0, fresh, []string{"server.ns.svc", "new"}, StepIssueLeaf},
		{"a name was dropped", 0, fresh, []string{"localhost"}, StepNone},
		{"leaf has a month and a bit", leafLifetime - leafRenewBefore - time.Hour, fresh, testNames, StepNone},
		{"leaf has less than a month", leafLifetime - leafRenewBefore + time.Hour, fresh, testNames, StepIssueLeaf},
		{"leaf is over", leafLifetime + time.Hour, fresh, testNames, StepIssueLeaf},
		{"CA has two years and a bit", renewCA - time.Hour, walk(t, none, StepCreate, renewCA-day, StepIssueLeaf), testNames, StepNone},
		{"CA has less than two years", renewCA + time.Hour, walk(t, none, StepCreate, renewCA-day, StepIssueLeaf), testNames, StepAddCA},
		{"CA is over", caLifetime + time.Hour, fresh, testNames, StepCreate},
		{"new CA is not known to all yet", renewCA + day + settleTime - time.Minute, twoCAs, testNames, StepNone},
		{"new CA is known", renewCA + day + settleTime + time.Minute, twoCAs, testNames, StepIssueLeaf},
		{"old leaf may still be shown", renewCA + 2*day + settleTime - time.Minute, newLeaf, testNames, StepNone},
		{"bundle without the old leaf drops the old CA", renewCA + 2*day + settleTime + time.Minute, newLeaf, testNames, StepDropOldCAs},
		{
			"leaf is over before the new CA is known", renewCA + 2*day,
			walk(t, none, StepCreate, renewCA+2*day-time.Minute, StepAddCA), testNames, StepIssueLeaf,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := plan(start.Add(test.after), test.have, test.names); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestPlanForLeafOfAnotherCA(t *testing.T) {
	t.Parallel()
	mixed, other := walk(t, time.Duration(0), StepCreate), walk(t, time.Duration(0), StepCreate)
	mixed.leaf, mixed.leafKey = other.leaf, other.leafKey
	if got := plan(start, mixed, testNames); got != StepIssueLeaf {
		t.Errorf("got %s, want %s", got, StepIssueLeaf)
	}
}

// TestTwentyYears moves the clock in weeks. In each week the leaf must be valid and trusted, also
// by a client whose bundle is a week old. No client may meet a leaf of a CA that was not in
// the bundle before.
func TestTwentyYears(t *testing.T) {
	t.Parallel()
	current := walk(t, time.Duration(0), StepCreate)
	before := current
	cas := map[string]bool{}
	for now := start; now.Before(start.Add(20 * 365 * day)); now = now.Add(7 * day) {
		for step := plan(now, current, testNames); step != StepNone; step = plan(now, current, testNames) {
			next, err := current.step(step, now, testNames)
			if err != nil {
				t.Fatal(err)
			}
			current = next
		}
		cas[current.cas[0].Subject.CommonName] = true
		for _, known := range []*bundle{before, current} {
			if err := verify(known, current, now); err != nil {
				t.Fatalf("%s: %v", now.Format(time.DateOnly), err)
			}
		}
		before = current
	}
	if len(cas) < 3 {
		t.Errorf("%d cas in twenty years, want at least 3", len(cas))
	}
	if len(current.cas) > 2 {
		t.Errorf("the bundle grew to %d cas", len(current.cas))
	}
}
