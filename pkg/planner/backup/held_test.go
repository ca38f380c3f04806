// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// TestHeld: the retention deletes nothing that an open restore or a recovery of the cluster reads. The backups are
// one an hour, called 1 to 5 by their revisions.
func TestHeld(t *testing.T) {
	t.Parallel()
	hours := func(n float64) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(n * float64(time.Hour)))) }
	b := newBackup(&v1beta2.BackupPolicy{Schedule: "@hourly", MaxBackups: 1})
	for n := int64(5); n > 0; n-- {
		b.Status.History = append(b.Status.History, v1beta2.BackupRecord{
			Succeeded: true, URI: "s3://bucket/key/b/" + string(rune('0'+n)), Revision: n, StartTime: hours(float64(n)), CompletionTime: ptr.To(hours(float64(n))),
		})
	}
	b.Status.URI, b.Status.EtcdRevision, b.Status.LastSuccessDate = b.Status.History[0].URI, 5, hours(5)
	another := newBackup(nil)
	another.Name, another.Status.URI, another.Status.EtcdRevision, another.Status.LastSuccessDate = "a", "s3://bucket/key/b/a/2", 2, hours(2)
	named := func(name string, revision *int64) v1beta2.RestoreSpec {
		return v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: name, Revision: revision}}
	}
	at := func(path string) v1beta2.RestoreSpec {
		return v1beta2.RestoreSpec{BackupStorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: path, AWSSecret: "aws"}}}
	}
	var many []float64
	for n := range v1beta2.MaxClusterRestores {
		many = append(many, 999-float64(n))
	}
	late := map[int64]float64{4: 999.4, 5: 999.5} // after the restores below
	for name, test := range map[string]struct {
		spec     v1beta2.RestoreSpec
		status   v1beta2.RestoreStatus
		recovery *v1beta2.RecoveryStatus
		idle     bool
		cutOff   bool
		differs  bool
		service  bool
		most     bool
		clock    map[int64]float64 // of revisions that a wrong clock has dated
		restored []float64         // hours at which restores of the cluster have ended
		want     string
	}{
		"revision by name":                           {spec: named("b", ptr.To[int64](2)), want: "2"},
		"revision while it is filled":                {spec: named("b", ptr.To[int64](2)), status: v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseRestoring}, want: "2"},
		"restore that has ended":                     {spec: named("b", ptr.To[int64](2)), status: v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseSucceeded}},
		"restore that has failed":                    {spec: named("b", ptr.To[int64](2)), status: v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed}},
		"EtcdBackup that does not exist":             {spec: named("x", nil)},
		"revision of another EtcdBackup":             {spec: named("a", ptr.To[int64](2)), want: "a/2"},
		"newest of another EtcdBackup":               {spec: named("a", nil), want: "a/2"},
		"the newest when the restore was created":    {spec: named("b", nil), want: "3 4 5"},
		"the one that has most writes":               {spec: named("b", nil), most: true, want: "1 2 3 4 5"},
		"the newest that was verified, and another":  {spec: named("b", nil), status: v1beta2.RestoreStatus{Revision: 3}, want: "3 5"},
		"others have the revision that was verified": {spec: named("b", nil), status: v1beta2.RestoreStatus{Revision: 3}, idle: true, want: "3 5"},
		"path of one backup":                         {spec: at("bucket/key/b/2"), want: "2"},
		"prefix":                                     {spec: at("bucket/key"), want: "s3://bucket/key 3 4 5"},
		"the newest that a quorum confirmed, too":    {spec: at("bucket/key"), cutOff: true, want: "s3://bucket/key 2 3 4 5"},
		"the newest whose data does not differ, too": {spec: at("bucket/key"), differs: true, want: "s3://bucket/key 2 3 4 5"},
		"place that cannot be used":                  {spec: at("bucket"), want: ""},
		"recovery under way": {spec: named("x", nil), want: "4", recovery: &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseCutover, Source: v1beta2.RecoverySource{
			Backup: &v1beta2.BackupPlace{StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: at("bucket/key/b/4").RestoreSource},
		}}},
		"the last before a recovery from a survivor": {spec: named("x", nil), want: "3", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"the same, of an EtcdBackup that names the Service of the cluster": {spec: named("x", nil), service: true, want: "3", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"the last of the survivor, and what a quorum confirmed": {spec: named("x", nil), cutOff: true, want: "2 3", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRequest, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"the newest, and those before it, after a clock that was behind": {spec: named("b", nil), clock: map[int64]float64{4: 0.4, 5: 0.5}, want: "3 4 5"},
		"the last before a recovery, and those of a clock that was behind since": {spec: named("x", nil), clock: map[int64]float64{4: 0.4, 5: 0.5}, want: "3 4 5", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"the last before a recovery, by a clock that was ahead, and the one before": {spec: named("x", nil), clock: map[int64]float64{3: 4.5}, want: "2 3", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"all from before a restore: each may be the next to try": {spec: named("x", nil), want: "1 2 3", clock: late, restored: []float64{999}, recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"a restore under way": {spec: named("x", nil), want: "1 2 3 4 5", recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseFilling, RequestedAt: hours(999),
		}},
		"a restore that was abandoned": {spec: named("x", nil), recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseAbandoned, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(999)),
		}},
		"a restore, and the next one was abandoned": {spec: named("x", nil), want: "1 2 3", clock: late, restored: []float64{990}, recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseAbandoned, RequestedAt: hours(991), CompletionTime: ptr.To(hours(999)),
		}},
		"a restore, and a recovery from a survivor since": {spec: named("x", nil), want: "1 2 3 4", clock: map[int64]float64{4: 995, 5: 998}, restored: []float64{990}, recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(996), CompletionTime: ptr.To(hours(997)),
		}},
		"a restore of a clock that was ahead": {spec: named("x", nil), want: "1 2 3 4", clock: map[int64]float64{1: 1020, 2: 1021, 3: 1022, 4: 1023, 5: 1030}, restored: []float64{998}, recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerRestore, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(1024), CompletionTime: ptr.To(hours(1025)),
		}},
		"more restores than the status names":            {spec: named("x", nil), want: "4", clock: map[int64]float64{4: 970, 5: 999.5}, restored: many},
		"a restore of long ago":                          {spec: named("x", nil), clock: late, restored: []float64{4}},
		"a restore every night: each for a week":         {spec: named("x", nil), want: "4", clock: map[int64]float64{4: 900, 5: 999.5}, restored: []float64{999, 975, 800}},
		"the first restore that followed it counts only": {spec: named("x", nil), clock: late, restored: []float64{999, 4}},
		"a recovery of long ago": {spec: named("x", nil), recovery: &v1beta2.RecoveryStatus{
			Trigger: v1beta2.RecoveryTriggerAutomatic, Phase: v1beta2.RecoveryPhaseSucceeded, RequestedAt: hours(3.5), CompletionTime: ptr.To(hours(4)),
		}},
		"recovery that has ended": {spec: named("x", nil), recovery: &v1beta2.RecoveryStatus{Phase: v1beta2.RecoveryPhaseSucceeded, Source: v1beta2.RecoverySource{
			Backup: &v1beta2.BackupPlace{StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: at("bucket/key/b/4").RestoreSource},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: hours(3.5)}, Spec: test.spec, Status: test.status}
			c := newCluster(nil)
			c.Status.Recovery = test.recovery
			for _, at := range test.restored {
				c.Status.Restores = append(c.Status.Restores, v1beta2.ClusterRestore{Time: ptr.To(hours(at))})
			}
			b := b
			if test.idle { // nothing was written between the backups 1, 2 and 3
				b = b.DeepCopy()
				b.Status.History[3].Revision, b.Status.History[4].Revision = 3, 3
			}
			if test.most { // a member that was cut off stores old data since backup 1, and backup 2 was lost on the way
				b = b.DeepCopy()
				for i := range 3 {
					b.Status.History[i].Unconfirmed = true
				}
				b.Status.Unconfirmed, b.Status.Verified = true, true
				b.Status.History[4].Revision, b.Status.History[4].Verified = 9, true
			}
			b = b.DeepCopy()
			for i := range b.Status.History {
				if r := &b.Status.History[i]; test.clock[r.Revision] > 0 {
					r.StartTime, r.CompletionTime = hours(test.clock[r.Revision]), ptr.To(hours(test.clock[r.Revision]))
				}
			}
			b.Status.LastSuccessDate = *b.Status.History[0].CompletionTime
			if test.service {
				b.Spec.EtcdCluster, b.Spec.EtcdEndpoints = nil, []string{"http://" + c.Name + "-client:2379"}
			}
			if test.cutOff { // no quorum confirmed backup 3
				b = b.DeepCopy()
				b.Status.History[2].Unconfirmed = true
			}
			if test.differs { // the data of the members differed during backup 3
				b = b.DeepCopy()
				b.Status.History[2].DataDiffers = true
			}
			got := strings.ReplaceAll(strings.Join(Held(b, []*v1beta2.EtcdBackup{b, another}, []*v1beta2.EtcdRestore{r}, []*v1beta2.EtcdCluster{newCluster(nil), c}, epoch.Add(1000*time.Hour)), " "), "s3://bucket/key/b/", "")
			if got != test.want {
				t.Errorf("holds %q, want %q", got, test.want)
			}
		})
	}
}

