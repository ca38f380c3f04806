// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/planner/waits"
)

// automatic has the controller create the restore for the permanent quorum loss of the cluster.
func automatic(o *Observed) {
	o.Restore.Annotations = map[string]string{v1beta2.AnnotationAutomaticRestore: string(o.Cluster.UID)}
	o.Cluster.Spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
	lostForGood(o)
}

// quorumLostIs has the cluster report whether its quorum is lost.
func quorumLostIs(is corev1.ConditionStatus) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionQuorumLost, Status: is}}
		if is != corev1.ConditionTrue {
			o.Cluster.Status.PermanentQuorumLossSince = nil
		}
	}
}

// TestAutomaticRestoreTriesOn: no user decides again after the seventh attempt of a restore that no user asked for. It is
// tried as long as the loss lasts that it was created for, and neither for a cluster that serves again nor for another
// cluster of the name.
func TestAutomaticRestoreTriesOn(t *testing.T) {
	t.Parallel()
	after := func(d time.Duration) func(*Observed) {
		return func(o *Observed) { o.Now = epoch.Add(time.Minute + d) }
	}
	fails := func(attempt int32) func(*Observed) { return checked(attempt, bad("StoreUnavailable", true)) }
	unstarted := checked(1, nil, func(j *Job) { j.Started = false })
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"the store is away for longer than a user's restore waits": {[]func(*Observed){automatic, fails(maxAttempts)}, "Verifying: wait BackupUnreadable"},
		"the next attempt":                      {[]func(*Observed){automatic, fails(maxAttempts), after(lastRetry)}, "Verifying: verify 8 of bucket/key against " + target},
		"the store is away for a week":          {[]func(*Observed){automatic, fails(999), fails(1000)}, "Verifying: wait BackupUnreadable without j999"},
		"at most ten minutes apart":             {[]func(*Observed){automatic, fails(1000), after(lastRetry)}, "Verifying: verify 1001 of bucket/key against " + target},
		"its pod does not start":                {[]func(*Observed){automatic, unstarted, after(job.StartTimeout)}, "Verifying: verify 2 of bucket/key against " + target},
		"the backup is damaged":                 {[]func(*Observed){automatic, checked(1, bad("Corrupt", false))}, "Verifying: record false Corrupt"},
		"the backup is good":                    {[]func(*Observed){automatic, held, checked(1, good())}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
		"by a status of size 0":                 {[]func(*Observed){automatic, held, checked(1, good()), quorumLostIs(corev1.ConditionFalse), func(o *Observed) { o.Cluster.Generation++ }}, "Verifying: wait AutomaticRestoreHeld"},
		"the cluster serves again":              {[]func(*Observed){automatic, held, checked(1, good()), quorumLostIs(corev1.ConditionFalse)}, "Verifying: record false Abandoned"},
		"the cluster is stopped":                {[]func(*Observed){automatic, held, checked(1, good()), quorumLostIs(corev1.ConditionFalse), func(o *Observed) { o.Cluster.Spec.Replicas = new(int32) }}, "Verifying: wait AutomaticRestoreHeld"},
		"the loss is not proven now":            {[]func(*Observed){automatic, held, checked(1, good()), quorumLostIs(corev1.ConditionUnknown)}, "Verifying: wait AutomaticRestoreHeld"},
		"a user forbids automatic recoveries":   {[]func(*Observed){automatic, held, checked(1, good()), func(o *Observed) { o.Cluster.Spec.Recovery = nil }}, "Verifying: wait AutomaticRestoreHeld"},
		"the cluster is deleted":                {[]func(*Observed){automatic, held, checked(1, good()), homeless}, "Verifying: record false ClusterDeleted"},
		"the cluster is being deleted":          {[]func(*Observed){automatic, held, checked(1, good()), terminating}, "Verifying: record false ClusterDeleted"},
		"another cluster has its name":          {[]func(*Observed){automatic, held, checked(1, good()), func(o *Observed) { o.Cluster.UID = "another" }}, "Verifying: record false ClusterDeleted"},
		"the cluster has the request":           {[]func(*Observed){automatic, held, recovery(v1beta2.RecoveryPhaseFilling), in(v1beta2.RestorePhaseRestoring), quorumLostIs(corev1.ConditionUnknown)}, "Restoring: wait Filling"},
		"a user's restore ends":                 {[]func(*Observed){fails(maxAttempts)}, "Verifying: record false StoreUnavailable"},
		"a user's restore whose pod is late":    {[]func(*Observed){unstarted, after(job.StartTimeout)}, "Verifying: record false PodNotStarted"},
		"a user's restore goes on all the same": {[]func(*Observed){held, checked(1, good()), quorumLostIs(corev1.ConditionUnknown)}, "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"},
	} {
		if got := say(Decide(observed(test.edits...))); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestRetriesSayHowTheyEnd: an automatic restore is Stalled after some time, and says that it goes on. A restore that a
// user has asked for says that it does not, and what to do.
func TestRetriesSayHowTheyEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit  func(*Observed)
		ready string
		says  []string
	}{
		"automatic": {automatic, ReasonBackupUnreadable, []string{"attempt 7", "StoreUnavailable: because", "while the quorum is permanently lost", "within 10m0s"}},
		"a user's":  {func(*Observed) {}, "StoreUnavailable", []string{"nothing was changed", "attempt 7", "because", "create another EtcdRestore"}},
	} {
		o := observed(test.edit, checked(maxAttempts, bad("StoreUnavailable", true)))
		o.Restore.Status.StartTime, o.Restore.Status.PreRestoreBackup = job.StatusTime(o.Now.Add(-waits.Late)), nil
		status := Status(o, Decide(o))
		stalled := meta.FindStatusCondition(status.Conditions, v1beta2.ConditionStalled)
		if stalled == nil || stalled.Reason != test.ready {
			t.Errorf("%s: it is not Stalled because of %s: %+v", name, test.ready, status.Conditions)
			continue
		}
		for _, part := range test.says {
			if !strings.Contains(stalled.Message, part) {
				t.Errorf("%s: %q does not say %q", name, stalled.Message, part)
			}
		}
	}
}
