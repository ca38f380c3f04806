// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	savePod      = "etcd-operator-apiserver-save"
	bringBackPod = "etcd-operator-apiserver-bring-back"
	savedAt      = "/copy/etcd-operator.db"
)

// TestOldAPI saves what the API server stores, goes on, and brings it back, as
// docs/how-to/operator-state.md says, while the controller runs. The members and their data must
// stay as they are: the cluster was restored twice meanwhile, and the API is from before.
func TestOldAPI(t *testing.T) {
	s := start(t)
	s.onlyTest()
	s.volume()
	c := s.create("returned", 1, etcdVersion)
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: returned}"+toVolume))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)

	// The API is saved while a restore has not begun: its Job has no place.
	s.kubectl("create", "quota", "full", "--hard=pods=0")
	s.apply(restoreManifest("first", "returned", "  backup: {name: once}"))
	s.awaitRestore(s.within(time.Minute), "first", "the status to report the quota", func(r *v1beta2.EtcdRestore) bool {
		return reportsRejection(r.Status.Conditions)
	})
	saved := s.saveAPI()

	s.kubectl("patch", "quota", "full", "--type=merge", "-p", `{"spec":{"hard":{"pods":"20"}}}`)
	s.restored("first")
	c.settle(1)
	c.holds(data)
	s.apply(restoreManifest("second", "returned", "  backup: {name: once}"))
	s.restored("second")
	c.settle(1)
	s.kubectl("scale", "etcdcluster/returned", "--replicas=3")
	c.settle(3)
	newest := c.fill()
	was, record := c.state(newest), c.record()

	s.bringAPIBack(saved)
	first := s.awaitRestore(s.ctx(), "first", "its end", func(r *v1beta2.EtcdRestore) bool {
		return r.Status.Phase == v1beta2.RestorePhaseSucceeded || r.Status.Phase == v1beta2.RestorePhaseFailed
	})
	if first.Status.Succeeded {
		t.Errorf("a restore from before was carried out again: %+v", first.Status)
	}
	s.contains(first.Status.Reason, "left as it was", "carried out before", "was rolled back")
	s.contains(s.kubectl("get", "etcdrestores", "-o", "name"), "first")

	// The old object declares one member, and its owner three.
	s.kubectl("scale", "etcdcluster/returned", "--replicas=3")
	c.settle(3)
	c.holds(newest)
	if id := c.clusterID(); id != was.clusterID {
		t.Errorf("the cluster ID is %x and was %x", id, was.clusterID)
	}
	if now := c.record(); now != record {
		t.Errorf("the bootstrap record is %q and was %q", now, record)
	}
	if !slices.ContainsFunc(c.members.Live(), func(p *corev1.Pod) bool { return was.pods[p.Name] == p.UID }) {
		t.Errorf("no member of before is left of %v", was.pods)
	}
	c.awaitConditions(map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable: corev1.ConditionTrue, v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
		v1beta2.ClusterConditionDegraded: corev1.ConditionFalse, v1beta2.ClusterConditionRecovering: corev1.ConditionFalse,
	})
}

// TestScheduledBackupOfTheAPI restores what the single API server stores from its newest scheduled
// backup, as docs/how-to/operator-state.md says. What was changed since the backup is undone, and the
// members and their data stay as they are. The backups go on.
func TestScheduledBackupOfTheAPI(t *testing.T) {
	s := start(t)
	s.onlyTest()
	c := s.create("kept", 1, etcdVersion)
	was := c.state(c.fill())
	s.Cleanup(s.scheduleLater)
	s.schedule("* * * * *")
	s.awaitStorageBackup(time.Now())

	// Backups go on meanwhile: one may run when the copy is taken, and a later one when the API stops.
	newest := filepath.Join(s.TempDir(), "newest.db")
	s.storage("backup", newest)
	s.kubectl("label", "etcdcluster/kept", "since=the-backup")
	s.storage("restore-single", newest)

	if value, found := c.get().Labels["since"]; found {
		t.Errorf("the label %q from after the backup is still there", value)
	}
	c.settle(1)
	c.untouched(was)
	s.awaitStorageBackup(time.Now()) // backups are made again
}

// schedule changes when the storage is backed up.
func (s *scenario) schedule(cron string) {
	s.Helper()
	s.system("", "patch", "etcdbackup", storageName, "--type=merge", "-p", schedulePatch(cron))
}

// scheduleLater gives the backups of the storage the schedule of the installation.
func (s *scenario) scheduleLater() {
	s.kubectlLater("-n", harness.SystemNamespace, "patch", "etcdbackup", storageName, "--type=merge", "-p", schedulePatch("@every 30m"))
}

func schedulePatch(cron string) string {
	return fmt.Sprintf(`{"spec":{"backupPolicy":{"schedule":%q}}}`, cron)
}

