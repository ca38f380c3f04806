// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// stopsResponding ends the etcd of a survivor. The kubelet starts it again, and without a quorum it
// never responds.
func (c *cluster) stopsResponding(survivor *corev1.Pod) *clusterObject {
	c.Helper()
	restarts := survivor.Status.ContainerStatuses[0].RestartCount
	c.must(harness.Signal(survivor, "etcd", syscall.SIGKILL), "kill the survivor")
	c.must(c.members.Pods.Await(c.ctx(), func(now []*corev1.Pod) bool {
		return slices.ContainsFunc(now, func(p *corev1.Pod) bool {
			return p.UID == survivor.UID && p.Status.ContainerStatuses[0].RestartCount > restarts && p.Status.ContainerStatuses[0].State.Running != nil
		})
	}), "the survivor to be restarted")
	return c.await(c.within(time.Minute), "the status to report that no member responds", func(object *clusterObject) bool {
		return object.Status.PermanentQuorumLossSince != nil && !slices.ContainsFunc(object.Status.MemberStatuses,
			func(m v1beta2.MemberStatus) bool { return m.RaftIndex > 0 })
	})
}

// TestRecoveryFromAVolume: two of three members are destroyed with their volumes, and the survivor
// restarts, as after a power failure. Everything that was acknowledged is on its volume.
func TestRecoveryFromAVolume(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("dark", 3, etcdVersion, withVolumes)
	data := c.fill()
	clusterID, survivor := c.clusterID(), c.leader().Pod
	c.destroy(survivor)
	c.awaitLoss(survivor.Name)
	object := c.stopsResponding(survivor)
	s.contains(condition(object, v1beta2.ClusterConditionQuorumLost).Message, "PVC of member "+survivor.Name, "etcdclusters/dark/recover")

	plan, err := c.recoverNow(metav1.DryRunAll)
	s.must(err, "ask for the plan")
	if source := plan.Status.Source; source.Member != survivor.Name || source.PVC != survivor.Name || source.RaftIndex != 0 {
		t.Errorf("the plan is %+v", plan.Status)
	}
	s.contains(plan.Status.ExpectedLoss, "unknown", "Its pod is stopped")
	_, err = c.recoverNow()
	s.must(err, "ask for the recovery")
	object = c.recovered(3)
	c.holds(data)
	c.bumped()
	if c.clusterID() == clusterID || object.Status.Recovery.Source.PVC != survivor.Name {
		t.Errorf("the recovery was %+v", object.Status.Recovery)
	}
	c.gone("pods", "etcd_retired=dark")
	c.keepsPVC(survivor.Name)
	for _, want := range []string{"RecoveryStarted", "SourceStopped", "RecoveryCutover", "Recovered"} {
		if !slices.Contains(c.reasons(), want) {
			t.Errorf("no event %s: %v", want, c.reasons())
		}
	}
}

// TestRecoveryFromAVolumeAutomatic: the same without a request. The pod of the survivor was deleted, and
// its volume may be used by one pod at a time only.
func TestRecoveryFromAVolumeAutomatic(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("darkauto", 3, etcdVersion, strings.Replace(withVolumes, "ReadWriteOnce", "ReadWriteOncePod", 1)+"\n  recovery: {quorumLoss: Automatic}")
	data, survivor := c.fill(), c.leader().Pod
	c.kubectl("patch", "etcd", c.name, "--type=merge", "-p", `{"spec":{"paused":true}}`)
	c.await(c.within(time.Minute), "the controller to pause", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionPaused, corev1.ConditionTrue)
	})
	c.destroy(survivor)
	c.kubectl("delete", "pod", survivor.Name)
	c.kubectl("patch", "etcd", c.name, "--type=merge", "-p", `{"spec":{"paused":false}}`)
	object := c.recovered(3)
	c.holds(data)
	c.bumped()
	if r := object.Status.Recovery; r.Trigger != v1beta2.RecoveryTriggerAutomatic || r.Source.PVC != survivor.Name {
		t.Errorf("the recovery was %+v", r)
	}
	c.gone("pods", "etcd_retired=darkauto")
	c.keepsPVC(survivor.Name)
}