// TestHeldByUser: a user holds single snapshots of a periodic EtcdBackup, or all that it has stored.
func TestHeldByUser(t *testing.T) {
	t.Parallel()
	b := newBackup(&v1beta2.BackupPolicy{Schedule: "@hourly", MaxBackups: 1})
	b.Status.URI = "s3://b/3"
	b.Status.History = []v1beta2.BackupRecord{{Succeeded: true, URI: "s3://b/3"}, {URI: "s3://b/2"}, {Succeeded: true, URI: "s3://b/1"}}
	b.Spec.HeldSnapshots = []string{"s3://b/1"}
	if got := strings.Join(Held(b, nil, nil, nil, epoch), " "); got != "s3://b/1" {
		t.Errorf("a snapshot: holds %q", got)
	}
	b.Spec.Hold, b.Spec.HeldSnapshots = ptr.To(true), nil
	if got := strings.Join(Held(b, nil, nil, nil, epoch), " "); got != "s3://b/1 s3://b/3" {
		t.Errorf("all: holds %q", got)
	}
}

// TestHistoryOfAHeldBackup: while the EtcdBackup is held its history loses nothing.
func TestHistoryOfAHeldBackup(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1})
	s.Backup.Spec.Hold = ptr.To(true)
	for revision := int64(1); revision <= 3; revision++ {
		s.Now = epoch.Add(time.Duration(revision) * time.Minute)
		s.Held = Held(s.Backup, nil, nil, nil, s.Now)
		s.begins(s.Now, 1)
		s.ends(time.Second, good(revision))
	}
	if h := s.Backup.Status.History; len(h) != 3 {
		t.Errorf("the history is %+v", h)
	}
}

