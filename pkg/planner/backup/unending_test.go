// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// TestJobThatDoesNotEnd: a Job whose agent does not respond for longer than a transfer takes has a reason and a remedy, and
// the EtcdBackup is Stalled. That ends when the agent responds, and another attempt follows the end of the Job.
func TestJobThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	const remedy = "restart that node, or make sure that it is off and delete the pod: kubectl delete pod p -n ns --force"
	half := &v1beta2.TransferProgress{Bytes: gib, TotalBytes: 2 * gib}
	for name, test := range map[string]struct {
		after    time.Duration
		stored   int64 // size of the last snapshot
		recorded *v1beta2.TransferProgress
		progress *v1beta2.TransferProgress
		timeout  int64
		deleting bool
		shares   bool
		remedy   string // empty: it runs
	}{
		"transfer in its time":                  {after: waits.Transfer - time.Second},
		"agent that does not respond":           {after: waits.Transfer, remedy: remedy},
		"agent that responds":                   {after: 10 * waits.Transfer, progress: half},
		"large snapshot by the last one":        {after: waits.Transfer + 1023*time.Second, stored: gib},
		"large snapshot that takes too long":    {after: waits.Transfer + 1024*time.Second, stored: gib, remedy: remedy},
		"large snapshot by the progress":        {after: waits.Transfer + 2047*time.Second, recorded: half},
		"progress that has ended":               {after: waits.Transfer + 2048*time.Second, recorded: half, remedy: remedy},
		"time that a user gives it":             {after: 2 * waits.Transfer, timeout: 100000},
		"pod that Kubernetes deletes":           {after: 2 * waits.Transfer, deleting: true},
		"attempts that share a name in a store": {after: waits.Transfer, shares: true, remedy: remedy + ". While the pod runs, it may write under the name that the next attempt stores at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 86400, TimeoutInSecond: test.timeout})
			s.begins(epoch, 1)
			s.ends(time.Second, good(1))
			s.Backup.Status.SnapshotSize = test.stored
			s.step()
			due := epoch.Add(24 * time.Hour)
			s.Now = due
			j := s.begins(due, 1)
			j.Name, j.Started, j.SharesKey, j.Running = "j", true, test.shares, &job.RunningPod{Name: "p", Node: "n1", Since: due}
			if test.deleting {
				j.Running = nil
			}
			j.Progress = test.recorded
			s.step()
			j.Progress = test.progress
			s.Now = due.Add(test.after)
			plan := s.step()
			if test.remedy == "" {
				if plan.Wait != nil {
					t.Fatalf("it waits: %+v", plan.Wait)
				}
				s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonRunning)
				s.condition(v1beta2.ConditionReady, metav1.ConditionTrue, ReasonStored)
				return
			}
			s.condition(ConditionProgressing, metav1.ConditionTrue, ReasonJobNotEnding)
			s.condition(v1beta2.ConditionReady, metav1.ConditionFalse, ReasonJobNotEnding)
			s.condition(v1beta2.ConditionStalled, metav1.ConditionTrue, ReasonJobNotEnding)
			for _, part := range []string{"Job j ", "pod p ", "node n1 ", test.remedy, "Another attempt follows"} {
				if !strings.Contains(plan.Wait.Message, part) {
					t.Errorf("%q lacks %q", plan.Wait.Message, part)
				}
			}
			s.is(v1beta2.BackupPhaseRunning)
			s.Now = s.Now.Add(time.Minute)
			s.rests()
			j.Progress = half
			s.step()
			s.condition(v1beta2.ConditionReady, metav1.ConditionTrue, ReasonStored)
			s.Jobs = nil // a user has deleted it
			s.step()
			s.Now = s.Now.Add(backOff(1))
			s.begins(due, 2)
		})
	}
}

// TestWhatFollowsAJobThatDoesNotEnd: no attempt is promised that does not follow.
func TestWhatFollowsAJobThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		number  int32
		suspend bool
		want    string
		follows bool
	}{
		"an attempt":                    {1, false, "Another attempt follows", true},
		"the last attempt but one":      {maxAttempts - 1, false, "Another attempt follows", true},
		"the last attempt":              {maxAttempts, false, "This is the last of 12 attempts", false},
		"an attempt that was suspended": {1, true, "No attempt follows while spec.backupPolicy.suspend is true", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 86400})
			for number := int32(1); number < test.number; number++ {
				s.begins(epoch, number)
				s.ends(time.Second, Outcome{Reason: "StoreUnavailable"})
				s.step()
				s.Now = s.Now.Add(backOff(number))
			}
			j := s.begins(epoch, test.number)
			j.Started, j.Running = true, &job.RunningPod{Name: "p", Node: "n1", Since: s.Now}
			s.Backup.Spec.BackupPolicy.Suspend = test.suspend
			s.Now = s.Now.Add(waits.Transfer)
			plan := s.step()
			if plan.Wait == nil || plan.Wait.Reason != ReasonJobNotEnding || !strings.HasSuffix(plan.Wait.Message, "--force. "+test.want) {
				t.Fatalf("it waits for %+v, want %q", plan.Wait, test.want)
			}
			s.ends(time.Second, Outcome{Reason: "StoreUnavailable"})
			s.step()
			s.Now = s.Now.Add(time.Hour) // before the next scheduled time
			if follows := s.step().Action == ActionSave; follows != test.follows {
				t.Errorf("another attempt follows: %v, the message says %q", follows, test.want)
			}
		})
	}
}
