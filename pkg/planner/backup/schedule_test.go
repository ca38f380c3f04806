// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func cronPolicy(schedule, zone string) *v1beta2.BackupPolicy {
	return &v1beta2.BackupPolicy{Schedule: schedule, TimeZone: ptr.To(zone)}
}

// TestChangesOfTheClock goes through the scheduled times around the two changes of a year.
func TestChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schedule, zone, from string
		want                 []string
	}{
		"every night, the hour is left out: made when the clock jumps": {
			"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		},
		"every night, the hour comes twice": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z",
			[]string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"every hour, forward: none is left out and none is added": {
			"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"},
		},
		"every hour, back": {
			"30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		},
		"a year that leaves the day out": {
			"0 3 29 2 *", "UTC", "2027-01-01T00:00:00Z",
			[]string{"2028-02-29T03:00:00Z", "2032-02-29T03:00:00Z"},
		},
		"America": {
			"0 2 * * *", "America/New_York", "2026-03-07T00:00:00Z",
			[]string{"2026-03-07T07:00:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := ScheduleOf(cronPolicy(test.schedule, test.zone), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			scheduled := at(t, test.from)
			for _, want := range test.want {
				scheduled = s.Next(scheduled)
				if !scheduled.Equal(at(t, want)) {
					t.Fatalf("scheduled %s, want %s", scheduled.UTC().Format(time.RFC3339), want)
				}
			}
		})
	}
}

// schedules are of every kind, with zones that change their clocks by an hour, by half
// an hour, at midnight, and not at all.
func schedules(t testing.TB, anchor time.Time) map[string]Schedule {
	t.Helper()
	all := map[string]Schedule{}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"} {
		for _, text := range []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * *", "15 0 * * 0", "0 3 1 * *", "59 23 31 12 *", "@daily"} {
			s, err := ScheduleOf(cronPolicy(text, zone), anchor)
			if err != nil {
				t.Fatal(err)
			}
			all[zone+" "+text] = s
		}
	}
	for _, policy := range []*v1beta2.BackupPolicy{{BackupIntervalInSecond: 1}, {BackupIntervalInSecond: 125}, {BackupIntervalInSecond: 86400}, {Schedule: "@every 90s"}} {
		s, err := ScheduleOf(policy, anchor)
		if err != nil {
			t.Fatal(err)
		}
		all["interval "+policy.Schedule+time.Duration(policy.BackupIntervalInSecond*1e9).String()] = s
	}
	return all
}

// TestScheduledTimesAreOrderedAndLatestAgrees walks over two years in steps of odd lengths.
// It compares Latest with the result of counting the scheduled times one by one.
func TestScheduledTimesAreOrderedAndLatestAgrees(t *testing.T) {
	t.Parallel()
	begin := at(t, "2025-12-31T22:11:03Z")
	for name, s := range schedules(t, begin) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for now, steps := begin, 0; now.Before(begin.AddDate(2, 0, 0)); now, steps = now.Add(11*time.Hour+7*time.Minute+13*time.Second), steps+1 {
				next := s.Next(now)
				if !next.After(now) {
					t.Fatalf("Next(%s) is %s", now, next)
				}
				if again := s.Next(next.Add(-time.Second)); !again.Equal(next) {
					t.Fatalf("scheduled %s is not found a second before it: %s", next, again)
				}
				since := now.Add(-time.Duration(steps%5) * 7 * time.Minute)
				var want time.Time
				for scheduled := s.Next(since); !scheduled.After(now); scheduled = s.Next(scheduled) {
					want = scheduled
				}
				if got := s.Latest(since, now); !got.Equal(want) {
					t.Fatalf("Latest(%s, %s) is %s, want %s", since, now, got, want)
				}
			}
		})
	}
}

// TestMissedTimesGiveOneBackup stops the controller for up to three years.
func TestMissedTimesGiveOneBackup(t *testing.T) {
	t.Parallel()
	created := at(t, "2024-06-01T12:00:00Z")
	for name, s := range schedules(t, created) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, away := range []time.Duration{time.Minute, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour, 3 * 366 * 24 * time.Hour} {
				handled := s.Next(created)
				now := handled.Add(away)
				scheduled, next := due(s, created, handled, now)
				if !next.After(now) {
					t.Fatalf("away %s: next is %s at %s", away, next, now)
				}
				if scheduled.IsZero() {
					if !s.Next(handled).After(now) {
						t.Fatalf("away %s: nothing is due although %s was missed", away, s.Next(handled))
					}
					continue
				}
				if scheduled.After(now) || !scheduled.After(handled) {
					t.Fatalf("away %s: %s is due at %s, handled %s", away, scheduled, now, handled)
				}
				if again, _ := due(s, created, scheduled, now); !again.IsZero() {
					t.Fatalf("away %s: %s is due after %s", away, again, scheduled)
				}
			}
		})
	}
}