// TestHistoryKeepsWhatIsHeld: the history is as the store, where the agent keeps the same.
func TestHistoryKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1})
	s.Held = []string{good(1).URI}
	for revision := int64(1); revision <= 3; revision++ {
		s.Now = epoch.Add(time.Duration(revision) * time.Minute)
		s.begins(s.Now, 1)
		s.ends(time.Second, good(revision))
	}
	if h := s.Backup.Status.History; len(h) != 2 || h[0].Revision != 3 || h[1].Revision != 1 {
		t.Errorf("the history is %+v", h)
	}
}

// TestHistoryIsThatOfTheJob: what has ended or begun since the Job was created changes nothing in what the agent has
// deleted by then. Backups are made every minute, and two are kept.
func TestHistoryIsThatOfTheJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before []string
		later  func(*scene)
		want   string
	}{
		"restore that has ended":  {before: []string{good(1).URI}, later: func(s *scene) { s.Held = nil }, want: "4 3 1"},
		"retention that is wider": {later: func(s *scene) { s.Backup.Spec.BackupPolicy.MaxBackups = 9 }, want: "4 3"},
		"retention that is less":  {later: func(s *scene) { s.Backup.Spec.BackupPolicy.MaxBackups = 1 }, want: "4 3"},
		"retention that is none":  {later: func(s *scene) { s.Backup.Spec.BackupPolicy.MaxBackups = 0 }, want: "4 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 2})
			s.Held = test.before
			for revision := int64(1); revision <= 4; revision++ {
				s.Now = epoch.Add(time.Duration(revision) * time.Minute)
				s.begins(s.Now, 1)
				if revision == 4 {
					test.later(s)
				}
				s.ends(time.Second, good(revision))
			}
			var got []string
			for _, r := range s.Backup.Status.History {
				got = append(got, strconv.FormatInt(r.Revision, 10))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("the history is %v, want %s", got, test.want)
			}
		})
	}
}

