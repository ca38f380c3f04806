// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	clustersAtOnce = 20
	backupsOfEach  = 10
	period         = 15 * time.Minute
	tick           = time.Second
)

// running is a Job with the time at which its agent ends.
type running struct {
	job  types.NamespacedName
	ends time.Time
}

// fleet is many EtcdBackups under one controller, with a queue as the loop has it: what
// an event is about is looked at next, everything else when it asked to be.
type fleet struct {
	*world
	due     map[types.NamespacedName]time.Time
	running []running
	dice    *rand.Rand

	lateness []time.Duration
	made     map[string]map[string]bool
	most     int
}

// TestTwoHundredPeriodicBackups runs 200 periodic backups of 20 clusters for two hours
// of a clock that is set forward second by second. Every fourth is due at the same
// minute as its neighbours; transfers take 5 to 25 s; one backup of each cluster always
// fails. What is checked: every other backup is made at each of its scheduled times, in its own period;
// never more than the bound run at once, and never two of one cluster.
//
// The queue, the caches and the Jobs are played by the test; what decides and writes is
// the code that the controller runs.
func TestTwoHundredPeriodicBackups(t *testing.T) {
	t.Parallel()
	f := &fleet{world: newWorld(t), due: map[types.NamespacedName]time.Time{}, dice: rand.New(rand.NewPCG(1, 2)), made: map[string]map[string]bool{}}
	f.maxRunning = 10
	f.restart()
	for c := range clustersAtOnce {
		name := fmt.Sprintf("c%02d", c)
		f.addCluster(name, 3)
		for n := range backupsOfEach {
			schedule := fmt.Sprintf("%d/15 * * * *", (n/4)*5)
			b := f.addBackup(fmt.Sprintf("%s-%d", name, n), name, &v1beta2.BackupPolicy{Schedule: schedule, MaxBackups: 3})
			f.due[key(b)] = f.clock.Now()
		}
	}
	f.sync()
	for end := epoch.Add(simulated()); f.clock.Now().Before(end); f.clock.SetTime(f.clock.Now().Add(tick)) {
		f.endJobs()
		f.reconcileDue()
	}
	f.verdict()
}

// simulated is how long the fleet is watched.
func simulated() time.Duration {
	if raceEnabled {
		return 30 * time.Minute
	}
	return 2 * time.Hour
}

func isBroken(b string) bool { return b[len(b)-2:] == "-9" }

func (f *fleet) endJobs() {
	f.running = slices.DeleteFunc(f.running, func(r running) bool {
		if f.clock.Now().Before(r.ends) {
			return false
		}
		job, name := f.live.jobs[r.job], ""
		name = job.Annotations[resources.AnnotationBackup]
		class := agent.ErrorClass("")
		if isBroken(name) {
			class = agent.ClassStoreDenied
		}
		f.run(job, class)
		f.due[types.NamespacedName{Namespace: "ns", Name: name}] = f.clock.Now()
		return true
	})
	f.sync()
}

// reconcileDue empties the queue as workers do, one key after the other.
func (f *fleet) reconcileDue() {
	for range 100 {
		var keys []types.NamespacedName
		for k, at := range f.due {
			if !at.After(f.clock.Now()) {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 {
			return
		}
		slices.SortFunc(keys, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
		f.dice.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, k := range keys {
			f.reconcileOne(k)
		}
	}
	f.Fatal("the queue does not empty")
}

func (f *fleet) reconcileOne(k types.NamespacedName) {
	delete(f.due, k)
	before := f.live.rv
	after, err := f.reconcile(k)
	if err != nil {
		f.Fatal(err)
	}
	if after > 0 {
		f.due[k] = f.clock.Now().Add(after)
	}
	if f.live.rv != before { // its own writes are events
		f.sync()
		f.due[k] = f.clock.Now()
		f.startJobs()
	}
	for woken := range f.woken {
		f.due[woken] = f.clock.Now()
	}
	clear(f.woken)
}

// startJobs takes notice of Jobs that were made.
func (f *fleet) startJobs() {
	for k, job := range f.live.jobs {
		known := slices.ContainsFunc(f.running, func(r running) bool { return r.job == k })
		if known || len(job.Status.Conditions) > 0 {
			continue
		}
		f.running = append(f.running, running{job: k, ends: f.clock.Now().Add(time.Duration(5+f.dice.IntN(21)) * time.Second)})
		f.began(job)
		f.podOf(job, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		f.sync()
	}
	sources := map[string]int{}
	for _, r := range f.running {
		source := f.live.jobs[r.job].Annotations[resources.AnnotationSource]
		if sources[source]++; sources[source] > 1 {
			f.Fatalf("%d backups of %s run at once", sources[source], source)
		}
	}
	if f.most = max(f.most, len(f.running)); f.most > f.maxRunning {
		f.Fatalf("%d backups run at once", f.most)
	}
}

func (f *fleet) began(job *batchv1.Job) {
	name, scheduled := job.Annotations[resources.AnnotationBackup], job.Annotations[resources.AnnotationScheduledTime]
	if isBroken(name) {
		return
	}
	at, err := time.Parse(time.RFC3339, scheduled)
	if err != nil {
		f.Fatal(err)
	}
	f.lateness = append(f.lateness, f.clock.Since(at))
	if f.made[name] == nil {
		f.made[name] = map[string]bool{}
	}
	if f.made[name][scheduled] {
		f.Fatalf("%s: the backup of %s is made twice", name, scheduled)
	}
	f.made[name][scheduled] = true
}

func (f *fleet) verdict() {
	f.Helper()
	for name := range f.live.backups {
		if isBroken(name.Name) {
			continue
		}
		// The backups of the last period may still be waiting.
		if got, want := len(f.made[name.Name]), int(simulated()/period)-1; got < want {
			f.Errorf("%s: %d backups were made, want at least %d", name.Name, got, want)
		}
	}
	slices.Sort(f.lateness)
	n := len(f.lateness)
	f.Logf("%d backups in %s of simulated time, at most %d at once; late by %s (median), %s (99 %%), %s (most)",
		n, simulated(), f.most, f.lateness[n/2], f.lateness[n*99/100], f.lateness[n-1])
	if f.lateness[n-1] >= period {
		f.Errorf("a backup was late by %s", f.lateness[n-1])
	}
}
