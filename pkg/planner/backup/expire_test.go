// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestExpire: an EtcdBackup is deleted when its TTL is over, counted from its end by the clock of Kubernetes.
func TestExpire(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.Backup.Spec.TTL = &v1beta2.Duration{Duration: 3 * time.Minute}
	s.begins(epoch, 1).Started = true
	s.Now = s.Now.Add(time.Hour)
	if plan := s.step(); plan.Action != ActionNone {
		t.Fatalf("while it runs: %+v", plan)
	}
	s.ends(time.Second, good(1))
	for s.Backup.Status.CompletionTime = ptr.To(metav1.NewTime(epoch.Add(-24 * time.Hour))); len(s.Jobs) > 0; { // the clock of the node
		s.step()
	}
	ended := s.Now
	s.Now = ended.Add(time.Minute)
	if plan := s.rests(); plan.RequeueAfter != 2*time.Minute {
		t.Errorf("before the end of the TTL: %+v", plan)
	}
	s.Now = ended.Add(3 * time.Minute)
	if plan := s.step(); plan.Action != ActionExpire {
		t.Errorf("after the end of the TTL: %+v", plan)
	}
	s.Needed = &Kept{Reason: ReasonHeld, Message: "m"}
	if plan := s.step(); plan.Action != ActionNone || plan.RequeueAfter != idlePeriod {
		t.Errorf("while it is needed: %+v", plan)
	}
	s.condition(ConditionKept, metav1.ConditionTrue, ReasonHeld)
	s.rests()
	s.Backup.Spec.TTL = nil
	s.step()
	if c := meta.FindStatusCondition(s.Backup.Status.Conditions, ConditionKept); c != nil {
		t.Errorf("without a TTL: %+v", c)
	}
}

// TestExpireOfWhatFailed: a backup that is repeated has not ended, and one whose attempts have all failed has.
func TestExpireOfWhatFailed(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.Backup.Spec.TTL = &v1beta2.Duration{Duration: time.Minute}
	for number := int32(1); number <= maxAttempts; number++ {
		s.begins(epoch, number)
		s.ends(time.Second, bad())
		s.Now = s.Now.Add(backOff(number))
	}
	s.Now = s.Now.Add(time.Minute)
	if plan := s.step(); plan.Action != ActionExpire {
		t.Errorf("all attempts failed: %+v", plan)
	}
	s.Backup.Generation++
	if plan := s.step(); plan.Action != ActionSave {
		t.Errorf("its spec was changed: %+v", plan)
	}
	periodic := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600})
	periodic.Backup.Spec.TTL = &v1beta2.Duration{Duration: time.Minute} // stored by an API server that did not check it
	periodic.begins(epoch, 1)
	periodic.ends(time.Second, good(1))
	periodic.step()
	periodic.Now = periodic.Now.Add(10 * time.Minute)
	if plan := periodic.step(); plan.Action != ActionNone {
		t.Errorf("a periodic one: %+v", plan)
	}
}

