// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// look reconciles an EtcdBackup once.
func (w *world) look(name string) {
	w.Helper()
	if _, err := w.reconcile(key(w.backup(name))); err != nil {
		w.Fatal(err)
	}
}

// TestMembersThatAreAsked: the request in a Job names the running voters of its cluster,
// and no other members.
func TestMembersThatAreAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 6)
	w.addBackup("b", "c", nil)
	for k, edit := range map[string]func(*corev1.Pod){
		"c-1": func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"c-2": func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) },
		"c-3": func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
		"c-4": func(p *corev1.Pod) { p.Status.PodIP = "" },
		"c-5": func(p *corev1.Pod) { p.Labels[resources.LabelRole] = resources.RoleLearner },
	} {
		for at, p := range w.live.pods {
			if at.Name == k {
				p = p.DeepCopy()
				edit(p)
				w.live.pods[at] = p
			}
		}
	}
	w.sync()
	w.look("b")
	if jobs := w.open(); len(jobs) != 1 {
		t.Fatalf("%d Jobs", len(jobs))
	}
	var names []string
	for _, e := range w.request(w.open()[0]).Etcd.Endpoints {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"c-0"}) {
		t.Errorf("asked are %v", names)
	}
}

// TestPlacesAreTakenAtOnce: a Job that the cache does not show yet holds its place, that of
// its cluster and that among all.
func TestPlacesAreTakenAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		second string
		most   int
	}{"of one cluster": {"a", 3}, "of all": {"b", 1}} {
		w := newWorld(t)
		w.maxRunning = test.most
		w.restart()
		w.addCluster("a", 1)
		w.addCluster("b", 1)
		w.addBackup("1", "a", nil)
		w.addBackup("2", test.second, nil)
		w.sync()
		w.look("1")
		after, err := w.reconcile(key(w.backup("2")))
		if n := len(w.open()); err != nil || n != 1 || after == 0 {
			t.Errorf("%s: %d Jobs, looks again after %s, %v", name, n, after, err)
		}
	}
}

// TestLongestDueFirst: the backup that is due longest starts first, whatever its name. A
// rejected backup keeps no place.
func TestLongestDueFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.maxRunning = 1
	w.restart()
	for _, name := range []string{"zfirst", "z", "y"} {
		w.addCluster(name, 1)
		w.addBackup(name, name, nil)
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.sync()
	w.full = true
	w.look("zfirst")
	w.full = false
	w.look("z")
	if n := len(w.open()); n != 1 {
		t.Fatalf("%d Jobs after the first Job was rejected", n)
	}
	w.sync()
	w.look("y")
	w.look("zfirst")
	w.run(w.open()[0], "")
	for range 2 {
		w.sync()
		w.look("z")
	}
	w.look("y") // y looks before a backup that is due longer
	if n := len(w.open()); n != 0 {
		t.Errorf("%d Jobs: the one that is due longest waits", n)
	}
	w.look("zfirst")
	if got := w.moving(); got != "zfirst" {
		t.Errorf("%q goes first", got)
	}
}

// TestJobThatGoesHoldsNoPlace, nor one that has ended.
func TestJobThatGoesHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"it goes": func(w *world) {
			for k, j := range w.live.jobs {
				j = j.DeepCopy()
				j.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
				w.live.jobs[k] = j
			}
		},
		"it has ended": func(w *world) { w.run(w.open()[0], "") },
	} {
		w := newWorld(t)
		w.addCluster("a", 1)
		w.addBackup("1", "a", nil)
		w.addBackup("2", "a", nil)
		w.sync()
		w.look("1")
		before := len(w.live.jobs)
		end(w)
		w.restart() // a new process knows only what the cache shows
		w.sync()
		w.look("2")
		if len(w.live.jobs) != before+1 {
			t.Errorf("%s: the next one waits for %q", name, w.progressing("2"))
		}
	}
}

// TestJobNotOwned: what has the name of the Job is not taken for it.
func TestJobNotOwned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 1)
	w.addBackup("b", "c", nil)
	w.sync()
	w.look("b")
	for k, j := range w.live.jobs {
		j = j.DeepCopy()
		j.OwnerReferences[0].UID = "other"
		w.live.jobs[k] = j
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute)) // the Job does not hold the place permanently
	w.restart()
	w.sync()
	for range 3 {
		if _, err := w.reconcile(key(w.backup("b"))); err == nil {
			t.Error("a Job that is not owned is accepted")
		}
		w.sync()
	}
	if s := w.backup("b").Status; s.Phase == v1beta2.BackupPhaseRunning || len(w.live.jobs) != 1 {
		t.Errorf("%d Jobs, %+v", len(w.live.jobs), s)
	}
}

