// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// recoveryMember remembers the pod of the recovery member of a cluster. The result waits until there was one, and
// returns it.
func (s *scenario) recoveryMember(cluster string) func() *corev1.Pod {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx())
	s.Cleanup(cancel)
	found := make(chan *corev1.Pod, 1)
	go func() {
		for ctx.Err() == nil {
			pods, err := env.Kube.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: resources.LabelRecovery + "=" + cluster})
			if err == nil && len(pods.Items) > 0 {
				found <- &pods.Items[0]
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() *corev1.Pod {
		s.Helper()
		select {
		case pod := <-found:
			return pod
		case <-s.ctx().Done():
			s.Fatalf("cluster %s had no recovery member", cluster)
			return nil
		}
	}
}

// holdsNothingOf makes sure that no pod of a member has anything of what restored its data: init containers, this
// service account, the Secrets and the PVC of a store.
func (c *cluster) holdsNothingOf(account string) {
	c.Helper()
	for _, p := range c.members.Live() {
		if resources.Fills(p) || p.Spec.ServiceAccountName == account {
			c.Errorf("pod %s has the service account %q and the init containers %v", p.Name, p.Spec.ServiceAccountName, p.Spec.InitContainers)
		}
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.Secret != nil && !strings.HasPrefix(v.Secret.SecretName, c.name) || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != p.Name {
				c.Errorf("pod %s has volume %+v", p.Name, v)
			}
		}
	}
}

// TestRestoredNodeRebooted reboots the node of two restored clusters of one member, with a volume and without,
// after the Secret of the store was deleted, and while the store does not respond. The members come back with their data.
func TestRestoredNodeRebooted(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := start(t)
	store := s.s3()
	node := s.freeNode()
	selector := "\n    nodeSelector: {kubernetes.io/hostname: " + node + "}"
	clusters := []*cluster{
		s.create("kept", 1, etcdVersion, withVolumes, selector),
		s.create("plain", 1, etcdVersion, "\n  pod:", selector),
	}
	data := make([]harness.Data, len(clusters))
	for i, c := range clusters {
		data[i] = c.fill()
		s.apply(backupManifest(c.name, "  etcdCluster: {name: "+c.name+"}"+toS3("backups/"+c.name, "aws")))
		s.awaitBackup(s.ctx(), c.name, "success", hasSucceeded)
		c.spoil(data[i])
		s.apply(restoreManifest(c.name, c.name, "  backup: {name: "+c.name+"}"))
	}
	for i, c := range clusters {
		s.restored(c.name)
		c.settle(1)
		c.holdsNothingOf("backups")
		c.holds(data[i])
	}
	s.kubectl("delete", "secret", "aws")
	store.setReachable(false)
	s.surviveReboot(node, map[*cluster]harness.Data{clusters[0]: data[0], clusters[1]: data[1]})
}

// freeNode returns a node without a program of ours.
func (s *scenario) freeNode() string {
	s.Helper()
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	occupied := s.programNodes()
	i := slices.IndexFunc(nodes, func(n string) bool { return !slices.Contains(occupied, n) })
	if i < 0 {
		s.Fatalf("the programs run on %v: no node is free of them", occupied)
	}
	return nodes[i]
}

// surviveReboot reboots a node that holds all members of clusters. They come back as the members
// that they were, with their data.
func (s *scenario) surviveReboot(node string, data map[*cluster]harness.Data) {
	s.Helper()
	ids := map[*cluster]map[string]uint64{}
	for c := range data {
		ids[c] = c.ids()
	}
	s.node("reboot", node)
	s.awaitNode(node, corev1.ConditionTrue)
	for c, d := range data {
		c.must(c.members.AwaitVoters(s.ctx(), len(ids[c])), "after the reboot")
		c.settle(len(ids[c]))
		c.holds(d)
		if now := c.ids(); !maps.Equal(now, ids[c]) {
			c.Errorf("cluster %s has the members %v, and had %v", c.name, now, ids[c])
		}
	}
}