// TestJobThatEndangersAHeldBackup: a Job that may delete what a restore reads is ended before it has ended by itself,
// and the next attempt keeps that backup. Other Jobs run on.
func TestJobThatEndangersAHeldBackup(t *testing.T) {
	t.Parallel()
	every := &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 1}
	for name, test := range map[string]struct {
		policy       *v1beta2.BackupPolicy
		before, held []string
		ended        bool
		hold         bool
	}{
		"restore that began during it":  {every, nil, []string{good(1).URI}, true, false},
		"restore that began before it":  {every, []string{good(1).URI}, []string{good(1).URI}, false, false},
		"another restore":               {every, []string{good(1).URI}, []string{good(1).URI, good(2).URI}, true, false},
		"backup in another store":       {every, nil, []string{"s3://other/1"}, false, false},
		"Job that deletes nothing":      {&v1beta2.BackupPolicy{BackupIntervalInSecond: 60}, nil, []string{good(1).URI}, false, false},
		"place that holds the backups":  {every, nil, []string{"s3://bucket/"}, true, false},
		"no restore":                    {every, nil, nil, false, false},
		"restore that has ended before": {every, []string{good(1).URI}, nil, false, false},
		"hold that was set during it":   {every, nil, nil, true, true}, // the status tells of no backup yet, and the store may have some
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, test.policy)
			s.Held = test.before
			s.begins(epoch, 1)
			s.Held, s.Backup.Spec.Hold = test.held, &test.hold
			plan := s.step()
			if ended := plan.Record != nil; ended != test.ended {
				t.Fatalf("the plan is %+v, want the end of the Job: %v", plan, test.ended)
			}
			if !test.ended {
				return
			}
			if plan.Record.Reason != ReasonRestoreBegan {
				t.Errorf("the outcome is %+v", plan.Record)
			}
			if plan = s.step(); len(plan.Delete) != 1 || len(s.Jobs) != 0 {
				t.Fatalf("the Job is not deleted: %+v", plan)
			}
			s.Now = s.Now.Add(backOff(1))
			s.begins(epoch, 2)
			if plan = s.step(); plan.Record != nil {
				t.Errorf("the next attempt is ended, too: %+v", plan.Record)
			}
		})
	}
}

// TestAttemptThatTheControllerEnds: such an attempt says nothing of whether a backup can be stored. So Succeeded, and
// BackupHealthy of the cluster, stay as they were until the next attempt has ended.
func TestAttemptThatTheControllerEnds(t *testing.T) {
	t.Parallel()
	const every = 60 * time.Second
	for name, test := range map[string]struct {
		before    []Outcome
		succeeded metav1.ConditionStatus
		reason    string
		healthy   string
	}{
		"the first":       {nil, metav1.ConditionUnknown, ReasonNotYet, ReasonNoBackupYet},
		"after a success": {[]Outcome{good(1)}, metav1.ConditionTrue, ReasonStored, ReasonBackupsCurrent},
		"after a failure": {[]Outcome{good(1), bad()}, metav1.ConditionFalse, bad().Reason, ReasonBackupFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: int64(every / time.Second), MaxBackups: 1})
			due := epoch
			for _, o := range test.before {
				s.Now = due
				s.begins(due, 1)
				s.ends(time.Second, o)
				s.step()
				due = due.Add(every)
			}
			is := func() {
				t.Helper()
				s.condition(ConditionSucceeded, test.succeeded, test.reason)
				o := ClusterObserved{Now: s.Now, Cluster: newCluster(nil), Backups: []*v1beta2.EtcdBackup{s.Backup}}
				if c := DecideCluster(o).Healthy; c == nil || c.Reason != test.healthy {
					t.Errorf("BackupHealthy is %+v, want %s", c, test.healthy)
				}
			}
			s.Now = due
			s.begins(due, 1)
			s.Held = []string{good(9).URI}
			if plan := s.step(); plan.Record == nil || plan.Record.Reason != ReasonRestoreBegan {
				t.Fatalf("the Job is not ended: %+v", plan)
			}
			s.is(v1beta2.BackupPhaseFailed)
			is()
			s.step()
			s.Now = s.Now.Add(backOff(1))
			s.begins(due, 2)
			is()
			s.ends(time.Second, good(2))
			s.condition(ConditionSucceeded, metav1.ConditionTrue, ReasonStored)
		})
	}
}

// TestHistoryAfterAClockThatWasAhead: the record of that time is not the newest for as long as the clock was ahead, so
// the history goes on as the store does. The agent deletes nothing that was due later, so its record stays until then.
func TestHistoryAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 2})
	const year = 365 * 24 * time.Hour
	for revision, now := range []time.Time{epoch, epoch.Add(time.Minute), epoch.Add(year), epoch.Add(3 * time.Minute), epoch.Add(4 * time.Minute), epoch.Add(5 * time.Minute)} {
		attempt, made := Attempt{ScheduledTime: now, Number: 1}, good(int64(revision))
		made.Start, made.Completion, s.Now = now, now, now
		s.Jobs = []Job{{Job: job.Job{Name: "j", Created: now}, Attempt: attempt, Pruner: pruner(s.retained(), nil)}}
		s.Backup.Status = Status(s.Observed, Plan{Attempt: attempt, Record: &made})
	}
	var got []int64
	for _, r := range s.Backup.Status.History {
		got = append(got, r.Revision)
	}
	if !slices.Equal(got, []int64{5, 4, 2}) {
		t.Errorf("the history is of the revisions %v, want 5, 4 and that of the clock that was ahead, 2", got)
	}
}
