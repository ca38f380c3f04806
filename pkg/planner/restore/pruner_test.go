// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// TestPruners: nothing is verified or requested while a Job runs that may delete what is read, and what was verified
// during such a Job is verified again.
func TestPruners(t *testing.T) {
	t.Parallel()
	prunes := func(store v1beta2.BackupStorageType, bucket, key string, keep ...string) func(*Observed) {
		return func(o *Observed) {
			o.Pruners = append(o.Pruners, job.Pruner{Job: "b9", Request: &agent.Request{
				Store: &agent.Store{Type: store, Bucket: bucket, Key: key},
				Prune: &agent.Prune{Layout: manifest.LayoutDirectory, Count: 1, Keep: keep},
			}})
		}
	}
	pvc, s3 := v1beta2.BackupStorageTypePersistentVolumeClaim, v1beta2.BackupStorageTypeS3
	removed := func(j *Job) { j.Deleting = true }
	request := "Verifying: requestRecovery from bucket/key/dir/snapshot.db sum abc bump 1000000000"
	for name, test := range map[string]struct {
		edits []func(*Observed)
		want  string
	}{
		"Job of before, by name":     {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "backups", "p/b")}, "Verifying: wait BackupMayBeDeleted"},
		"Job that keeps it, by name": {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "backups", "p/b", "pvc://backups/p/b/old/snapshot.db")}, "Verifying: verify 1 of p/b/old/snapshot.db against " + target + " sum oldsum"},
		"Job that keeps another":     {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "backups", "p/b", "pvc://backups/p/b/new/snapshot.db")}, "Verifying: wait BackupMayBeDeleted"},
		"Job of another EtcdBackup":  {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "backups", "p/b2")}, "Verifying: verify 1 of p/b/old/snapshot.db against " + target + " sum oldsum"},
		"Job of another PVC":         {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "more", "p/b")}, "Verifying: verify 1 of p/b/old/snapshot.db against " + target + " sum oldsum"},
		"second of two Jobs":         {[]func(*Observed){fromBackup(ptr.To[int64](5)), prunes(pvc, "more", "p/b"), prunes(pvc, "backups", "p/b")}, "Verifying: wait BackupMayBeDeleted"},
		"Job below the place":        {[]func(*Observed){prunes(s3, "bucket", "key/b")}, "Verifying: wait BackupMayBeDeleted"},
		"Job that keeps the place":   {[]func(*Observed){prunes(s3, "bucket", "key/b", "s3://bucket/key")}, "Verifying: verify 1 of bucket/key against " + target},
		"Job whose request is unreadable": {[]func(*Observed){func(o *Observed) {
			o.Pruners = []job.Pruner{{Job: "x", Request: &agent.Request{Prune: &agent.Prune{}}}}
		}}, "Verifying: wait BackupMayBeDeleted"},
		"verification runs":                 {[]func(*Observed){checked(1, nil), prunes(s3, "bucket", "key")}, "Verifying: wait BackupMayBeDeleted without j1"},
		"verified":                          {[]func(*Observed){held, checked(1, good()), prunes(s3, "bucket", "key")}, "Verifying: wait BackupMayBeDeleted without j1"},
		"verified, the Job keeps the place": {[]func(*Observed){held, checked(1, good()), prunes(s3, "bucket", "key", "s3://bucket/key")}, request},
		"verified, the Job keeps it":        {[]func(*Observed){held, checked(1, good()), prunes(s3, "bucket", "key", "s3://bucket/key/dir/manifest.json")}, request},
		"verified, the Job cannot reach it": {[]func(*Observed){held, checked(1, good()), prunes(s3, "bucket", "key/b")}, request},
		"verified and deleted":              {[]func(*Observed){held, checked(1, good(), removed)}, "Verifying: wait JobTerminating"},
		"requested":                         {[]func(*Observed){held, recovery(v1beta2.RecoveryPhaseFilling), in(v1beta2.RestorePhaseRestoring), prunes(s3, "bucket", "key")}, "Restoring: wait Filling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := say(Decide(observed(test.edits...))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestPrunerOnALostNode: nothing but a person ends the wait for a pod whose node does not report its end. So the message
// says which pod that is and how it is deleted.
func TestPrunerOnALostNode(t *testing.T) {
	t.Parallel()
	const remedy = "pod b9-x is being deleted, and its node n1 has not reported that it has ended. The restore continues after that. " +
		"If the node does not come back, make sure that node n1 is off, then delete the pod: kubectl delete pod b9-x -n ns --force"
	for name, test := range map[string]struct {
		edit func(*job.Pruner)
		want string
	}{
		"its Job ends":         {func(*job.Pruner) {}, "the controller ends that Job, and the restore continues after its pods have ended"},
		"its end is not known": {func(p *job.Pruner) { p.Overdue, p.Node = "b9-x", "n1" }, remedy},
	} {
		p := job.Pruner{Job: "b9", Request: &agent.Request{Prune: &agent.Prune{}}}
		test.edit(&p)
		plan := Decide(observed(func(o *Observed) { o.Restore.Namespace, o.Pruners = "ns", []job.Pruner{p} }))
		if plan.Wait == nil || plan.Wait.Reason != ReasonBackupMayBeDeleted || !strings.HasSuffix(plan.Wait.Message, "; "+test.want) {
			t.Errorf("%s: it waits for %+v, want %q", name, plan.Wait, test.want)
		}
	}
}
