// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// means expects what Flux and Helm make of the status, and the reason of Ready.
func (s *scene) means(want status.Status, reason string) {
	s.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.Backup)
	if err != nil {
		s.Fatal(err)
	}
	got, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		s.Fatal(err)
	}
	ready := meta.FindStatusCondition(s.Backup.Status.Conditions, v1beta2.ConditionReady)
	if ready == nil || got.Status != want || ready.Reason != reason || ready.ObservedGeneration != s.Backup.Generation {
		s.Errorf("%s, want %s %s: %+v", got.Status, want, reason, ready)
	}
	yes := 0
	for _, t := range []string{v1beta2.ConditionReady, v1beta2.ConditionReconciling, v1beta2.ConditionStalled} {
		c := meta.FindStatusCondition(s.Backup.Status.Conditions, t)
		if c != nil && c.Status == metav1.ConditionTrue {
			yes++
		} else if c != nil && t != v1beta2.ConditionReady {
			s.Errorf("%s is there and not True", t)
		}
	}
	if yes != 1 {
		s.Errorf("%d of Ready, Reconciling and Stalled are True", yes)
	}
}

func TestSingleBackupIsReadyOnceStored(t *testing.T) {
	s := newScene(t, nil)
	s.begins(epoch, 1)
	s.means(status.InProgressStatus, "Running")
	s.ends(time.Minute, Outcome{Succeeded: true, URI: "s3://b/k"})
	s.means(status.CurrentStatus, "Stored")
	s.Now = s.Now.Add(time.Hour)
	s.step()
	s.means(status.CurrentStatus, "Stored")
}

func TestSingleBackupStallsWhenItGivesUp(t *testing.T) {
	s := newScene(t, nil)
	for attempt := int32(1); attempt <= maxAttempts; attempt++ {
		s.begins(epoch, attempt)
		s.ends(time.Minute, Outcome{Reason: "StoreDenied", Message: "no"})
		if attempt < maxAttempts {
			s.means(status.InProgressStatus, "RetryScheduled")
		}
		s.Now = s.Now.Add(backOff(attempt))
	}
	s.step()
	s.means(status.FailedStatus, "GaveUp")
}

func TestBackupStallsWhileItsClusterIsMissing(t *testing.T) {
	s := newScene(t, nil)
	s.Source = &Wait{Reason: "ClusterNotFound", Message: "EtcdCluster c does not exist in this namespace"}
	s.step()
	s.means(status.InProgressStatus, "ClusterNotFound")
	s.Now = epoch.Add(waits.Soon)
	s.step()
	s.means(status.FailedStatus, "ClusterNotFound")
	s.Source = &Wait{Reason: "NoMemberRuns"}
	s.step()
	s.means(status.InProgressStatus, "NoMemberRuns")
	s.Now = epoch.Add(waits.Late)
	s.step()
	s.means(status.FailedStatus, "NoMemberRuns")
	s.Source = nil
	s.begins(epoch, 1)
	s.means(status.InProgressStatus, "Running")
}

func TestPeriodicBackupIsReadyBetweenRuns(t *testing.T) {
	s := newScene(t, &v1beta2.BackupPolicy{Schedule: "30 * * * *"})
	s.step()
	s.means(status.CurrentStatus, "NoneDueYet")
	first := epoch.Add(30 * time.Minute)
	s.Now = first.Add(time.Second)
	s.begins(first, 1)
	s.means(status.InProgressStatus, "Running")
	s.ends(time.Minute, Outcome{Succeeded: true, URI: "s3://b/1"})
	s.means(status.CurrentStatus, "Stored")

	// The next run does not look like a change, and the status reports its failure.
	second := first.Add(time.Hour)
	s.Now = second.Add(time.Second)
	s.begins(second, 1)
	s.means(status.CurrentStatus, "Stored")
	s.ends(time.Minute, Outcome{Reason: "StoreDenied", Message: "no"})
	s.means(status.InProgressStatus, "RetryScheduled")
	s.Now = s.Now.Add(backOff(1))
	s.begins(second, 2)
	s.means(status.InProgressStatus, "Running")
	s.ends(time.Minute, Outcome{Succeeded: true, URI: "s3://b/2"})
	s.means(status.CurrentStatus, "Stored")
}

func TestSuspendedBackup(t *testing.T) {
	s := newScene(t, &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600, Suspend: true})
	s.step()
	s.means(status.CurrentStatus, "Suspended")
	first := epoch.Add(time.Hour)
	s.Backup.Spec.BackupPolicy.Suspend = false
	s.Now = first.Add(time.Second)
	s.begins(first, 1)
	s.ends(time.Minute, Outcome{Reason: "StoreDenied", Message: "no"})
	s.Backup.Spec.BackupPolicy.Suspend = true
	s.Now = s.Now.Add(time.Second)
	s.step()
	s.means(status.FailedStatus, "Suspended")
}

func TestInvalidScheduleStalls(t *testing.T) {
	s := newScene(t, &v1beta2.BackupPolicy{Schedule: "now and then"})
	s.step()
	s.means(status.FailedStatus, "InvalidSchedule")
}