// TestOtherFinalizersStay when that of the original operator goes.
func TestOtherFinalizersStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.addBackup("b", "c", nil)
	b.Finalizers = []string{"a/b", backup.AncestorFinalizer, "c/d"}
	b.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	w.sync()
	w.look("b")
	if got := w.backup("b").Finalizers; !slices.Equal(got, []string{"a/b", "c/d"}) {
		t.Errorf("left are %v", got)
	}
}

// TestLastBackupIsOfTheCluster, and what the cache does not show yet is no error.
func TestLastBackupIsOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.addCluster("c", 1)
	cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{
		StorageType: v1beta2.BackupStorageTypeS3, Schedule: "@daily",
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "b/k", AWSSecret: "aws"}},
	}
	c := key(cluster)
	for name, of := range map[string]string{"mine": "c", "other": "d"} {
		b := w.addBackup(name, of, nil)
		at := time.Minute
		if of != "c" {
			at = time.Hour
		}
		b.Status = v1beta2.BackupStatus{Succeeded: true, Phase: v1beta2.BackupPhaseSucceeded, LastSuccessDate: metav1.NewTime(epoch.Add(at))}
	}
	w.sync()
	for range 3 {
		w.restart()
		if _, err := w.clusters.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if last := w.live.clusters[c].Status.LastBackup; last == nil || last.Name != "mine" {
		t.Errorf("the last backup is %+v", last)
	}
	if w.backup("c-scheduled") == nil || len(w.live.backups) != 3 {
		t.Errorf("there are %d backups", len(w.live.backups))
	}
	w.sync()
	cluster = w.live.clusters[c].DeepCopy()
	cluster.Spec.Backup.Schedule = "@hourly"
	w.version(cluster)
	w.live.clusters[c] = cluster
	w.cached.clusters = clone(w.live.clusters)
	w.cached.rv = w.live.rv
	for range 2 { // the second time the EtcdBackup was recreated, which the cache does not show
		w.restart()
		if _, err := w.clusters.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.backup("c-scheduled").Spec.BackupPolicy.Schedule; got != "@hourly" {
		t.Errorf("it is made %s", got)
	}
}

// TestJobThatTheCacheLost: the controller looks for a running attempt in the live API before
// the attempt counts as lost.
func TestJobThatTheCacheLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("c", 1)
	w.addBackup("b", "c", nil)
	for range 2 {
		w.sync()
		w.look("b")
	}
	before := w.backup("b").Status
	w.restart()
	w.sync()
	clear(w.cached.jobs)
	w.look("b")
	if after := w.backup("b").Status; before.Phase != v1beta2.BackupPhaseRunning || after.Phase != v1beta2.BackupPhaseRunning || len(w.live.jobs) != 1 {
		t.Errorf("%s became %s, %d Jobs", before.Phase, after.Phase, len(w.live.jobs))
	}
}

// TestBackupsOfOtherControllers: the cluster decides which controller is responsible. The
// backup decides only while there is no cluster.
func TestBackupsOfOtherControllers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cluster, backup bool
		made            int
	}{
		"both": {true, true, 1}, "the cluster": {true, false, 1}, "the backup": {false, true, 0}, "neither": {false, false, 0},
	} {
		w := newWorld(t)
		c := w.addCluster("c", 1)
		w.addBackup("b", "c", nil)
		w.sync()
		before := w.live.rv
		responsible := func(o metav1.Object) bool {
			if _, ok := o.(*v1beta2.EtcdCluster); ok {
				return test.cluster
			}
			return test.backup
		}
		w.reconciler.Responsible, w.clusters.Responsible = responsible, responsible
		w.look("b")
		if _, err := w.clusters.Reconcile(t.Context(), key(c)); err != nil {
			t.Fatal(err)
		}
		if n := len(w.open()); n != test.made || test.made == 0 && w.live.rv != before {
			t.Errorf("%s: %d Jobs, %d writes", name, n, w.live.rv-before)
		}
	}
}
