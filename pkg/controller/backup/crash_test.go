// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// How much the caches show: everything at once, everything after a while, or, in a new
// life, what existed at its start.
const (
	fresh   = "fresh"
	lagging = "lagging"
	ancient = "ancient"
)

// life plays the same story again: a periodic backup whose second scheduled time fails
// once. It ends when everything that was due is recorded and every Job is deleted.
func (w *world) life(caches string) {
	b := key(w.backup("b"))
	w.sync()
	oldest := w.cached
	for round := range 60 {
		if caches == fresh || round%3 == 2 {
			w.sync()
		}
		after, err := w.reconcile(b)
		if errors.Is(err, errCrash) {
			w.crashAt = 0
			if caches == ancient {
				w.cached = oldest
			}
			w.restart()
			if _, err := w.reconcile(b); err != nil {
				w.Fatal(err)
			}
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		for _, job := range w.open() {
			class := agent.ErrorClass("")
			if w.runs == 1 && job.Annotations["etcd.database.coreos.com/backup-attempt"] == "1" {
				class = agent.ClassStore
			}
			w.run(job, class)
		}
		if after > 0 {
			w.clock.SetTime(w.clock.Now().Add(min(after, 60*time.Second)))
		}
	}
}

// TestCrashAtEveryCall ends the controller before and after each of its calls, with caches
// that are fresh, that lag and that are old. Every backup that agents have made is in the
// status exactly once, no backup is made twice, and no Job is left.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	policy := func() *v1beta2.BackupPolicy { return &v1beta2.BackupPolicy{BackupIntervalInSecond: 600} }
	total := 0
	for _, caches := range []string{fresh, lagging, ancient} {
		calls := 1
		for crashAt := 0; crashAt <= calls; crashAt++ {
			for _, after := range []bool{false, true} {
				w := newWorld(t)
				w.addCluster("c", 3)
				w.addBackup("b", "c", policy())
				w.crashAt, w.after = crashAt, after
				w.life(caches)
				w.check(fmt.Sprintf("caches %s, crash at call %d, after it %t", caches, crashAt, after))
				calls = max(calls, w.calls)
				total++
			}
		}
	}
	if total < 60 {
		t.Errorf("only %d stories", total)
	}
	t.Logf("%d stories", total)
}

// TestBackupAfterAClockThatWasAhead: a status of a time that is yet to come costs no backup its Job.
func TestBackupAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 3)
	b := w.addBackup("b", "c", &v1beta2.BackupPolicy{BackupIntervalInSecond: 600})
	future := metav1.NewTime(epoch.AddDate(0, 1, 0))
	b.Status = v1beta2.BackupStatus{
		Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, Attempts: 1, LastScheduleTime: &future, StartTime: &future, CompletionTime: &future, LastSuccessDate: future,
	}
	made := map[types.UID]*batchv1.Job{}
	for range 6 {
		w.sync()
		if _, err := w.reconcile(key(b)); err != nil {
			t.Fatal(err)
		}
		for _, j := range w.open() {
			made[j.UID] = j
		}
	}
	if len(made) != 1 || len(w.open()) != 1 {
		t.Fatalf("%d Jobs were made, %d run", len(made), len(w.open()))
	}
	w.run(w.open()[0], "")
	w.sync()
	if _, err := w.reconcile(key(b)); err != nil {
		t.Fatal(err)
	}
	if s := w.backup("b").Status; s.Phase != v1beta2.BackupPhaseSucceeded || !s.LastSuccessDate.Time.Equal(w.clock.Now()) {
		t.Errorf("status %+v", s)
	}
}

func (w *world) check(story string) {
	w.Helper()
	good := map[string]int{}
	status := &w.backup("b").Status
	for _, r := range status.History {
		if r.Succeeded {
			good[r.URI]++
		}
	}
	if w.runs < 3 {
		w.Fatalf("%s: only %d backups were made: %+v", story, w.runs, status)
	}
	for id, times := range w.stored {
		if times != 1 {
			w.Errorf("%s: backup %s was made %d times", story, id, times)
		}
		if good["s3://bucket/"+id] != 1 {
			w.Errorf("%s: backup %s is %d times in the history: %+v", story, id, good["s3://bucket/"+id], status.History)
		}
	}
	if len(good) != len(w.stored) {
		w.Errorf("%s: the history has %d backups, the store %d", story, len(good), len(w.stored))
	}
	if len(w.live.jobs) > 1 || len(w.live.pods) > 4 {
		w.Errorf("%s: %d Jobs and %d pods are left", story, len(w.live.jobs), len(w.live.pods))
	}
}
