// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/backup"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestNoAttemptBesideAPodThatWrites: the next attempt awaits the end of a pod whose Job was deleted, and which may still
// write under the name that they share. A sidecar that runs on, and an attempt with a name of its own, hold it up no more.
func TestNoAttemptBesideAPodThatWrites(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	deleted := func(w *world, j *batchv1.Job) {
		if err := w.DeleteJob(t.Context(), j.Namespace, j.Name, metav1.Preconditions{UID: &j.UID}); err != nil {
			t.Fatal(err)
		}
	}
	held := func(w *world, _ *batchv1.Job) {
		b := w.live.backups[key(w.backup("b"))].DeepCopy()
		b.Spec.Hold = ptr.To(true)
		w.version(b)
		w.live.backups[key(b)] = b
	}
	for name, test := range map[string]struct {
		own     bool // attempts have names of their own
		state   corev1.ContainerState
		sidecar bool
		stale   bool // the cache shows no pod
		copied  bool // the pod does not say which attempt it is of
		ends    func(*world, *batchv1.Job)
		waits   string
	}{
		"hold":                       {state: running, ends: held, waits: planner.ReasonNodeLost},
		"Job deleted by hand":        {state: running, ends: deleted, waits: planner.ReasonNodeLost},
		"pod that the cache lacks":   {state: running, ends: deleted, stale: true, waits: planner.ReasonJobNotEnding},
		"copy of its pod":            {state: running, ends: deleted, copied: true, waits: planner.ReasonJobNotEnding},
		"agent that has ended":       {state: ended, sidecar: true, ends: deleted},
		"attempts with names of own": {own: true, state: running, ends: held},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cutOff = true
			w.addCluster("c", 3)
			b := w.addBackup("b", "c", &v1beta2.BackupPolicy{BackupIntervalInSecond: 86400, MaxBackups: 1})
			b.CreationTimestamp = metav1.NewTime(epoch.Add(-24 * time.Hour))
			if !test.own {
				b.Spec.EtcdCluster, b.Spec.EtcdEndpoints = nil, []string{"http://e:2379"}
			}
			step := func() {
				t.Helper()
				w.clock.SetTime(w.clock.Now().Add(time.Minute))
				if w.sync(); test.stale {
					w.cached.pods = nil
				}
				w.look("b")
			}
			for range 2 {
				step()
			}
			first := w.open()
			if len(first) != 1 {
				t.Fatalf("made %d Jobs", len(first))
			}
			pod := w.podOf(first[0], corev1.PodRunning, test.state)
			if test.sidecar {
				pod.Spec.Containers = append([]corev1.Container{{Name: "proxy"}}, pod.Spec.Containers...)
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: running})
			}
			step()
			if test.copied {
				pod.Annotations = nil
			}
			test.ends(w, first[0])
			for range 6 {
				step()
			}
			if test.waits != "" {
				if open := w.open(); len(open) != 0 {
					t.Fatalf("%s runs beside pod %s", open[0].Name, pod.Name)
				}
				if got := w.progressing("b"); got != test.waits {
					t.Errorf("it waits for %q", got)
				}
				delete(w.live.pods, key(pod)) // by a user, with --force
				step()
			}
			if next := w.open(); len(next) != 1 || next[0].Annotations[resources.AnnotationAttempt] != "2" {
				t.Errorf("%d Jobs follow: %+v", len(next), next)
			}
		})
	}
}