// TestNeeded: what keeps an EtcdBackup after its TTL.
func TestNeeded(t *testing.T) {
	t.Parallel()
	now := epoch.Add(24 * time.Hour)
	stored := func(name string, at time.Time, edits ...func(*v1beta2.EtcdBackup)) *v1beta2.EtcdBackup {
		b := newBackup(nil)
		b.Name, b.Status = name, v1beta2.BackupStatus{Succeeded: true, Verified: true, LastSuccessDate: metav1.NewTime(at)}
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	later := epoch.Add(time.Hour)
	newer := stored("newer", later)
	preRestore := func(b *v1beta2.EtcdBackup) {
		b.Annotations = map[string]string{resources.AnnotationPreRestoreBackup: "r"}
	}
	held := func(b *v1beta2.EtcdBackup) { b.Spec.Hold = ptr.To(true) }
	failed := func(b *v1beta2.EtcdBackup) { b.Status = v1beta2.BackupStatus{} }
	restore := func(spec v1beta2.RestoreSpec, status v1beta2.RestoreStatus) *v1beta2.EtcdRestore {
		return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: spec, Status: status}
	}
	named := v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "b"}}
	made := v1beta2.RestoreStatus{PreRestoreBackup: &v1beta2.PreRestoreBackup{Backup: "b"}}
	for name, test := range map[string]struct {
		edits   []func(*v1beta2.EtcdBackup)
		others  []*v1beta2.EtcdBackup
		restore *v1beta2.EtcdRestore
		last    string
		want    string
	}{
		"newer one":                            {others: []*v1beta2.EtcdBackup{newer}},
		"held":                                 {edits: []func(*v1beta2.EtcdBackup){held}, others: []*v1beta2.EtcdBackup{newer}, want: ReasonHeld},
		"nothing stored":                       {edits: []func(*v1beta2.EtcdBackup){failed}},
		"alone":                                {want: ReasonLastProven},
		"older one":                            {others: []*v1beta2.EtcdBackup{stored("a", epoch.Add(-time.Hour))}, want: ReasonLastProven},
		"of the same time, later name":         {others: []*v1beta2.EtcdBackup{stored("c", epoch)}},
		"of the same time, earlier name":       {others: []*v1beta2.EtcdBackup{stored("a", epoch)}, want: ReasonLastProven},
		"of the future":                        {others: []*v1beta2.EtcdBackup{stored("c", now.Add(time.Hour))}, want: ReasonLastProven},
		"newer one that is not verified":       {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.Status.Verified = false })}, want: ReasonLastProven},
		"newer one that no quorum confirmed":   {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.Status.Unconfirmed = true })}, want: ReasonLastProven},
		"newer one whose data differs":         {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.Status.DataDiffers = true })}, want: ReasonLastProven},
		"newer one with more writes":           {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.Status.Unconfirmed, b.Status.EtcdRevision = true, 9 })}},
		"older one that a quorum confirmed":    {edits: []func(*v1beta2.EtcdBackup){func(b *v1beta2.EtcdBackup) { b.Status.Unconfirmed = true }}, others: []*v1beta2.EtcdBackup{stored("a", epoch.Add(-time.Hour))}},
		"newer one that is deleted":            {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })}, want: ReasonLastProven},
		"newer one of another cluster":         {others: []*v1beta2.EtcdBackup{stored("c", later, func(b *v1beta2.EtcdBackup) { b.Spec.EtcdCluster.Name = "x" })}, want: ReasonLastProven},
		"newer one before a restore":           {others: []*v1beta2.EtcdBackup{stored("c", later, preRestore)}, want: ReasonLastProven},
		"the last one of the cluster's status": {others: []*v1beta2.EtcdBackup{newer}, last: "b", want: ReasonLastProven},
		"open restore":                         {others: []*v1beta2.EtcdBackup{newer}, restore: restore(named, v1beta2.RestoreStatus{}), want: ReasonNeededByRestore},
		"restore that has ended":               {others: []*v1beta2.EtcdBackup{newer}, restore: restore(named, v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseSucceeded})},
		"open restore of another backup":       {others: []*v1beta2.EtcdBackup{newer}, restore: restore(v1beta2.RestoreSpec{Backup: &v1beta2.BackupReference{Name: "x"}}, v1beta2.RestoreStatus{})},
		"before an open restore":               {edits: []func(*v1beta2.EtcdBackup){preRestore}, others: []*v1beta2.EtcdBackup{newer}, restore: restore(v1beta2.RestoreSpec{}, v1beta2.RestoreStatus{}), want: ReasonNeededByRestore},
		"recorded by an open restore":          {others: []*v1beta2.EtcdBackup{newer}, restore: restore(v1beta2.RestoreSpec{}, made), want: ReasonNeededByRestore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := stored("b", epoch, test.edits...)
			c := newCluster(nil)
			if test.last != "" {
				c.Status.LastBackup = &v1beta2.LastBackup{Name: test.last}
			}
			var restores []*v1beta2.EtcdRestore
			if test.restore != nil {
				restores = append(restores, test.restore)
			}
			got := ""
			if kept := Needed(b, restores, append(test.others, b), c, now); kept != nil {
				got = kept.Reason
			}
			if got != test.want {
				t.Errorf("kept because of %q, want %q", got, test.want)
			}
		})
	}
}
