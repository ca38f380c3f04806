// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// restoreManifest returns an EtcdRestore as a user would write it.
func restoreManifest(name, cluster, spec string) string {
	return fmt.Sprintf("apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdRestore\nmetadata:\n  name: %s\nspec:\n  etcdCluster: {name: %s}\n%s\n", name, cluster, spec)
}

// awaitRestore watches an EtcdRestore until done is true of it.
func (s *scenario) awaitRestore(ctx context.Context, name, what string, done func(*v1beta2.EtcdRestore) bool) *v1beta2.EtcdRestore {
	s.Helper()
	view, err := env.Restore(ctx, s.namespace, name)
	s.must(err, "watch restore %s", name)
	defer view.Close()
	var last *v1beta2.EtcdRestore
	err = view.Await(ctx, func(list []*v1beta2.EtcdRestore) bool {
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
		s.Fatalf("restore %s, waiting for %s: %v; at last:\n%s", name, what, err, text)
	}
	return last
}

// restored waits until a restore has ended, which must have been good.
func (s *scenario) restored(name string) *v1beta2.EtcdRestore {
	s.Helper()
	from := time.Now()
	r := s.awaitRestore(s.ctx(), name, "its end", func(r *v1beta2.EtcdRestore) bool {
		return r.Status.Phase == v1beta2.RestorePhaseSucceeded || r.Status.Phase == v1beta2.RestorePhaseFailed
	})
	s.Logf("restore %s: %s after %v: %s", name, r.Status.Phase, time.Since(from).Round(10*time.Millisecond), r.Status.Reason)
	if !r.Status.Succeeded || r.Status.Phase != v1beta2.RestorePhaseSucceeded || r.Status.Reason != "" || r.Status.CompletionTime == nil ||
		!meta.IsStatusConditionTrue(r.Status.Conditions, "Succeeded") || !meta.IsStatusConditionTrue(r.Status.Conditions, "Verified") {
		s.Fatalf("restore %s: %+v", name, r.Status)
	}
	return r
}

// rejectedRestore waits until a restore has failed for a reason.
func (s *scenario) rejectedRestore(name, reason string, words ...string) {
	s.Helper()
	r := s.awaitRestore(s.ctx(), name, "its end", func(r *v1beta2.EtcdRestore) bool {
		return r.Status.Phase == v1beta2.RestorePhaseSucceeded || r.Status.Phase == v1beta2.RestorePhaseFailed
	})
	c := meta.FindStatusCondition(r.Status.Conditions, "Succeeded")
	if r.Status.Phase != v1beta2.RestorePhaseFailed || r.Status.Succeeded || c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason ||
		!meta.IsStatusConditionFalse(r.Status.Conditions, "Verified") {
		s.Fatalf("restore %s was not rejected because of %s: %+v", name, reason, r.Status)
	}
	s.contains(r.Status.Reason, words...)
}

// retriedRestore waits until a restore has met something that may pass, and goes on.
func (s *scenario) retriedRestore(name, reason string) {
	s.Helper()
	s.awaitRestore(s.ctx(), name, reason, func(r *v1beta2.EtcdRestore) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, "Progressing")
		return c != nil && c.Reason == reason && r.Status.Phase == v1beta2.RestorePhaseVerifying
	})
}

// read returns what a linearizable read of one key says.
func (c *cluster) read(key string) *clientv3.GetResponse {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "ask the leader")
	r, err := client.Get(c.ctx(), key)
	c.must(err, "read %s", key)
	return r
}

// spoil changes what is in the cluster after a backup: a key is deleted, one is written
// over and one is new.
func (c *cluster) spoil(data harness.Data) {
	c.Helper()
	ctx := c.within(2 * time.Minute)
	n := 0
	for key := range data {
		var err error
		if n++; n%2 == 0 {
			err = c.members.Delete(ctx, key)
		} else {
			err = c.members.Put(ctx, key, "spoiled")
		}
		c.must(err, "spoil %s", key)
	}
	c.must(c.members.Put(ctx, "data/more", "more"), "write more")
}

// state is what a rejected restore must leave as it is.
type state struct {
	clusterID uint64
	ids       map[string]uint64
	pods      map[string]types.UID
	revision  int64
	data      harness.Data
}

// state returns what the cluster is now.
func (c *cluster) state(data harness.Data) state {
	c.Helper()
	found := state{clusterID: c.clusterID(), ids: c.ids(), pods: map[string]types.UID{}, revision: c.read("x").Header.Revision, data: data}
	for _, p := range c.members.Live() {
		found.pods[p.Name] = p.UID
	}
	return found
}

// untouched fails the test unless the cluster has the ID, the members, the revision and
// the data that it had.
func (c *cluster) untouched(was state) {
	c.Helper()
	c.serves(was)
	if r := c.get().Status.Recovery; r.IsInProgress() {
		c.Errorf("a recovery is under way: %+v", r)
	}
}

