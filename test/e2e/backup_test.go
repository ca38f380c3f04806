// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// backupManifest returns an EtcdBackup as a user would write it.
func backupManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdBackup\nmetadata:\n  name: %s\nspec:\n%s\n", name, spec)
}

const toVolume = `
  storageType: PersistentVolumeClaim
  persistentVolumeClaim: {claimName: backups}`

// volume makes the PVC that backups go to.
func (s *scenario) volume() {
	s.Helper()
	s.apply(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: backups
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 256Mi}}
`)
}

// awaitBackup watches an EtcdBackup until done is true of it.
func (s *scenario) awaitBackup(ctx context.Context, name, what string, done func(*v1beta2.EtcdBackup) bool) *v1beta2.EtcdBackup {
	s.Helper()
	view, err := env.Backup(ctx, s.namespace, name)
	s.must(err, "watch backup %s", name)
	defer view.Close()
	var last *v1beta2.EtcdBackup
	err = view.Await(ctx, func(list []*v1beta2.EtcdBackup) bool {
		for _, object := range list {
			last = object
			return done(object)
		}
		return false
	})
	if err != nil {
		text := "it does not exist"
		if last != nil {
			if raw, marshalErr := yaml.Marshal(last.Status); marshalErr == nil {
				text = string(raw)
			}
		}
		s.Fatalf("backup %s, waiting for %s: %v; at last:\n%s", name, what, err, text)
	}
	return last
}

func hasSucceeded(b *v1beta2.EtcdBackup) bool { return b.Status.Phase == v1beta2.BackupPhaseSucceeded }

func goodOnes(b *v1beta2.EtcdBackup) []v1beta2.BackupRecord {
	var good []v1beta2.BackupRecord
	for _, r := range b.Status.History {
		if r.Succeeded {
			good = append(good, r)
		}
	}
	return good
}

// TestBackup makes one backup of a cluster to a volume, from a single survivor.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("kept", 3, etcdVersion)
	c.fill()
	before := c.leader()
	s.apply(backupManifest("once", "  etcdCluster: {name: kept}\n  compression: Zstd\n  verify: Restore"+toVolume))
	b := s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	status := &b.Status
	for what, ok := range map[string]bool{
		"succeeded":       status.Succeeded,
		"Reason":          status.Reason == "",
		"etcdVersion":     status.EtcdVersion == etcdVersion,
		"etcdRevision":    status.EtcdRevision > 1,
		"lastSuccessDate": !status.LastSuccessDate.IsZero(),
		"times":           status.StartTime != nil && status.CompletionTime != nil && !status.CompletionTime.Before(status.StartTime),
		"uri":             strings.HasPrefix(status.URI, "pvc://backups/once/v1/"+s.namespace+"/kept-"),
		"sizes":           status.SnapshotSize > 0 && status.StoredSize > 0 && status.StoredSize < status.SnapshotSize,
		"sha256":          len(status.SHA256) == 64,
		"member":          strings.HasPrefix(status.Member, "kept-"),
		"verified":        status.Verified && status.VerifiedBy == v1beta2.VerificationRestore,
		"attempts":        status.Attempts == 1,
		"generation":      status.ObservedGeneration == b.Generation,
		"condition":       meta.IsStatusConditionTrue(status.Conditions, "Succeeded"),
	} {
		if !ok {
			t.Errorf("%s is wrong in %+v", what, status)
		}
	}
	// In another term a follower of before may lead.
	if leader := c.leader(); leader.Term == before.Term && status.Member == leader.Pod.Name {
		t.Errorf("the leader served although followers could: %s", status.Member)
	}
	s.must(s.checkStored(status.URI), "the stored backup")
	s.contains(s.kubectl("get", "etcdbackups"), "NAME", "once", "kept", "PersistentVolumeClaim", "Succeeded", "true")
	s.contains(s.kubectl("get", "events", "--field-selector=involvedObject.name=once"), "BackupStarted", "BackupSucceeded")
	c.await(s.ctx(), "its last backup", func(object *clusterObject) bool {
		last := object.Status.LastBackup
		return last != nil && last.Name == "once" && last.Verified && last.Revision == status.EtcdRevision
	})
	s.kubectl("wait", "--for=delete", "jobs", "-l", "app=etcd-backup", "--timeout=60s")

	// Two of three members are permanently lost: the last member, without a quorum, serves.
	s.stopTwo(c)
	s.apply(backupManifest("survivor", "  etcdCluster: {name: kept}"+toVolume))
	b = s.awaitBackup(s.ctx(), "survivor", "success", hasSucceeded)
	s.must(s.checkStored(b.Status.URI), "the backup of the survivor")
}

// stopTwo pauses the cluster and takes two members away.
func (s *scenario) stopTwo(c *cluster) {
	s.Helper()
	s.kubectl("patch", "etcdcluster", c.name, "--type=merge", "-p", `{"spec":{"paused":true}}`)
	c.await(s.ctx(), "being paused", func(object *clusterObject) bool { return object.Status.ControlPaused })
	for _, p := range c.members.Live()[:2] {
		s.kubectl("delete", "pod", p.Name, "--grace-period=1")
	}
}

// TestBackupSchedule lets spec.backup of a cluster keep two backups, of many.
func TestBackupSchedule(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("scheduled", 1, etcdVersion, `
  backup:
    storageType: PersistentVolumeClaim
    persistentVolumeClaim: {claimName: backups, path: deep/down}
    schedule: "@every 5s"
    retention: {count: 2}`)
	c.fill()
	b := s.awaitBackup(s.ctx(), "scheduled-scheduled", "five backups", func(b *v1beta2.EtcdBackup) bool {
		return len(goodOnes(b)) == 2 && b.Status.LastScheduleTime != nil && b.Status.LastScheduleTime.Sub(b.CreationTimestamp.Time) >= 25*time.Second
	})
	oldest := goodOnes(b)[1]
	c.await(s.ctx(), "healthy backups", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionBackupHealthy, corev1.ConditionTrue) && object.Status.LastBackup != nil
	})
	s.kubectl("patch", "etcdcluster", "scheduled", "--type=merge", "-p", `{"spec":{"backup":{"schedule":""}}}`)
	b = s.awaitBackup(s.ctx(), "scheduled-scheduled", "rest", func(b *v1beta2.EtcdBackup) bool {
		return b.Spec.BackupPolicy.Suspend && hasSucceeded(b) && b.Status.NextScheduleTime == nil
	})
	good := goodOnes(b)
	if len(good) != 2 {
		t.Fatalf("history %+v", b.Status.History)
	}
	for _, r := range good {
		s.must(s.checkStored(r.URI), "backup %s of the history", r.URI)
	}
	if oldest.URI != good[0].URI && oldest.URI != good[1].URI {
		if err := s.checkStored(oldest.URI); err == nil {
			t.Errorf("backup %s is no longer in the history and still exists", oldest.URI)
		}
	}
	s.kubectl("delete", "etcdbackup", "scheduled-scheduled", "--timeout=30s")
	s.must(s.checkStored(good[0].URI), "a backup whose object was deleted")
}

// TestBackupCron has a backup due at a time of day in a zone that is hours and a half away.
func TestBackupCron(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	s.create("daily", 1, etcdVersion).fill()
	zone, err := time.LoadLocation("Asia/Kathmandu")
	s.must(err, "find the zone")
	// The next full minute that is not about to begin.
	due := time.Now().Add(10 * time.Second).Truncate(time.Minute).Add(time.Minute)
	s.apply(backupManifest("nightly", fmt.Sprintf("  etcdCluster: {name: daily}\n  backupPolicy: {schedule: %q, timeZone: %s}", due.In(zone).Format("4 15 * * *"), zone)+toVolume))
	b := s.awaitBackup(s.ctx(), "nightly", "its time to be known", func(b *v1beta2.EtcdBackup) bool { return b.Status.NextScheduleTime != nil })
	if !b.Status.NextScheduleTime.Time.Equal(due) || b.Status.Attempts != 0 {
		t.Errorf("it is due at %v, not at %v; attempts: %d", b.Status.NextScheduleTime, due, b.Status.Attempts)
	}
	b = s.awaitBackup(s.ctx(), "nightly", "success", hasSucceeded)
	next := due.In(zone).AddDate(0, 0, 1)
	if !b.Status.LastScheduleTime.Time.Equal(due) || b.Status.LastSuccessDate.Time.Before(due) || !b.Status.NextScheduleTime.Time.Equal(next) {
		t.Errorf("made for %v at %v, the next one is due at %v; want %v and %v", b.Status.LastScheduleTime, b.Status.LastSuccessDate, b.Status.NextScheduleTime, due, next)
	}
	s.must(s.checkStored(b.Status.URI), "the backup of the day")
}

// TestBackupsThatCannotSucceed stand beside one that does.
func TestBackupsThatCannotSucceed(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	s.create("busy", 1, etcdVersion)
	s.kubectl("create", "secret", "generic", "wrong", "--from-literal=credentials=[default]\naws_access_key_id = "+canary+"\naws_secret_access_key = "+canary+"-key\n",
		"--from-literal=config=[default]\nregion = nowhere\n")
	s3 := func(secret string) string {
		return "  etcdCluster: {name: busy}\n  storageType: S3\n  s3: {path: bucket/key, awsSecret: " + secret + ", endpoint: \"http://busy-client:2379\", forcePathStyle: true}"
	}
	s.apply(backupManifest("no-secret", s3("missing")))
	s.apply(backupManifest("no-store", s3("wrong")))
	s.apply(backupManifest("no-pvc", "  etcdCluster: {name: busy}\n  storageType: PersistentVolumeClaim\n  persistentVolumeClaim: {claimName: missing}"))
	s.apply(backupManifest("no-cluster", "  etcdCluster: {name: missing}"+toVolume))
	s.apply(backupManifest("no-endpoint", "  etcdEndpoints: [\"http://nobody-client:2379\"]\n  storageType: PersistentVolumeClaim\n  persistentVolumeClaim: {claimName: backups, path: e}"))
	s.apply(backupManifest("good", "  etcdCluster: {name: busy}"+toVolume))

	failed := func(reason string) func(*v1beta2.EtcdBackup) bool {
		return func(b *v1beta2.EtcdBackup) bool {
			c := meta.FindStatusCondition(b.Status.Conditions, "Succeeded")
			return b.Status.Phase == v1beta2.BackupPhaseFailed && !b.Status.Succeeded && c != nil && c.Reason == reason && b.Status.Reason == c.Message
		}
	}
	missing := s.awaitBackup(s.ctx(), "no-secret", "InvalidCredentials", failed(string(agent.ClassCredentials)))
	s.contains(missing.Status.Reason, "missing", "credentials")
	s.awaitBackup(s.ctx(), "no-endpoint", "EtcdUnavailable", failed(string(agent.ClassEtcd)))
	waits := func(reason string) func(*v1beta2.EtcdBackup) bool {
		return func(b *v1beta2.EtcdBackup) bool {
			c := meta.FindStatusCondition(b.Status.Conditions, "Progressing")
			return c != nil && c.Reason == reason
		}
	}
	s.awaitBackup(s.ctx(), "no-cluster", "its cluster", waits("ClusterNotFound"))

	// A backup that waits for a PVC that does not exist reports that, and delays no other one.
	s.awaitBackup(s.ctx(), "no-pvc", "its PVC", func(b *v1beta2.EtcdBackup) bool {
		c := meta.FindStatusCondition(b.Status.Conditions, "Progressing")
		return waits("PodNotStarted")(b) && strings.Contains(c.Message, `"missing" not found`)
	})
	s.awaitBackup(s.ctx(), "no-store", "a failure", func(b *v1beta2.EtcdBackup) bool { return b.Status.Phase == v1beta2.BackupPhaseFailed })
	s.awaitBackup(s.ctx(), "good", "success", hasSucceeded)
	s.kubectl("delete", "etcdbackup", "no-pvc", "--timeout=30s")

	s.kubectl("create", "secret", "generic", "missing", "--from-literal=credentials=x", "--from-literal=config=x")
	s.awaitBackup(s.ctx(), "no-secret", "another reason", func(b *v1beta2.EtcdBackup) bool { return b.Status.Attempts > 1 })
	s.noCanary()
}

// backupsThroughCrashes kills the controller and the agents again and again: in
// the end every backup that the status tells of is whole, and none twice.
func backupsThroughCrashes(t *testing.T) {
	s := start(t)
	s.volume()
	d, err := env.Program(s.ctx(), harness.Controller)
	s.must(err, "read the controller's deployment")
	p := s.controller("crashes", "--namespace="+s.namespace, "--agent-image="+d.Spec.Template.Spec.Containers[0].Image)
	c := s.create("shaken", 3, etcdVersion)
	c.fill()
	s.apply(backupManifest("often", "  etcdCluster: {name: shaken}\n  backupPolicy: {backupIntervalInSecond: 3}"+toVolume))
	for life := 0; life < 12; life++ {
		// A life lasts until one more backup is recorded or a random time is over.
		ctx := s.within(time.Duration(400+life*170) * time.Millisecond)
		seen := -1
		view, err := env.Backup(s.ctx(), s.namespace, "often")
		s.must(err, "watch the backup")
		_ = view.Await(ctx, func(list []*v1beta2.EtcdBackup) bool {
			if len(list) == 0 {
				return false
			}
			if seen < 0 {
				seen = len(list[0].Status.History)
			}
			return len(list[0].Status.History) > seen
		})
		view.Close()
		p.restart()
		if life%3 == 2 {
			s.kubectl("delete", "pods", "-l", "app=etcd-backup", "--grace-period=0", "--force", "--wait=false")
		}
		if life == 5 {
			s.kubectl("delete", "pod", c.members.Live()[0].Name, "--grace-period=0", "--force", "--wait=false")
		}
	}
	s.awaitBackup(s.ctx(), "often", "three good ones", func(b *v1beta2.EtcdBackup) bool { return len(goodOnes(b)) >= 3 && hasSucceeded(b) })
	s.kubectl("patch", "etcdbackup", "often", "--type=merge", "-p", `{"spec":{"backupPolicy":{"suspend":true}}}`)
	b := s.awaitBackup(s.ctx(), "often", "rest", func(b *v1beta2.EtcdBackup) bool {
		return b.Status.ObservedGeneration == b.Generation && b.Status.Phase != v1beta2.BackupPhaseRunning && b.Status.Phase != v1beta2.BackupPhasePending
	})
	uris := map[string]int{}
	for _, r := range goodOnes(b) {
		uris[r.URI]++
	}
	for uri, times := range uris {
		if times > 1 {
			t.Errorf("%s is %d times in the history", uri, times)
		}
	}
	t.Logf("%d good backups, %d records", len(uris), len(b.Status.History))
	for _, r := range goodOnes(b)[:min(4, len(goodOnes(b)))] {
		s.must(s.checkStored(r.URI), "backup %s", r.URI)
	}
	jobs, err := env.Kube.BatchV1().Jobs(s.namespace).List(s.ctx(), metav1.ListOptions{})
	s.must(err, "list Jobs")
	if len(jobs.Items) > 2 {
		t.Errorf("%d Jobs are left", len(jobs.Items))
	}
}

// TestBackupOfASecureCluster backs up a cluster whose members ask for certificates: by
// its name, by endpoints with a certificate, and by endpoints without one, which fails.
func TestBackupOfASecureCluster(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.cluster("sealed")
	c.secure("sealed-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("sealed", 3, etcdVersion, withAutoTLS))
	c.settle(3)
	c.fill()
	endpoints := "  etcdEndpoints: [\"https://sealed-client." + s.namespace + ".svc:2379\"]\n  storageType: PersistentVolumeClaim\n  persistentVolumeClaim: {claimName: backups, path: %s}"
	s.apply(backupManifest("by-name", "  etcdCluster: {name: sealed}"+toVolume))
	s.apply(backupManifest("by-endpoint", "  clientTLSSecret: sealed-client-tls\n"+fmt.Sprintf(endpoints, "with")))
	s.apply(backupManifest("naked", fmt.Sprintf(endpoints, "without")))
	for _, name := range []string{"by-name", "by-endpoint"} {
		b := s.awaitBackup(s.ctx(), name, "success", hasSucceeded)
		s.must(s.checkStored(b.Status.URI), "backup %s", name)
	}
	s.awaitBackup(s.ctx(), "naked", "a failure", func(b *v1beta2.EtcdBackup) bool { return b.Status.Phase == v1beta2.BackupPhaseFailed })
	for _, args := range [][]string{{"get", "etcdbackups,jobs,pods,events", "-o", "yaml"}, {"logs", "-l", "app=etcd-backup", "--tail=-1", "--ignore-errors"}} {
		if strings.Contains(s.kubectl(args...), "PRIVATE KEY") {
			t.Errorf("a key is in kubectl %s", strings.Join(args, " "))
		}
	}
	s.noCanary()
}
