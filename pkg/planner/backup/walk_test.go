// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// walk drives one EtcdBackup through a random life: Jobs that succeed, fail, vanish and
// never start; a clock that jumps; a status write that is lost; a user who suspends and
// edits.
type walk struct {
	t    *testing.T
	o    Observed
	dice *rand.Rand
	// ahead is how far the clock is wrong.
	ahead time.Duration
	log   []string

	made      map[string]bool
	ended     map[string]Outcome
	recorded  map[string]int
	succeeded map[int64]int
}

func name(a Attempt) string { return fmt.Sprintf("%d/%d", a.ScheduledTime.Unix(), a.Number) }

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// step is one reconcile.
func (w *walk) step() {
	plan := Decide(w.o)
	status := Status(w.o, plan)
	w.log = append(w.log, fmt.Sprintf("%s %s %s attempts %d succeeded %t: %q %s record %t delete %v again %s",
		w.o.Now.Format(time.DateTime), w.o.Backup.Status.Phase, w.o.Backup.Status.LastScheduleTime, w.o.Backup.Status.Attempts,
		w.o.Backup.Status.Succeeded, plan.Action, name(plan.Attempt), plan.Record != nil, plan.Delete, plan.RequeueAfter))
	if plan.Record != nil && (plan.Action != ActionNone || len(plan.Delete) > 0) {
		w.fail("something is done before a result is written down")
	}
	if plan.Action == ActionSave {
		w.begin(plan.Attempt)
		return // as in the controller, only the next look writes the status and deletes Jobs
	}
	for _, deleted := range plan.Delete {
		w.deleted(deleted)
	}
	if w.dice.IntN(10) == 0 {
		w.log = append(w.log, "the status was not written")
		return
	}
	if plan.Record != nil {
		w.record(plan)
	}
	w.o.Backup.Status = status
	if plan.Record == nil && plan.Action == ActionNone && len(plan.Delete) == 0 {
		w.settles()
		if plan.RequeueAfter <= 0 && w.isUnfinished() {
			w.fail("the planner does not look again at %+v", status)
		}
	}
}

// settles checks that the same observation gives the same status again. The second status
// may differ if the clock was set back: the next scheduled time follows the handled one.
func (w *walk) settles() {
	kept := w.o.Backup.Status
	defer func() { w.o.Backup.Status = kept }()
	w.o.Backup.Status = Status(w.o, Decide(w.o))
	if again := Status(w.o, Decide(w.o)); !equality.Semantic.DeepEqual(again, w.o.Backup.Status) {
		w.fail("the status does not settle:\n%+v\n%+v", w.o.Backup.Status, again)
	}
	if s := w.o.Backup.Status; w.o.isSuspended() && s.CompletionTime != nil && s.Phase == v1beta2.BackupPhasePending {
		w.fail("suspended after an attempt ended, it is pending: %+v", s)
	}
}

func (w *walk) isUnfinished() bool {
	s := &w.o.Backup.Status
	return !w.o.isSuspended() && (s.Phase == v1beta2.BackupPhaseRunning || s.Phase == v1beta2.BackupPhasePending ||
		(s.Phase == v1beta2.BackupPhaseFailed && s.Attempts < maxAttempts) || w.o.isPeriodic())
}

func (w *walk) begin(a Attempt) {
	if w.o.isSuspended() || w.o.Source != nil {
		w.fail("begun although it is suspended, or nothing can be backed up")
	}
	for i := range w.o.Jobs {
		if j := &w.o.Jobs[i]; j.Outcome == nil && !w.o.isRecorded(j.Attempt) {
			w.fail("begun while %s runs", j.Name)
		}
	}
	if w.o.isRecorded(a) {
		w.fail("attempt %s counts as recorded before it has begun: its Job would be deleted while it runs", name(a))
	}
	if w.made[name(a)] {
		w.fail("attempt %s is made twice", name(a))
	}
	if w.succeeded[a.ScheduledTime.Unix()] > 0 {
		w.fail("scheduled %s has a backup already", a.ScheduledTime)
	}
	if a.Number < 1 || a.Number > maxAttempts {
		w.fail("attempt %d", a.Number)
	}
	w.made[name(a)] = true
	w.o.Jobs = append(w.o.Jobs, Job{Job: job.Job{Name: name(a), Created: w.o.Now}, Attempt: a, Pruner: pruner(w.o.Backup.Spec.BackupPolicy, w.o.Held)})
}

func (w *walk) deleted(job string) {
	for i := range w.o.Jobs {
		if w.o.Jobs[i].Name != job {
			continue
		}
		if w.recorded[job] == 0 {
			w.fail("Job %s is deleted before its result was written down", job)
		}
		w.o.Jobs = append(w.o.Jobs[:i:i], w.o.Jobs[i+1:]...)
		w.forget()
		return
	}
	w.fail("Job %s is deleted and is not there", job)
}

func (w *walk) record(plan Plan) {
	job := name(plan.Attempt)
	w.recorded[job]++
	if w.recorded[job] > 1 {
		w.fail("the result of %s is written down twice", job)
	}
	if truth, ended := w.ended[job]; ended && truth.Succeeded != plan.Record.Succeeded {
		w.fail("the result of %s is %+v and not %+v", job, plan.Record, truth)
	}
	if plan.Record.Succeeded {
		w.succeeded[plan.Attempt.ScheduledTime.Unix()]++
	}
}

// forget drops what was done for scheduled times that the clock has yet to reach: it was ahead, and
// they come again.
func (w *walk) forget() {
	for job := range w.made {
		scheduled, number := int64(0), int32(0)
		if _, err := fmt.Sscanf(job, "%d/%d", &scheduled, &number); err != nil {
			w.t.Fatal(err)
		}
		at := time.Unix(scheduled, 0)
		if !resources.IsFuture(at, w.o.Now) || w.o.job(Attempt{ScheduledTime: at, Number: number}) != nil {
			continue
		}
		delete(w.made, job)
		delete(w.ended, job)
		delete(w.recorded, job)
		delete(w.succeeded, scheduled)
	}
}

