// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRejected: the status reports within seconds that Kubernetes rejects a Job or its pod.
// The backup continues by itself when Kubernetes accepts them.
func TestRejected(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*world, bool){
		"Job": func(w *world, on bool) { w.full = on },
		"pod": func(w *world, on bool) { w.podless = on },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addCluster("c", 3)
			b := key(w.addBackup("b", "c", nil))
			look := func() time.Duration {
				w.sync()
				after, err := w.reconcile(b)
				if err != nil {
					t.Fatal(err)
				}
				w.clock.SetTime(w.clock.Now().Add(3 * time.Second))
				return after
			}
			stop(w, true)
			look()
			look()
			after := look()
			status := w.live.backups[b].Status
			told := meta.FindStatusCondition(status.Conditions, "Progressing")
			if told == nil || told.Reason != v1beta2.ReasonPodRejected || !strings.Contains(told.Message, "exceeded quota: full") || after > 10*time.Second || after == 0 {
				t.Fatalf("looks again after %s, says %+v", after, status)
			}
			stop(w, false)
			for range 6 {
				look()
				for _, job := range w.open() {
					w.run(job, "")
				}
			}
			if status := w.live.backups[b].Status; !status.Succeeded || status.Phase != v1beta2.BackupPhaseSucceeded {
				t.Errorf("it came to %+v", status)
			}
		})
	}
}