// serves fails the test unless the cluster is what it was, whatever is made beside it.
func (c *cluster) serves(was state) {
	c.Helper()
	data := was.data
	now := c.state(data)
	if now.clusterID != was.clusterID || now.revision != was.revision || !maps.Equal(now.ids, was.ids) || !maps.Equal(now.pods, was.pods) {
		was.data, now.data = nil, nil
		c.Errorf("the cluster was %+v and is %+v", was, now)
	}
	c.holds(data)
}

// TestRestoreInPlace spoils the data of a cluster and restores it from an EtcdBackup.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("spoilt", 3, etcdVersion)
	data, clusterID := c.fill(), c.clusterID()
	s.apply(backupManifest("once", "  etcdCluster: {name: spoilt}\n  compression: Zstd"+toVolume))
	backup := s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	c.spoil(data)

	s.apply(restoreManifest("back", "spoilt", "  backup: {name: once}"))
	r := s.restored("back")
	if r.Status.Revision != backup.Status.EtcdRevision {
		t.Errorf("revision %d was restored, %d was stored", r.Status.Revision, backup.Status.EtcdRevision)
	}
	c.settle(3)
	if reasons := c.reasons(); slices.Contains(reasons, "QuorumLost") {
		t.Errorf("a planned restore was called a lost quorum: %q", reasons)
	}
	c.holds(data)
	if got := c.read("data/more"); len(got.Kvs) != 0 || got.Header.Revision < r.Status.Revision+revisionBump {
		t.Errorf("after the restore: %+v", got)
	}
	if c.clusterID() == clusterID {
		t.Error("the cluster ID is the one before")
	}
	client, err := c.members.Client(c.leader().Pod)
	s.must(err, "ask the leader")
	watched := <-client.Watch(s.ctx(), "data/", clientv3.WithPrefix(), clientv3.WithRev(r.Status.Revision))
	if watched.CompactRevision <= r.Status.Revision {
		t.Errorf("a watch that began before is not told: %+v", watched)
	}
	c.gone("pods,pvc", "etcd_retired=spoilt")
	c.undone(r, "once")
	s.kubectl("wait", "--for=delete", "jobs", "-l", "app=etcd-restore", "--timeout=60s")
	s.contains(s.kubectl("get", "etcdrestores"), "NAME", "back", "spoilt", "etcdbackup/once", "Succeeded", fmt.Sprint(r.Status.Revision))
	s.contains(s.kubectl("get", "events", "--field-selector=involvedObject.name=back"), "RestoreVerifying", "RestoreRequested", "RestoreSucceeded")

	// The same backup makes a second cluster, beside the first.
	s.apply(restoreManifest("twin", "twin", "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	twin := s.cluster("twin")
	s.restored("twin")
	twin.settle(1)
	twin.holds(data)
	if got := twin.read("data/more").Header.Revision; got != backup.Status.EtcdRevision {
		t.Errorf("the new cluster has revision %d, not %d", got, backup.Status.EtcdRevision)
	}
	c.holds(data)
	s.apply(restoreManifest("taken", "twin", "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	s.rejectedRestore("taken", "ClusterExists", "twin", "clusterTemplate")
}

// undone takes what a restore has replaced into another cluster, which then has what was
// written after the backup. The cluster itself goes on from the backup if it is lost.
func (c *cluster) undone(r *v1beta2.EtcdRestore, backup string) {
	c.Helper()
	copied := r.Status.PreRestoreBackup
	if copied == nil || copied.Revision <= r.Status.Revision || copied.URI == "" {
		c.Fatalf("the pre-restore backup is %+v, revision %d was restored", copied, r.Status.Revision)
	}
	if last := c.get().Status.LastBackup; last == nil || last.Name != backup {
		c.Errorf("the last backup is %+v", last)
	}
	c.apply(restoreManifest("undo", "undone", "  backup: {name: "+copied.Backup+"}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	undone := c.cluster("undone")
	c.restored("undo")
	undone.settle(1)
	if got := undone.read("data/more"); len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "more" || got.Header.Revision != copied.Revision {
		c.Errorf("the pre-restore backup holds %+v", got)
	}
	c.kubectl("delete", "etcdcluster", "undone", "--wait=false")
}

// TestRestoreSecured destroys every member and volume of a cluster with TLS and users.
func TestRestoreSecured(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.cluster("vault")
	c.secure("vault-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("vault", 3, etcdVersion, withAutoTLS, withVolumes))
	c.settle(3)
	data := c.fill()
	c.guard()
	s.apply(backupManifest("sealed", "  etcdCluster: {name: vault}"+toVolume))
	backup := s.awaitBackup(s.ctx(), "sealed", "success", hasSucceeded)
	for _, p := range c.members.Live() {
		s.kubectl("delete", "pvc", p.Name, "--wait=false")
	}
	s.kubectl("delete", "pods", "-l", "etcd_cluster=vault", "--force", "--grace-period=0")
	c.await(s.within(time.Minute), "the status to report the loss", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	})
	s.apply(restoreManifest("vault", "vault", "  backup: {name: sealed}"))
	r := s.restored("vault")
	c.settle(3)
	c.holds(data)
	if r.Status.Revision != backup.Status.EtcdRevision || c.read("x").Header.Revision < r.Status.Revision+revisionBump {
		t.Errorf("revision %d, %d was stored", r.Status.Revision, backup.Status.EtcdRevision)
	}
	for _, m := range c.get().Status.MemberStatuses {
		if m.Claim == "" {
			t.Errorf("member %s has no volume", m.Name)
		}
	}
	c.guarded()
	s.noCanary()
}

// TestRestoreAcrossVersions restores a backup at the next minor version. The restore of a
// backup at an older version is rejected.
func TestRestoreAcrossVersions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	old := s.create("old", 1, "3.5.35")
	data := old.fill()
	newer := s.create("newer", 1, "3.7.3")
	newer.fill()
	here := s.create("here", 1, etcdVersion)
	kept := here.state(here.fill())
	s.apply(backupManifest("old", "  etcdCluster: {name: old}"+toVolume))
	s.apply(backupManifest("newer", "  etcdCluster: {name: newer}"+toVolume))
	s.awaitBackup(s.ctx(), "old", "success", hasSucceeded)
	s.awaitBackup(s.ctx(), "newer", "success", hasSucceeded)

	s.apply(restoreManifest("backwards", "here", "  backup: {name: newer}"))
	s.rejectedRestore("backwards", "Unsupported", "3.7", etcdVersion)
	here.untouched(kept)

	s.apply(restoreManifest("onwards", "risen", "  backup: {name: old}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	risen := s.cluster("risen")
	s.restored("onwards")
	if object := risen.settle(1); object.Status.CurrentVersion != etcdVersion {
		t.Errorf("it runs %s", object.Status.CurrentVersion)
	}
	risen.holds(data)
}

// TestRestoreCancelled deletes the EtcdRestore while the recovery member has no room.
func TestRestoreCancelled(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("spared", 1, etcdVersion, withVolumes)
	s.apply(backupManifest("once", "  etcdCluster: {name: spared}"+toVolume))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	s.kubectl("wait", "--for=delete", "jobs", "-l", "app=etcd-backup", "--timeout=60s")
	kept := c.state(c.fill())
	// There is room for the volumes of backups and of the member, for no more.
	s.kubectl("create", "quota", "full", "--hard=persistentvolumeclaims=2")
	s.apply(restoreManifest("hasty", "spared", "  backup: {name: once}"))
	s.awaitRestore(s.ctx(), "hasty", "the new member", func(r *v1beta2.EtcdRestore) bool { return r.Status.Phase == v1beta2.RestorePhaseRestoring })
	s.kubectl("delete", "etcdrestore", "hasty", "--timeout=60s")
	c.await(s.within(time.Minute), "the end of the restore", func(object *clusterObject) bool {
		return object.Status.Recovery != nil && object.Status.Recovery.Phase == v1beta2.RecoveryPhaseAbandoned &&
			is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
	c.untouched(kept)
	c.gone("pods,pvc", "etcd_recovery=spared")

	// A cluster that was made for a restore goes with it. Its member has no room either.
	s.apply(restoreManifest("early", "unborn", "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+
		", pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}}}"))
	exists := func() bool {
		_, err := env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace).Get(s.ctx(), "unborn", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.Fatalf("read cluster unborn: %v", err)
		}
		return err == nil
	}
	s.until(s.within(time.Minute), "the cluster of the restore", exists)
	s.kubectl("delete", "etcdrestore", "early", "--timeout=60s")
	s.until(s.within(time.Minute), "that cluster to go", func() bool { return !exists() })
}

// memberSum is what the name of an automatic restore has of the members.
func (c *cluster) memberSum() string {
	c.Helper()
	var ids []string
	for _, id := range c.ids() {
		ids = append(ids, fmt.Sprintf("%x", id))
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return hex.EncodeToString(sum[:4])
}

// TestRestoreAutomatic takes everything from a cluster that may be recovered by itself.
func TestRestoreAutomatic(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("alone", 3, etcdVersion, "\n  recovery: {quorumLoss: Automatic}")
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: alone}"+toVolume))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	c.await(s.ctx(), "its last backup", func(object *clusterObject) bool { return object.Status.LastBackup != nil })
	name := "alone-first-aid-" + c.memberSum()
	var pods []string
	for _, p := range c.members.Live() {
		pods = append(pods, p.Name)
	}
	s.kubectl(append([]string{"delete", "pods", "--force", "--grace-period=0"}, pods...)...)
	c.await(s.within(time.Minute), "the status to report the loss", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue)
	})
	s.restored(name)
	c.settle(3)
	c.holds(data)
	c.bumped()
	if !slices.Contains(c.reasons(), "RestoreRequested") {
		t.Errorf("no event tells of it: %v", c.reasons())
	}
}
