// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// kstatus returns what Flux and Helm make of a live object.
func (s *scenario) kstatus(object string) status.Status {
	s.Helper()
	live := &unstructured.Unstructured{}
	s.must(json.Unmarshal([]byte(s.kubectl("get", object, "-o", "json")), live), "read %s", object)
	result, err := status.Compute(live)
	s.must(err, "compute the status of %s", object)
	return result.Status
}

// waitReady waits as a script does.
func (s *scenario) waitReady(object string) {
	s.Helper()
	s.kubectl("wait", "--for=condition=Ready", object, "--timeout=150s")
}

// TestManifestWithoutVersion applies the oldest form of a manifest: it comes up with the
// version that the release recommends, and says when it is Ready, also after a change.
func TestManifestWithoutVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("plain")
	plain := strings.Replace(manifest("plain", 1, ""), "  version: \"\"\n", "", 1)
	if strings.Contains(plain, "version:") {
		t.Fatalf("the manifest names a version:\n%s", plain)
	}
	s.apply(plain)
	s.waitReady("etcd/plain")
	object := c.get()
	if object.Spec.Version != v1beta2.DefaultVersion || object.Status.CurrentVersion != v1beta2.DefaultVersion {
		t.Errorf("version %s is declared and %s runs, want %s", object.Spec.Version, object.Status.CurrentVersion, v1beta2.DefaultVersion)
	}
	data := c.fill()
	if got := s.kstatus("etcd/plain"); got != status.CurrentStatus {
		t.Errorf("kstatus is %s, want Current", got)
	}

	s.apply(strings.Replace(plain, "size: 1", "size: 3", 1))
	if got := s.kstatus("etcd/plain"); got != status.InProgressStatus {
		t.Errorf("right after a change kstatus is %s, want InProgress", got)
	}
	s.waitReady("etcd/plain")
	if object = c.get(); len(object.Status.Members.Ready) != 3 {
		t.Errorf("Ready with members %+v", object.Status.Members)
	}
	if got := s.kstatus("etcd/plain"); got != status.CurrentStatus {
		t.Errorf("after the change kstatus is %s, want Current", got)
	}
	c.holds(data)
}

// TestLeaderChangeKeepsReady moves the leadership around: nothing that waits for the
// cluster hears of it.
func TestLeaderChangeKeepsReady(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("led", 3, etcdVersion)
	s.waitReady("etcd/led")
	before := condition(c.get(), v1beta2.ClusterConditionReady)
	for range 4 {
		post[v1beta2.EtcdClusterLeaderMove](c, "moveleader", fmt.Sprintf(`{"spec":{"target":%q}}`, c.follower().Pod.Name))
		leader := c.leader().Pod.Name
		c.await(s.ctx(), "the status to name the new leader", func(object *v1beta2.EtcdCluster) bool { return object.Status.Leader == leader })
	}
	after := condition(c.get(), v1beta2.ClusterConditionReady)
	if after != before {
		t.Errorf("Ready was %+v and is %+v", before, after)
	}
}

// TestStalledOnNameConflict: a cluster that waits for a person says so, and goes on
// when what it waited for is done.
func TestStalledOnNameConflict(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("late")
	s.apply("apiVersion: v1\nkind: Service\nmetadata: {name: late-client}\nspec: {ports: [{port: 80}]}\n")
	s.apply(manifest("late", 1, etcdVersion))
	c.await(s.ctx(), "Stalled", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionStalled, corev1.ConditionTrue)
	})
	if got := s.kstatus("etcd/late"); got != status.FailedStatus {
		t.Errorf("kstatus is %s, want Failed", got)
	}
	s.kubectl("delete", "service", "late-client")
	s.waitReady("etcd/late")
	if object := c.get(); condition(object, v1beta2.ClusterConditionStalled).Type != "" {
		t.Errorf("Stalled stays: %+v", object.Status.Conditions)
	}
}

// TestDeleteOrphansDependents deletes the object alone: members and volumes stay and serve, also while a
// cluster of the same name waits, and after that is deleted.
func TestDeleteOrphansDependents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("kept", 3, etcdVersion, withVolumes)
	data := c.fill()
	pods := c.members.Live()
	s.kubectl("delete", "etcd", "kept", "--cascade=orphan", "--wait")
	untouched := func(when string) {
		s.Helper()
		for _, pod := range pods {
			live, err := env.Kube.CoreV1().Pods(s.namespace).Get(s.ctx(), pod.Name, metav1.GetOptions{})
			s.must(err, "read pod %s %s", pod.Name, when)
			if live.UID != pod.UID || live.DeletionTimestamp != nil || len(live.OwnerReferences) > 0 {
				t.Errorf("%s pod %s was touched: %+v", when, pod.Name, live.ObjectMeta)
			}
			pvc, err := env.Kube.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx(), pod.Name, metav1.GetOptions{})
			s.must(err, "read the PVC of %s %s", pod.Name, when)
			if pvc.DeletionTimestamp != nil || len(pvc.OwnerReferences) > 0 {
				t.Errorf("%s PVC %s was touched: %+v", when, pod.Name, pvc.ObjectMeta)
			}
		}
		c.holds(data)
	}
	untouched("after the deletion")

	s.apply(manifest("kept", 3, etcdVersion, withVolumes))
	c.await(s.ctx(), "the new cluster to say what is in its way", func(object *v1beta2.EtcdCluster) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == "VolumesFound"
	})
	untouched("beside another cluster of its name")
	s.kubectl("delete", "etcd", "kept", "--wait")
	untouched("after that was deleted")
}

// TestBackupAndRestoreReady waits for a backup, and for a restore into a new cluster whose
// template names no version: it runs the version that the backup is of.
func TestBackupAndRestoreReady(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	const older = "3.5.35"
	old := s.create("old", 1, older)
	data := old.fill()
	s.apply(backupManifest("once", "  etcdCluster: {name: old}"+toVolume))
	s.waitReady("etcdbackup/once")
	if got := s.kstatus("etcdbackup/once"); got != status.CurrentStatus {
		t.Errorf("kstatus of the backup is %s, want Current", got)
	}

	const template = "  backup: {name: once}\n  clusterTemplate:\n    spec: {size: 1}"
	s.apply(restoreManifest("twin", "twin", template))
	twin := s.cluster("twin")
	s.waitReady("etcdrestore/twin")
	s.waitReady("etcd/twin")
	if object := twin.get(); object.Spec.Version != older || object.Status.CurrentVersion != older {
		t.Errorf("version %s is declared and %s runs, want that of the backup, %s", object.Spec.Version, object.Status.CurrentVersion, older)
	}
	twin.holds(data)

	// A restore that failed permanently waits for a person.
	s.apply(restoreManifest("taken", "twin", template))
	s.kubectl("wait", "--for=condition=Stalled", "etcdrestore/taken", "--timeout=60s")
	if got := s.kstatus("etcdrestore/taken"); got != status.FailedStatus {
		t.Errorf("kstatus of a failed restore is %s, want Failed", got)
	}
}
