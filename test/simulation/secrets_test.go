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
const combinationsOfSecrets = 4 * waysToLoseSecrets

const waysToLoseSecrets = 31

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

// loseSecretsWithQuorum deletes Secrets of a cluster whose quorum is permanently lost, and asks for a recovery.
func loseSecretsWithQuorum(s *schedules.Schedule) {
	s.Certificates, s.Volumes, s.Deadly, s.Automatic, s.Recovers, s.Size = true, s.Seed < waysToLoseSecrets, true, false, true, 3
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventDisaster, A: int(s.Seed), B: int(s.Seed / 2)},
		{At: 70 * time.Second, Kind: schedules.EventLoseSecrets, A: int(s.Seed), B: 1},
		{At: 2 * time.Minute, Kind: schedules.EventRecover},
		{At: 4 * time.Minute, Kind: schedules.EventRecover},
	}
}

// TestLostSecretsAndQuorum plays every combination without a memory of the controller. The pod of a recovery
// mounts the certificate of the controller, and no member restarts to trust another CA.
func TestLostSecretsAndQuorum(t *testing.T) {
	n := 2 * waysToLoseSecrets
	if testing.Short() || raceEnabled {
		n = waysToLoseSecrets // with volumes
	}
	variant := Variant{Name: "lost secrets and quorum", story: loseSecretsWithQuorum}
	total, failed := playAll(n, 0, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}

// loseSecretsAfterRotation deletes Secrets of a cluster that no longer trusts its former CA, while some members
// have not restarted since and trust that CA only.
func loseSecretsAfterRotation(s *schedules.Schedule) {
	n := int(s.Seed)
	s.Certificates, s.Volumes, s.Deadly, s.Size = true, true, false, 3
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventRotateCA, For: 6 * time.Second},
		{At: 68*time.Second + time.Duration(n/waysToLoseSecrets)*2*time.Second, Kind: schedules.EventLoseSecrets, A: n, B: 1},
	}
}

// TestLostSecretsAfterRotation plays every combination without a memory of the controller. The certificate of the
// peers, if it is left, is one that all members accept: they restart one by one.
func TestLostSecretsAfterRotation(t *testing.T) {
	variant := Variant{Name: "lost secrets after a rotation", story: loseSecretsAfterRotation}
	total, failed := playAll(2*waysToLoseSecrets, 0, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}