// TestBegunOtherwiseNodeRebooted reboots the node of three clusters. One was recovered from a volume, one took
// PVCs of an earlier cluster back, and one took over a running etcd.
func TestBegunOtherwiseNodeRebooted(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 10*time.Minute)
	node := s.freeNode()
	selector := "\n    nodeSelector: {kubernetes.io/hostname: " + node + "}"

	recovered := s.create("dark", 3, etcdVersion, withVolumes, selector)
	lost := recovered.fill()
	survivor := recovered.leader().Pod
	recovered.destroy(survivor)
	recovered.awaitLoss(survivor.Name)
	recovered.stopsResponding(survivor)
	_, err := recovered.recoverNow()
	s.must(err, "ask for the recovery")
	recovered.recovered(3)

	desired := manifest("back", 1, etcdVersion, withVolumes, selector, "\n    persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}")
	back := s.cluster("back")
	s.apply(desired)
	back.settle(1)
	kept, names := back.fill(), slices.Collect(maps.Keys(back.pvcs()))
	s.kubectl("delete", "etcdcluster", "back", "--wait")
	s.awaitDeleted("pods,services,pdb,configmaps", "etcd_cluster=back")
	s.apply(desired)
	back.findsVolumes(names...)
	back.patch(takeBack)
	back.settle(1)

	s.running(fmt.Sprintf(chartEtcd, etcdVersion, s.namespace))
	taken := s.begin(s.cluster("old"))
	const existing = `
  bootstrap:
    existing:
      clientEndpoints: ["http://old:2379"]`
	s.apply(manifest("joined", 3, etcdVersion, "\n  pod:", selector, existing))
	taken.joined()
	s.apply(manifest("joined", 3, etcdVersion, "\n  pod:", selector, existing, "\n      oldMembers: Remove"))
	taken.taken()

	s.surviveReboot(node, map[*cluster]harness.Data{recovered: lost, back: kept, taken.own: taken.data})
}

// TestRestoredManifestStartsAnywhere applies the manifest of a cluster that a restore made in another namespace,
// as it is exported, and with the annotation that it had before it served.
func TestRestoredManifestStartsAnywhere(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.s3()
	c := s.create("origin", 1, etcdVersion)
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: origin}"+toS3("backups/once", "aws")))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	s.apply(restoreManifest("twin", "twin", "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1, version: "+etcdVersion+"}"))
	s.restored("twin")
	twin := s.cluster("twin")
	object := twin.settle(1)
	twin.holds(data)
	twin.await(s.ctx(), "the cluster to forget its EtcdRestore", func(object *clusterObject) bool {
		return object.Annotations[v1beta2.AnnotationRestore] == "" && object.Annotations[v1beta2.AnnotationRestoreUID] == ""
	})

	elsewhere := s.another("elsewhere")
	exported := func(name string, annotations map[string]string) string {
		raw, err := yaml.Marshal(map[string]any{
			"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
			"metadata": map[string]any{"name": name, "annotations": annotations}, "spec": object.Spec,
		})
		s.must(err, "export the manifest")
		return string(raw)
	}
	elsewhere.apply(exported("twin", twin.get().Annotations))
	elsewhere.apply(exported("stale", map[string]string{v1beta2.AnnotationRestore: "twin"}))
	elsewhere.cluster("twin").settle(1)
	stale := elsewhere.cluster("stale")
	blocked := stale.await(s.ctx(), "a reason to wait", func(object *clusterObject) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == "RestoreNotFound"
	})
	s.contains(blocked.Status.BlockedBy.Unblock, "remove its annotation "+v1beta2.AnnotationRestore)
	stale.kubectl("annotate", "etcd", "stale", v1beta2.AnnotationRestore+"-")
	stale.settle(1)
}

// TestPreRestoreBackupWhileAway: the pre-restore backup of the only member has failed, and then the member does not
// respond for longer than a restore waits for one that it has never seen. The member comes back with its data.
func TestPreRestoreBackupWhileAway(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	s := start(t)
	s.s3()
	c := s.create("away", 1, etcdVersion, copiesTo("none/copies", "aws"))
	data := c.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: away}"+toS3("backups/once", "aws")))
	s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	kept := c.state(data)
	s.apply(restoreManifest("back", "away", "  backup: {name: once}"))
	c.awaitNoCopy("back", kept)
	member := c.members.Live()[0]
	c.hang(member)
	c.await(s.ctx(), "the status to report that the member does not respond", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) || is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	})
	c.keeps(45*time.Second, "a recovery has begun", func(object *clusterObject) bool { return object.Status.Recovery != nil })
	c.resume(member)
	c.awaitNoCopy("back", kept)
}
