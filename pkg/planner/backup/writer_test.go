// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

// TestNoAttemptBesideOneThatWrites: a pod that may still write outlives its Job. Where attempts share a name in the store,
// the next one begins after the end of that pod, whatever ended the Job. Their snapshots and manifests would mix otherwise.
func TestNoAttemptBesideOneThatWrites(t *testing.T) {
	t.Parallel()
	lost := &job.LostNode{Since: epoch, Message: "node n1 does not report the end of pod p"}
	held := func(s *scene) { s.Backup.Spec.Hold = ptr.To(true) }
	restored := func(s *scene) { s.Held = []string{good(1).URI} }
	for name, test := range map[string]struct {
		ends   func(*scene)
		lost   *job.LostNode
		exists bool // the Job is deleted after its pod
		own    bool // the pod writes under a name of its own
		wait   string
	}{
		"hold, pod on a lost node":             {ends: held, lost: lost, wait: ReasonNodeLost},
		"hold, pod that ends":                  {ends: held},
		"hold, Job that goes with its pod":     {ends: held, exists: true},
		"restore, pod on a lost node":          {ends: restored, lost: lost, wait: ReasonNodeLost},
		"restore, pod with a name of its own":  {ends: restored, own: true},
		"Job deleted by hand, on a lost node":  {ends: func(s *scene) { s.Jobs = nil }, lost: lost, wait: ReasonNodeLost},
		"Job deleted by hand, pod of its name": {ends: func(s *scene) { s.Jobs = nil }, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 86400, MaxBackups: 1})
			begun := s.begins(epoch, 1)
			begun.Started, begun.SharesKey, begun.LostNode = true, !test.own, test.lost
			left := *begun
			left.Deleting = true
			test.ends(s)
			if s.step(); !test.exists {
				s.step() // the Job is deleted
				s.Jobs = nil
			}
			if s.is(v1beta2.BackupPhaseFailed); !test.own {
				s.Jobs = []Job{left}
			}
			s.Now = s.Now.Add(backOff(1))
			if !test.own {
				plan := s.step()
				if plan.Action != ActionNone || plan.RequeueAfter <= 0 || (plan.Wait == nil) != (test.wait == "") {
					t.Fatalf("a pod that may still write is not waited for: %+v", plan)
				}
				if test.wait != "" {
					s.condition(ConditionProgressing, metav1.ConditionTrue, test.wait)
					s.rests()
					s.Now = epoch.Add(Waits[test.wait].Bound)
					s.step()
					s.condition(v1beta2.ConditionStalled, metav1.ConditionTrue, test.wait)
				}
				s.Jobs = nil
			}
			s.begins(epoch, 2)
		})
	}
}