// awaitStorageBackup waits for a verified backup of the storage that ended after a time.
func (s *scenario) awaitStorageBackup(after time.Time) {
	s.Helper()
	ctx := s.within(3 * time.Minute)
	view, err := env.Backup(ctx, harness.SystemNamespace, storageName)
	s.must(err, "watch EtcdBackup %s", storageName)
	defer view.Close()
	var last v1beta2.BackupStatus
	err = view.Await(ctx, func(list []*v1beta2.EtcdBackup) bool {
		return slices.ContainsFunc(list, func(b *v1beta2.EtcdBackup) bool {
			last = b.Status
			return b.Status.LastSuccessDate.After(after) && b.Status.Verified
		})
	})
	s.must(err, "wait for a verified backup after %s of EtcdBackup %s; its status is %+v", after.UTC().Format(time.TimeOnly), storageName, last)
}

// onlyTest waits until no cluster and no member is left of the tests before. A cluster would come back
// with the others, and no API server starts with an empty storage beside a member. The tests that
// run in parallel begin when this test has ended.
func (s *scenario) onlyTest() {
	s.Helper()
	view, err := env.Clusters(s.ctx(), metav1.NamespaceAll)
	s.must(err, "watch all clusters")
	defer view.Close()
	var left []string
	err = view.Await(s.within(time.Minute), func(list []*v1beta2.EtcdCluster) bool {
		left = left[:0]
		for _, c := range list {
			left = append(left, c.Namespace+"/"+c.Name)
		}
		return len(list) == 0
	})
	s.must(err, "wait until no other cluster is left; this test needs a Kubernetes without any but its own, and there are %v", left)
	members, err := env.Pods(s.ctx(), metav1.NamespaceAll, "app=etcd,etcd_cluster")
	s.must(err, "watch the members of all clusters")
	defer members.Close()
	s.must(members.Await(s.within(2*time.Minute), func(pods []*corev1.Pod) bool { return len(pods) == 0 }), "wait for the members of other tests to go")
}

// record returns what the record says about the start of the cluster.
func (c *cluster) record() [2]string {
	c.Helper()
	live, err := env.Kube.CoreV1().ConfigMaps(c.namespace).Get(c.ctx(), resources.RecordName(c.get()), metav1.GetOptions{})
	c.must(err, "read the record")
	record := resources.ParseRecord(live)
	return [2]string{record.BootstrapMember, record.ClusterID}
}

// system runs kubectl in the namespace of the programs.
func (s *scenario) system(stdin string, args ...string) string {
	s.Helper()
	out, err := env.Kubectl(s.ctx(), harness.Command{Args: append([]string{"-n", harness.SystemNamespace}, args...), Stdin: stdin})
	s.must(err, "an administrator's command")
	return out
}

// helper runs a pod that works on the volume of the API server.
func (s *scenario) helper(name, manifest string) {
	s.Helper()
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := env.Kubectl(ctx, harness.Command{Args: []string{"-n", harness.SystemNamespace, "delete", "pod", name, "--ignore-not-found", "--wait=true"}})
		if err != nil {
			s.Errorf("delete pod %s: %v", name, err)
		}
	})
	text, err := os.ReadFile(env.Artifact("apiserver-data", manifest))
	s.must(err, "read a manifest")
	s.system(string(text), "apply", "-f", "-")
}

// saveAPI returns a snapshot of what the API server stores.
func (s *scenario) saveAPI() string {
	s.Helper()
	s.helper(savePod, "save.yaml")
	s.system("", "wait", "--for=condition=Ready", "pod/"+savePod, "--timeout=2m")
	saved := s.system("", "exec", savePod, "-c", "shell", "--", "cat", savedAt)
	s.system("", "delete", "pod", savePod)
	return saved
}

// bringAPIBack stops the API server, makes its data from a snapshot and starts it again.
func (s *scenario) bringAPIBack(saved string) {
	s.Helper()
	from := time.Now()
	replicas, err := env.ScaleProgram(s.ctx(), harness.APIServer, 0)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := env.ScaleProgram(ctx, harness.APIServer, max(replicas, 1)); err != nil {
			s.Errorf("bring the API server back: %v", err)
		}
	})
	s.must(err, "stop the API server")
	s.helper(bringBackPod, "bring-back.yaml")
	pods, err := env.Pods(s.ctx(), harness.SystemNamespace, "app.kubernetes.io/component=apiserver-bring-back")
	s.must(err, "watch pod %s", bringBackPod)
	defer pods.Close()
	s.must(pods.Await(s.within(2*time.Minute), func(list []*corev1.Pod) bool {
		return slices.ContainsFunc(list, func(p *corev1.Pod) bool {
			return len(p.Status.InitContainerStatuses) > 0 && p.Status.InitContainerStatuses[0].State.Running != nil
		})
	}), "start pod %s", bringBackPod)
	s.system(saved, "exec", "-i", bringBackPod, "-c", "shell", "--", "sh", "-c", "cat > "+savedAt+".part && mv "+savedAt+".part "+savedAt)
	s.system("", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+bringBackPod, "--timeout=2m")
	s.system("", "delete", "pod", bringBackPod)
	_, err = env.ScaleProgram(s.ctx(), harness.APIServer, max(replicas, 1))
	s.must(err, "start the API server")
	s.Logf("the API is as it was before, after %v", time.Since(from).Round(100*time.Millisecond))
}
