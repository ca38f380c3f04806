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

// putCABack applies the Secret of a CA after another CA has replaced it. In every second schedule that CA was
// cross-signed by one before.
func putCABack(s *schedules.Schedule) {
	s.Certificates, s.Volumes, s.Size, s.Deadly = true, s.Seed/2%2 == 0, 3, false
	s.Events = nil
	at := time.Minute
	if s.Seed%2 == 0 {
		s.Events = append(s.Events, schedules.Event{At: at, Kind: schedules.EventRotateCA, B: 1, For: 6 * time.Second})
		at += 4 * time.Minute
	}
	// That is while both are trusted, while members restart, and after that.
	later := 5*time.Second + time.Duration(s.Seed/4%8)*20*time.Second
	s.Events = append(s.Events,
		schedules.Event{At: at, Kind: schedules.EventOldCA},
		schedules.Event{At: at + time.Second, Kind: schedules.EventRotateCA, B: 2, For: 6 * time.Second},
		schedules.Event{At: at + later, Kind: schedules.EventOldCA, A: 1})
}

// TestOlderCAIsPutBack plays a CA that comes back after another CA has replaced it, at several times of the
// replacement.
func TestOlderCAIsPutBack(t *testing.T) {
	variant := Variant{Name: "an older CA is put back", story: putCABack}
	total, failed := playAll(32, 0, variant, nil)
	t.Logf("%v\n%d violations", total, len(failed))
	for _, r := range failed[:min(len(failed), 2)] {
		report(t, r, variant)
	}
}
