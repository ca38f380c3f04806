// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const rebuildPod = "etcd-operator-apiserver-rebuild"

// TestRebuiltAPI loses what the API server stores, without a backup. The EtcdClusters are made again
// from their records, as docs/how-to/operator-state.md says, and keep their UIDs: Kubernetes
// deletes nothing of them, and members go on in their pods.
func TestRebuiltAPI(t *testing.T) {
	s := startFor(t, 5*time.Minute)
	s.onlyTest()
	kept := s.create("kept", 3, etcdVersion, withVolumes)
	plain := s.create("plain", 1, etcdVersion, "\n  etcd: {snapshotCount: 5000}")
	s.kubectl("annotate", "etcdcluster/plain", "example.com/team=shop")
	s.kubectl("scale", "etcdcluster/plain", "--replicas=3")
	plain.settle(3)
	type was struct {
		uid   string
		state state
		data  harness.Data
	}
	before := map[*cluster]was{}
	for _, c := range []*cluster{kept, plain} {
		data := c.fill()
		before[c] = was{string(c.get().UID), c.state(data), data}
	}

	s.bringAPIBack(s.rebuildAPI())
	for c, was := range before {
		object := c.settle(3)
		if got := string(object.UID); got != was.uid {
			t.Errorf("the UID of %s changed from %s to %s", c.name, was.uid, got)
		}
		c.untouched(was.state)
		c.holds(was.data)
		c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
			v1beta2.ClusterConditionAvailable: corev1.ConditionTrue, v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
		})
	}
	if object := plain.get(); object.Annotations["example.com/team"] != "shop" || object.Spec.Etcd == nil || object.Spec.Etcd.SnapshotCount == nil {
		t.Errorf("the declaration is not as it was: %+v %+v", object.Annotations, object.Spec)
	}
	s.kubectl("scale", "etcdcluster/plain", "--replicas=1")
	plain.settle(1)
	plain.holds(before[plain].data)
}

// rebuildAPI returns a snapshot that is made from the records.
func (s *scenario) rebuildAPI() string {
	s.Helper()
	file := env.Artifact("apiserver-data", "rebuild.yaml")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"delete", "--ignore-not-found", "-f", file}}); err != nil {
			s.Errorf("delete what rebuilds the API: %v", err)
		}
	})
	s.system("", "apply", "-f", file)
	s.system("", "wait", "--for=condition=Ready", "pod/"+rebuildPod, "--timeout=60s")
	logs := s.system("", "logs", rebuildPod, "-c", "rebuild")
	if !strings.Contains(logs, "has 2 EtcdClusters") {
		s.Fatalf("the records describe:\n%s", logs)
	}
	rebuilt := s.system("", "exec", rebuildPod, "-c", "shell", "--", "cat", savedAt)
	s.system("", "delete", "-f", file)
	return rebuilt
}
