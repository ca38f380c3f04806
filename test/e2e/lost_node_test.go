// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestMemberOnALostNode: the node of a member is lost, with the volume that is on it. Another
// member replaces it without a person, and not before its time. The pod and the PVC of the old member
// go when the node is back.
func TestMemberOnALostNode(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 8*time.Minute)
	const timeout = 60 * time.Second
	c := s.create("bereft", 3, etcdVersion, withVolumes+"\n  recovery: {memberLossTimeoutSeconds: 60}")
	data := c.fill()
	lost := c.onFreeNode()
	alone := 0
	for _, p := range c.members.Live() {
		if p.Spec.NodeName == lost.Spec.NodeName {
			alone++
		}
	}
	if alone != 1 {
		t.Fatalf("%d members are on node %s", alone, lost.Spec.NodeName)
	}
	w := c.write()
	from := time.Now()
	s.node("kill", lost.Spec.NodeName)
	s.awaitNode(lost.Spec.NodeName, corev1.ConditionUnknown)
	noticed := time.Now()
	c.await(s.within(timeout+2*time.Minute), "another member in the place of the lost one", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, lost.Name)
	})
	t.Logf("three members serve %v after the node was lost and %v after Kubernetes noticed", time.Since(from).Round(time.Second), time.Since(noticed).Round(time.Second))
	if early := timeout - 2*time.Second; time.Since(noticed) < early {
		t.Errorf("the member was replaced %v after its node was called not ready, and it had %v", time.Since(noticed), timeout)
	}
	report := c.stopped(w)
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
	s.contains(s.kubectl("get", "events", "--field-selector=reason=MemberReplaced"), lost.Name+" does not respond and is replaced: its node "+lost.Spec.NodeName+" is not ready")

	s.node("start", lost.Spec.NodeName)
	s.awaitNode(lost.Spec.NodeName, corev1.ConditionTrue)
	c.must(c.members.Pods.Await(s.ctx(), func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == lost.UID })
	}), "the pod of the old member to end")
	s.until(s.ctx(), "the PVC of the old member to go", func() bool {
		_, err := env.Kube.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx(), lost.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	c.settle(3)
	c.holds(data)
	if object := c.get(); !is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionFalse) {
		t.Errorf("the conditions are %+v", object.Status.Conditions)
	}
}