// TestClockThatJumps sets the clock back by seconds, hours and years. By seconds, the
// scheduled time that was handled is not handled again. By more, the clock was ahead when that time
// was recorded: a backup is due now, once, and the schedule goes on from the new time.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	created := at(t, "2026-01-01T00:00:00Z")
	for name, s := range schedules(t, created) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handled := s.Next(created.AddDate(3, 0, 0))
			for _, back := range []time.Duration{time.Second, 61 * time.Second, 5 * time.Hour, 2 * 365 * 24 * time.Hour} {
				now := handled.Add(-back)
				scheduled, next := due(s, created, handled, now)
				if resources.IsFuture(handled, now) {
					again, following := due(s, created, scheduled, now)
					if !scheduled.Equal(now.Truncate(time.Second)) || !again.IsZero() || !following.Equal(s.Next(now)) || !next.Equal(following) {
						t.Fatalf("%s back: at %s %s is due, and then %s; next is %s", back, now, scheduled, again, next)
					}
					continue
				}
				if !scheduled.IsZero() {
					t.Fatalf("%s back: %s is due", back, scheduled)
				}
				if !next.After(now) || next.Equal(handled) {
					t.Fatalf("%s back: next is %s at %s, handled %s", back, next, now, handled)
				}
				if first := s.Next(now); !first.Equal(handled) && !next.Equal(first) {
					t.Fatalf("%s back: next is %s and not %s", back, next, first)
				}
			}
		})
	}
}

// TestClockThatWasAheadOnce: the status goes back to the present before the Job exists, so that the Job does not
// count as recorded and is not deleted while it runs.
func TestClockThatWasAheadOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})
	present := epoch.Add(30 * time.Minute)
	s.Now = epoch.AddDate(0, 1, 0)
	s.begins(s.Now, 1)
	s.ends(time.Second, good(1))
	s.Now = present
	if plan := s.step(); plan.Action != ActionNone || len(plan.Delete) != 1 {
		t.Fatalf("the Job of a time that is yet to come stays: %+v", plan)
	}
	if plan := s.step(); plan.Action != ActionRecordDue || plan.RequeueAfter == 0 || !s.Backup.Status.LastScheduleTime.Time.Equal(present) {
		t.Fatalf("plan %+v, status %+v", plan, s.Backup.Status)
	}
	s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonDue)
	plan := Decide(s.Observed)
	if plan.Action != ActionSave || !plan.Attempt.isSame(Attempt{ScheduledTime: present, Number: 1}) {
		t.Fatalf("plan %+v", plan)
	}
	s.Jobs = []Job{{Job: job.Job{Name: "j", Created: s.Now}, Attempt: plan.Attempt}} // the controller writes no status with it
	if plan := s.step(); len(plan.Delete) > 0 {
		t.Fatalf("the Job is deleted while it runs: %+v", plan)
	}
	s.is(v1beta2.BackupPhaseRunning)
	s.ends(time.Second, good(2))
	if plan := s.step(); !s.Backup.Status.LastSuccessDate.Time.Equal(s.Now) || !plan.Next.Equal(epoch.Add(time.Hour)) {
		t.Errorf("plan %+v, status %+v", plan, s.Backup.Status)
	}
}

func TestFirstBackup(t *testing.T) {
	t.Parallel()
	created := at(t, "2026-05-05T10:00:30Z")
	every, err := ScheduleOf(&v1beta2.BackupPolicy{BackupIntervalInSecond: 3600}, created)
	if err != nil {
		t.Fatal(err)
	}
	if scheduled, next := due(every, created, time.Time{}, created.Add(2*time.Second)); !scheduled.Equal(created) || !next.Equal(created.Add(time.Hour)) {
		t.Errorf("interval: due %s, then %s; want at once", scheduled, next)
	}
	nightly, err := ScheduleOf(&v1beta2.BackupPolicy{Schedule: "0 3 * * *"}, created)
	if err != nil {
		t.Fatal(err)
	}
	if scheduled, next := due(nightly, created, time.Time{}, created.Add(2*time.Second)); !scheduled.IsZero() || !next.Equal(at(t, "2026-05-06T03:00:00Z")) {
		t.Errorf("cron: due %s, then %s; want the next night", scheduled, next)
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	total := time.Duration(0)
	for failed := int32(1); failed < maxAttempts; failed++ {
		wait := backOff(failed)
		if wait < firstRetry || wait > lastRetry || (failed > 1 && wait < backOff(failed-1)) {
			t.Errorf("after %d failures: %s", failed, wait)
		}
		total += wait
	}
	if total < 45*time.Minute || total > 90*time.Minute {
		t.Errorf("one backup is tried for %s", total)
	}
}
