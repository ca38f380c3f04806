// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/controller/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// bug is a mistake that operators of etcd have made.
type bug struct {
	name string
	// rules are those that it breaks.
	rules string
	wrap  func(*manager.Manager, cluster.Config) cluster.Config
	// admitted is true if validation admits what the controller rejects.
	admitted bool
	// story makes a schedule one in which it matters.
	story func(*schedules.Schedule)
}

// enoughSchedules is how many schedules may pass until a bug is found.
const enoughSchedules = 600

// TestFindsKnownBugs makes the mistakes of other operators one by one, and shows that
// the simulation notices each: a check that never fails proves nothing.
func TestFindsKnownBugs(t *testing.T) {
	if raceEnabled {
		t.Skip("the schedules are the same without the race detector")
	}
	for _, b := range slices.Concat(
		bugsOfMembership(),
		bugsOfTakeOver(),
		bugsOfObjects(),
		bugsOfStatus(),
		bugsOfNeglect(),
		bugsOfPartitions(),
		bugsOfAdmission(),
		bugsOfCertificates(),
		bugsOfRecovery(),
		bugsOfDeclarations(),
		bugsOfIdentity(),
		bugsOfSpace(),
		bugsOfSecrets(),
		bugsOfClocks(),
		bugsOfFound(),
		bugsOfWaits(),
		bugsOfRetention(),
	) {
		t.Run(b.name, func(t *testing.T) {
			start := time.Now()
			variant := Variant{Name: b.name, wrap: b.wrap, admitsAll: b.admitted, story: b.story}
			breaks := func(v *timeline.Violation) bool { return slices.Contains(strings.Fields(b.rules), v.Rule) }
			total, found := playAll(enoughSchedules, *firstSeed, variant, breaks)
			for _, r := range found {
				if breaks(r.Violation) {
					t.Logf("seed %d, after %d schedules and %v: %v", r.Schedule.Seed, total.Schedules, time.Since(start).Round(time.Millisecond), r.Violation)
					return
				}
			}
			t.Errorf("nothing of %s was found in %d schedules, but %d other violations", b.rules, total.Schedules, len(found))
		})
	}
}
