// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// deletedInterval is the time between two lists of the objects of a deleted cluster.
const deletedInterval = 500 * time.Millisecond

// TestDelete deletes a cluster: everything that it owned goes with it.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("gone", 3, etcdVersion, withVolumes)
	s.kubectl("delete", "etcdcluster", "gone", "--wait")
	c.must(c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool { return len(pods) == 0 }), "the pods to go")
	s.awaitDeleted("pods,services,pvc,pdb", "etcd_cluster=gone")
}

// awaitDeleted waits until no object of these kinds has this label.
func (s *scenario) awaitDeleted(kinds, label string) {
	s.Helper()
	var left string
	err := wait.PollUntilContextCancel(s.within(60*time.Second), deletedInterval, true, func(context.Context) (bool, error) {
		left = s.kubectl("get", kinds, "-l", label, "-o", "name")
		return left == "", nil
	})
	s.must(err, "these are left: %s", left)
}

// TestRecreate deletes a cluster and creates one of the same name before the first one is
// deleted. They have nothing in common.
func TestRecreate(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("again", 3, etcdVersion)
	c.fill()
	old, oldID := c.get(), c.clusterID()
	s.kubectl("delete", "etcdcluster", "again", "--wait=false")
	s.kubectl("wait", "--for=delete", "etcdcluster/again", "--timeout=30s")
	s.apply(manifest("again", 3, etcdVersion))
	object := c.settle(3)
	if object.UID == old.UID {
		t.Fatalf("the cluster was not made again")
	}
	if id := c.clusterID(); id == oldID {
		t.Errorf("the new cluster has the old one's ID %x", id)
	}
	for _, p := range c.members.Live() {
		if p.OwnerReferences[0].UID != object.UID {
			t.Errorf("pod %s belongs to %v", p.Name, p.OwnerReferences)
		}
	}
	c.holds(harness.Data{})
}

func (c *cluster) clusterID() uint64 {
	c.Helper()
	var id uint64
	client, err := c.members.Client(c.members.Live()[0])
	c.must(err, "ask a member")
	r, err := client.Get(c.ctx(), "a", clientv3.WithSerializable())
	c.must(err, "ask a member")
	id = r.Header.ClusterId
	return id
}

// TestKubectlEdit changes a cluster in an editor.
func TestKubectlEdit(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("edited", 1, etcdVersion)
	data := c.fill()
	s.edit("edited", "s/size: 1/size: 3/")
	c.settle(3)
	c.holds(data)
}

// edit runs kubectl edit with sed as the editor.
func (s *scenario) edit(name, script string) {
	s.Helper()
	editor := filepath.Join(s.TempDir(), "editor")
	s.must(os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i '"+script+"' \"$1\"\n"), 0o700), "write an editor")
	out, err := env.Kubectl(s.ctx(), harness.Command{
		Args: []string{"-n", s.namespace, "edit", "etcdcluster", name},
		Env:  []string{"KUBE_EDITOR=" + editor},
	})
	s.must(err, "edit")
	s.contains(out, "edited")
}

// paused is a cluster that is never started: enough to see how the API behaves.
const paused = "\n  paused: true"

// TestServerSideApply lets two managers own a field each and collide on one.
func TestServerSideApply(t *testing.T) {
	t.Parallel()
	s := start(t)
	apply := func(text string, args ...string) (string, error) {
		return env.Kubectl(s.ctx(), harness.Command{
			Args:  append([]string{"-n", s.namespace, "apply", "--server-side", "-f", "-"}, args...),
			Stdin: text,
		})
	}
	_, err := apply(manifest("owned", 3, etcdVersion, paused), "--field-manager=first")
	s.must(err, "the first manager")
	_, err = apply(manifest("owned", 5, etcdVersion), "--field-manager=second")
	if err == nil {
		t.Fatal("the second manager was not told that the size is the first one's")
	}
	s.contains(err.Error(), "conflict", "first", ".spec.size")
	if strings.Contains(err.Error(), ".spec.version") {
		t.Errorf("a field that both want alike is no conflict: %v", err)
	}
	_, err = apply(manifest("owned", 5, etcdVersion), "--field-manager=second", "--force-conflicts")
	s.must(err, "the second manager by force")
	// What only the first one set stays, and goes when the first one drops it.
	if spec := s.cluster("owned").get().Spec; *spec.Replicas != 5 || !spec.Paused {
		t.Errorf("the spec is %+v", spec)
	}
	// The controller writes the status, and must not take fields of the spec over.
	managers := s.kubectl("get", "etcd", "owned", "--show-managed-fields", "-o",
		`jsonpath={range .metadata.managedFields[?(@.subresource=="status")]}{.fieldsV1}{end}`)
	if strings.Contains(managers, "f:spec") {
		t.Errorf("writing the status owns fields of the spec: %s", managers)
	}
}

