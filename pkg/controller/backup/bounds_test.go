// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// settle reconciles every EtcdBackup until nothing changes any more.
func (w *world) settle() {
	w.Helper()
	for range 20 {
		before := w.live.rv
		for _, name := range w.names() {
			w.sync()
			if _, err := w.reconcile(key(w.backup(name))); err != nil {
				w.Fatal(err)
			}
		}
		if w.live.rv == before {
			return
		}
	}
	w.Fatal("it does not settle")
}

func (w *world) names() []string {
	var names []string
	for k := range w.live.backups {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

// moving lets the pods of all open Jobs start and returns the backups that they are of.
func (w *world) moving() string {
	var names []string
	for _, job := range w.open() {
		w.podOf(job, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		names = append(names, job.Annotations["etcd.database.coreos.com/backup"])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (w *world) end(name string) {
	for _, job := range w.open() {
		if job.Annotations["etcd.database.coreos.com/backup"] == name {
			w.run(job, "")
		}
	}
	w.settle()
}

func (w *world) progressing(name string) string {
	c := meta.FindStatusCondition(w.backup(name).Status.Conditions, backup.ConditionProgressing)
	if c == nil {
		return ""
	}
	return c.Reason
}

// TestBounds runs eight backups of four clusters that are due together, with room for
// three.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []string{"a", "b", "c", "d"} {
		w.addCluster(c, 1)
		for _, n := range []string{"1", "2"} {
			w.addBackup(c+n, c, nil)
			w.clock.SetTime(w.clock.Now().Add(time.Second)) // the first backup is due first
		}
	}
	w.settle()
	steps := []struct{ ends, want string }{{"", "a1 b1 c1"}, {"b1", "a1 b2 c1"}, {"a1", "a2 b2 c1"}, {"c1", "a2 b2 c2"}, {"a2", "b2 c2 d1"}, {"b2", "c2 d1"}, {"d1", "c2 d2"}}
	for _, step := range steps {
		w.end(step.ends)
		w.settle()
		if got := w.moving(); got != step.want {
			t.Fatalf("after %q: %s run, want %s", step.ends, got, step.want)
		}
		if step.ends == "" && (w.progressing("a2") != "AnotherBackupRuns" || w.progressing("d1") != "TooManyBackups") {
			t.Errorf("a2 waits for %q, d1 for %q", w.progressing("a2"), w.progressing("d1"))
		}
	}
	if w.backup("d2").Status.Phase != v1beta2.BackupPhaseRunning || w.backup("a1").Status.Phase != v1beta2.BackupPhaseSucceeded {
		t.Error("phases are wrong")
	}
}

// TestLostNodeHoldsNoPlace: the pod of a Job is on a lost node. Backups of the same cluster and of others go on.
func TestLostNodeHoldsNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.maxRunning = 1
	w.restart()
	w.addCluster("a", 1)
	w.addBackup("a1", "a", nil)
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.settle()
	if got := w.moving(); got != "a1" {
		t.Fatalf("%s runs", got)
	}
	w.addBackup("a2", "a", nil)
	for _, pod := range w.live.pods {
		if pod.Labels[resources.LabelApp] == resources.BackupAppName {
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(w.clock.Now()))
			w.version(pod)
		}
	}
	w.settle()
	if got := w.progressing("a2"); got != "AnotherBackupRuns" {
		t.Fatalf("a2 waits for %q while the pod of a1 may end", got)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.sync()
	// The Job of a1 is not deleted yet.
	if _, err := w.reconcile(key(w.backup("a2"))); err != nil || len(w.open()) != 2 {
		t.Errorf("a2 waits for a Job on a lost node: %v, %+v", err, w.backup("a2").Status)
	}
	w.settle()
	if r := w.backup("a1").Status; r.Attempts < 1 || r.Phase == v1beta2.BackupPhaseRunning {
		t.Errorf("a1 waits for its own Job: %+v", r)
	}
}

// TestPodThatDoesNotStartHoldsNoPlace runs a backup whose pod never starts, because its PVC
// does not exist, and one whose second container has no image.
func TestPodThatDoesNotStartHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*world, *batchv1.Job){
		"no pod starts":                     func(*world, *batchv1.Job) {},
		"the second container has no image": hasNoSecondImage,
	} {
		w := newWorld(t)
		w.addCluster("a", 1)
		w.addBackup("a1", "a", nil)
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		w.addBackup("a2", "a", nil)
		w.settle()
		if n := len(w.open()); n != 1 {
			t.Fatalf("%s: %d Jobs", name, n)
		}
		prepare(w, w.open()[0])
		w.clock.SetTime(w.clock.Now().Add(20 * time.Second))
		w.settle()
		if n := len(w.open()); n != 2 {
			t.Fatalf("%s: %d Jobs after the first did not start", name, n)
		}
		if got := w.progressing("a1"); name != "no pod starts" && got != "PodNotStarted" {
			t.Errorf("%s: a1 waits for %q", name, got)
		}
	}
}

