// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestSuspended(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 300, Suspend: true})
	s.step()
	s.condition(ConditionProgressing, metav1.ConditionFalse, "Suspended")
	for range 3 {
		s.Now = s.Now.Add(1000 * time.Second)
		s.rests()
	}
	s.Backup.Spec.BackupPolicy.Suspend = false
	s.Backup.Generation++
	s.begins(s.Now.Add(-s.Now.Sub(epoch)%(300*time.Second)), 1) // one for all that were missed
	s.Backup.Spec.BackupPolicy.Suspend = true
	s.ends(time.Second, good(1)) // what runs goes on to its end
	s.is(v1beta2.BackupPhaseSucceeded)
	s.step()
	s.Now = s.Now.Add(1000 * time.Second)
	s.rests()
}

// A user suspends a backup between the status that says an attempt is due and its Job: the
// outcome of the attempt before stands.
func TestSuspendedBeforeItBegins(t *testing.T) {
	t.Parallel()
	suspended := func(s *scene) {
		t.Helper()
		s.Backup.Spec.BackupPolicy.Suspend = true
		s.Backup.Generation++
		s.step()
		s.condition(ConditionProgressing, metav1.ConditionFalse, ReasonSuspended)
		s.rests()
	}
	for name, c := range map[string]struct {
		before  *Outcome
		missing *Wait
		phase   v1beta2.BackupPhase
		reason  string
	}{
		"after a success":                      {before: new(good(1)), phase: v1beta2.BackupPhaseSucceeded},
		"after a success, nothing to back up":  {before: new(good(1)), missing: &Wait{Reason: ReasonNoMemberRuns, Message: "none runs"}, phase: v1beta2.BackupPhaseSucceeded},
		"after a failure":                      {before: new(bad()), missing: &Wait{Reason: ReasonNoMemberRuns, Message: "none runs"}, phase: v1beta2.BackupPhaseFailed, reason: bad().Message},
		"before the first":                     {phase: v1beta2.BackupPhasePending},
		"before the first, nothing to back up": {missing: &Wait{Reason: ReasonNoMemberRuns, Message: "none runs"}, phase: v1beta2.BackupPhasePending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 300})
			s.Now = epoch.Add(300 * time.Second)
			if c.before != nil {
				s.begins(s.Now, 1)
				s.ends(time.Second, *c.before)
				s.Now = epoch.Add(600 * time.Second)
			}
			s.Source = c.missing
			s.step() // it says that the attempt is due, and the Job is not made
			s.is(v1beta2.BackupPhasePending)
			suspended(s)
			s.is(c.phase)
			if s.Backup.Status.Reason != c.reason {
				t.Errorf("reason %q, want %q", s.Backup.Status.Reason, c.reason)
			}
			s.Source = nil
			s.Backup.Spec.BackupPolicy.Suspend = false
			s.Backup.Generation++
			s.begins(s.Now, 1)
		})
	}
}
