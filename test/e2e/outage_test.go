// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestOutageOfTheOnlyAPIServer loses the node of the single API server of artifacts/install.
// Members serve on, and the deletion of a namespace waits and says for what. When the node is back,
// so is the API, with every object. Watches end with status 410 then, and clients list again. It is not
// parallel: there is one API.
func TestOutageOfTheOnlyAPIServer(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	needNodes(t, 3)
	s := startFor(t, 6*time.Minute)
	c := s.create("steady", 3, etcdVersion, oneNodeEach)
	data, uid := c.fill(), c.get().UID
	deleted := s.another("deleted")
	lost := s.apiServerPod().Spec.NodeName
	traffic, err := env.StartTraffic(s.ctx(), harness.TrafficOptions{Namespace: s.namespace, PerSecond: 50, Workers: 10})
	s.must(err, "start the traffic")
	w := c.write()

	from := time.Now()
	s.node("kill", lost)
	s.awaitNode(lost, corev1.ConditionUnknown)
	deleted.kubectl("delete", "namespace", deleted.namespace, "--wait=false")
	deleted.awaitDiscoveryFailure()
	away := time.Since(from)
	s.node("start", lost)
	started := time.Now()
	s.poll("the API to be back", func(ctx context.Context) bool {
		object, err := env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace).Get(ctx, c.name, metav1.GetOptions{})
		return err == nil && object.UID == uid
	})
	t.Logf("the node was away for %v; %v after its start the API was back", away.Round(time.Second), time.Since(started).Round(time.Second))
	s.awaitNode(lost, corev1.ConditionTrue)
	back := time.Now()
	t.Logf("requests from the loss until then: %v", traffic.Phase())
	deleted.awaitNamespaceDeleted(time.Minute)
	c.must(c.members.AwaitVoters(s.ctx(), 3), "after the outage")
	c.settle(3)
	traffic.Stop(s.within(time.Minute))
	p := traffic.Phase()
	for _, f := range p.Failures {
		if f.Begun.After(back) {
			t.Errorf("a request failed that was sent %v after the outage: %v", f.Begun.Sub(back), f)
		}
	}
	if p.Requests == 0 {
		t.Error("no request was sent after the outage")
	}
	report := c.stopped(w)
	t.Logf("members acknowledged %d of %d writes meanwhile, with no gap over %v", report.Sent-report.Failed, report.Sent, report.LongestGap.Round(time.Millisecond))
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
}

// awaitDiscoveryFailure waits until the namespace says that its deletion waits for the API.
func (s *scenario) awaitDiscoveryFailure() {
	s.Helper()
	s.poll("the namespace to say what its deletion waits for", func(ctx context.Context) bool {
		object, err := env.Kube.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		s.must(err, "read the namespace")
		for _, cond := range object.Status.Conditions {
			if cond.Type == corev1.NamespaceDeletionDiscoveryFailure && cond.Status == corev1.ConditionTrue {
				return strings.Contains(cond.Message, v1beta2.SchemeGroupVersion.String())
			}
		}
		return false
	})
}