// happen lets something happen in the world.
func (w *walk) happen() {
	switch w.dice.IntN(12) {
	case 0, 1, 2, 3, 4:
		w.endJob()
	case 5:
		for i := range w.o.Jobs { // a Job is deleted by hand
			if w.dice.IntN(8) == 0 && w.o.Jobs[i].Outcome == nil {
				w.log = append(w.log, "Job "+w.o.Jobs[i].Name+" vanishes")
				if !w.o.Jobs[i].Attempt.isSame(w.o.current()) {
					// No status names the Job yet: it is created again, with the same name.
					delete(w.made, w.o.Jobs[i].Name)
				}
				w.o.Jobs = append(w.o.Jobs[:i:i], w.o.Jobs[i+1:]...)
				break
			}
		}
	case 6:
		w.o.Source = nil
		if w.dice.IntN(3) == 0 {
			w.o.Source = &Wait{Reason: "NoMemberRuns", Message: "none runs"}
		}
	case 7:
		if w.o.Backup.Spec.BackupPolicy != nil && w.dice.IntN(3) == 0 {
			w.o.Backup.Spec.BackupPolicy.Suspend = !w.o.Backup.Spec.BackupPolicy.Suspend
			w.o.Backup.Generation++
		}
	case 8:
		w.o.Held = nil
		if w.dice.IntN(3) == 0 { // a restore begins, perhaps while a Job runs that does not know of it
			w.o.Held = []string{good(1).URI}
		}
		if w.dice.IntN(10) == 0 {
			w.o.Backup.Generation++
		}
	}
	steps := []time.Duration{time.Second, 9 * time.Second, time.Minute, 11 * time.Minute, 2 * time.Hour, 30 * time.Hour}
	w.o.Now = w.o.Now.Add(steps[w.dice.IntN(len(steps))])
	switch {
	case w.ahead > 0 && w.dice.IntN(3) == 0:
		w.o.Now = w.o.Now.Add(-w.ahead)
		w.ahead = 0
	case w.ahead == 0 && w.dice.IntN(100) == 0:
		w.ahead = time.Duration(1+w.dice.IntN(400*24)) * time.Hour
		w.o.Now = w.o.Now.Add(w.ahead)
	case w.dice.IntN(60) == 0:
		w.o.Now = w.o.Now.Add(-time.Duration(w.dice.IntN(7200)) * time.Second)
	}
	w.forget()
}

func (w *walk) endJob() {
	for i := range w.o.Jobs {
		j := &w.o.Jobs[i]
		if j.Outcome != nil || w.recorded[j.Name] > 0 {
			continue
		}
		j.Started = true
		if w.dice.IntN(3) == 0 {
			return
		}
		o := good(int64(len(w.ended) + 1))
		if w.dice.IntN(2) == 0 {
			o = bad()
		}
		o.Start, o.Completion = j.Created, w.o.Now
		if o.Completion.Before(o.Start) {
			o.Completion = o.Start
		}
		j.Outcome, w.ended[j.Name] = &o, o
		return
	}
}

// TestLives is deterministic: a seed that fails can be tried alone.
func TestLives(t *testing.T) {
	t.Parallel()
	policies := []func() *v1beta2.BackupPolicy{
		func() *v1beta2.BackupPolicy { return nil },
		func() *v1beta2.BackupPolicy { return &v1beta2.BackupPolicy{BackupIntervalInSecond: 600, MaxBackups: 3} },
		func() *v1beta2.BackupPolicy { return cronPolicy("30 2 * * *", "Europe/Berlin") },
		func() *v1beta2.BackupPolicy { return cronPolicy("*/5 * * * *", "UTC") },
	}
	good, steps := 0, 0
	lives := uint64(200)
	if raceEnabled {
		lives = 20
	}
	for seed := range lives {
		w := &walk{
			t: t, dice: rand.New(rand.NewPCG(seed, 7)),
			o:    Observed{Now: epoch, Backup: newBackup(policies[seed%uint64(len(policies))]())},
			made: map[string]bool{}, ended: map[string]Outcome{}, recorded: map[string]int{}, succeeded: map[int64]int{},
			log: []string{fmt.Sprintf("seed %d", seed)},
		}
		for range 150 {
			w.step()
			w.happen()
			steps++
		}
		// Nothing disturbs it any more: what is due is made.
		w.o.Source = nil
		w.o.Now = w.o.Now.Add(-w.ahead)
		w.forget()
		if p := w.o.Backup.Spec.BackupPolicy; p != nil {
			p.Suspend = false
		}
		w.o.Backup.Generation++
		for range 60 {
			w.step()
			w.calm()
		}
		if len(w.succeeded) == 0 && !w.o.Backup.Status.Succeeded { // forget drops a backup of a scheduled time that is yet to come
			w.fail("not one backup was made")
		}
		good += len(w.succeeded)
	}
	t.Logf("%d lives, %d disturbed steps, %d good backups", lives, steps, good)
}

// calm lets every Job succeed and time pass.
func (w *walk) calm() {
	for i := range w.o.Jobs {
		if j := &w.o.Jobs[i]; j.Outcome == nil && w.recorded[j.Name] == 0 {
			o := good(int64(len(w.ended) + 1))
			o.Start, o.Completion = j.Created, w.o.Now
			j.Started, j.Outcome, w.ended[j.Name] = true, &o, o
		}
	}
	w.o.Now = w.o.Now.Add(10 * time.Minute)
}