// hasNoSecondImage gives a Job a container that has ended, before one that has no image.
func hasNoSecondImage(w *world, job *batchv1.Job) {
	first := corev1.Container{Name: "first"}
	job.Spec.Template.Spec.InitContainers = []corev1.Container{first}
	w.version(job)
	pod := w.podOf(job, corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "etcd:v3.6.99"}})
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: first.Name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(w.clock.Now())},
	}}}
}

// TestEndWakesWaitingBackups checks that the end of a backup puts the next one on the queue.
func TestEndWakesWaitingBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addCluster("a", 1)
	w.addBackup("a1", "a", nil)
	w.addBackup("a2", "a", nil)
	w.settle()
	w.run(w.open()[0], "")
	w.sync()
	clear(w.woken)
	if _, err := w.reconcile(key(w.backup("a1"))); err != nil {
		t.Fatal(err)
	}
	if !w.woken[key(w.backup("a2"))] {
		t.Errorf("woken: %v", w.woken)
	}
}

// TestForgedJobHoldsNoPlace: a user with the right to create Jobs may give them the labels of a backup.
func TestForgedJobHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for name, owners := range map[string][]metav1.OwnerReference{
		"without an owner":            nil,
		"of an unknown EtcdBackup":    {{Kind: "EtcdBackup", Name: "none", UID: "uid-none", Controller: ptr.To(true)}},
		"of another UID":              {{Kind: "EtcdBackup", Name: "a1", UID: "other", Controller: ptr.To(true)}},
		"owned and not controlled by": {{Kind: "EtcdBackup", Name: "a1", UID: "uid-a1"}},
	} {
		w := newWorld(t)
		w.maxRunning = 1
		w.restart()
		forged := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "forged", UID: "uid-forged", CreationTimestamp: metav1.NewTime(w.clock.Now()), OwnerReferences: owners,
			Labels: map[string]string{resources.LabelApp: resources.BackupAppName}, Annotations: map[string]string{resources.AnnotationSource: "other"},
		}}
		w.version(forged)
		w.live.jobs[key(forged)] = forged
		w.addCluster("a", 1)
		w.addBackup("a1", "a", nil)
		w.sync()
		w.look("a1")
		if n := len(w.open()); n != 2 {
			t.Errorf("%s: %d Jobs, %q", name, n, w.progressing("a1"))
		}
	}
}

// TestBackupThatIsLookedAfterElsewhereDoesNotWait: another controller has taken over a backup that waited for a place.
func TestBackupThatIsLookedAfterElsewhereDoesNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.maxRunning = 1
	w.restart()
	for _, name := range []string{"a", "b", "c"} {
		w.addCluster(name, 1)
		w.addBackup(name, name, nil)
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.sync()
	for _, name := range []string{"a", "b", "c"} {
		w.look(name)
	}
	w.elsewhere = "b"
	w.sync()
	w.look("b")
	w.run(w.open()[0], "")
	for range 2 {
		w.sync()
		w.look("a")
	}
	w.look("c")
	if got := w.moving(); got != "c" {
		t.Errorf("%q runs, want c, which waits for %q; %d Jobs", got, w.progressing("c"), len(w.open()))
	}
}
