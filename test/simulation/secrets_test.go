// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// combinationsOfSecrets is how many ways there are to delete one or more of the five Secrets, with
// and without volumes, and with and without a memory of the controller.
const combinationsOfSecrets = 4 * 31

// loseSecrets deletes Secrets of a cluster that serves together.
func loseSecrets(s *schedules.Schedule) {
	n := int(s.Seed)
	s.Certificates, s.Volumes, s.Deadly, s.Size = true, n/62%2 == 0, false, 3
	s.Events = []schedules.Event{{At: time.Minute, Kind: schedules.EventLoseSecrets, A: n, B: n / 31}}
}

// TestLostSecrets plays every combination of Secrets that are deleted together.
func TestLostSecrets(t *testing.T) {
	n := combinationsOfSecrets
	if testing.Short() || raceEnabled {
		n /= 2 // with volumes
	}
	variant := Variant{Name: "lost secrets", story: loseSecrets}
	total, failed := playAll(n, 0, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}