// TestExplain reads the documentation of fields.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.contains(s.kubectl("explain", "etcdcluster.spec.pod"),
		"PodPolicy", "persistentVolumeClaimSpec", "topologySpreadConstraints", "a volume of its own")
	s.contains(s.kubectl("explain", "etcdcluster.spec.pod.tolerations"), "Toleration", "effect")
	s.contains(s.kubectl("explain", "etcdcluster.status.conditions"), "lastTransitionTime")
	s.contains(s.kubectl("explain", "etcdbackup.spec"), "storageType", "etcdEndpoints")
	s.contains(s.kubectl("explain", "etcdrestore.spec"), "etcdCluster", "revisionBump")
	s.contains(s.kubectl("api-resources", "--api-group=etcd.database.coreos.com"), "etcdclusters", "etcdbackups", "etcdrestores")
}

// TestInvalid makes many mistakes at once; all of them are named.
func TestInvalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	said := s.rejected(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: wrong}
spec:
  size: 9
  version: three
  repository: "not a repository"
  podDisruptionBudget: Sometimes
  pod:
    labels: {app: mine, etcd_node: mine}
    resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1}}
  etcd:
    extraArgs: ["--data-dir=/tmp", "--force-new-cluster"]
    heartbeatInterval: 1s
    electionTimeout: 2s
`, "apply", "-f", "-")
	s.contains(said, "spec.size", "spec.version", "spec.repository", "spec.podDisruptionBudget", "spec.pod.labels",
		"spec.pod.resources", "spec.etcd.extraArgs[0]", "spec.etcd.extraArgs[1]", "spec.etcd.electionTimeout")
	s.contains(s.rejected(strings.Replace(manifest("unknown", 3, etcdVersion), "size", "sise", 1), "apply", "-f", "-"), "spec.sise")
	s.contains(s.rejected(manifest(strings.Repeat("long", 14), 3, etcdVersion), "apply", "-f", "-"), "metadata.name", "52")

	// A warning does not reject a request.
	_, warned, err := env.KubectlOutputs(s.ctx(), harness.Command{
		Args:  []string{"-n", s.namespace, "apply", "-f", "-"},
		Stdin: manifest("even", 4, etcdVersion, paused, "\n  pod: {busyboxImage: busybox}"),
	})
	s.must(err, "apply an even size")
	s.contains(warned, "Warning:", "spec.size", "spec.pod.busyboxImage")
}

// TestDeletionProtection: the deletion of a protected cluster is rejected, also together with
// the other clusters of its namespace, until the protection is removed.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply(manifest("precious", 1, etcdVersion, paused, "\n  deletionProtection: true"))
	for _, args := range [][]string{{"delete", "etcd", "precious"}, {"delete", "etcd", "--all"}} {
		s.contains(s.rejected("", args...), "precious", "deletionProtection")
	}
	if object := s.cluster("precious").get(); object.DeletionTimestamp != nil {
		t.Fatal("it is being deleted")
	}
	// A client with the original types sends the whole object without the fields that it does not know.
	_, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"-n", s.namespace, "replace", "-f", "-"}, Stdin: manifest("precious", 1, etcdVersion, paused)})
	s.must(err, "replace the object")
	s.kubectl("patch", "etcd", "precious", "--type=merge", "-p", `{"spec":{"deletionProtection":null}}`)
	s.contains(s.rejected("", "delete", "etcd", "precious"), "deletionProtection")
	s.kubectl("patch", "etcd", "precious", "--type=merge", "-p", `{"spec":{"deletionProtection":false}}`)
	s.kubectl("delete", "etcd", "precious")
}
