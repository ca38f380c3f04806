// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestRestart asks for a restart while a client writes. On volumes the members stay what
// they are; one after the other gets another pod.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("again", 3, etcdVersion, withVolumes)
	data, ids, uids := c.fill(), c.ids(), c.uids()
	if dry := post[v1beta2.EtcdClusterOperation](c, "restart?dryRun=All", "{}"); dry.Status.Type != v1beta2.OperationRestart {
		t.Errorf("a dry run says %+v", dry.Status)
	}
	s.contains(s.rejected(`{"spec":{"members":["again-x"]}}`, "create", "--raw", c.raw("restart"), "-f", "-"), "spec.members")
	c.same(ids, uids, true)

	w := c.write()
	down := c.followDown()
	asked := post[v1beta2.EtcdClusterOperation](c, "restart", "{}")
	if again := post[v1beta2.EtcdClusterOperation](c, "restart", "{}"); again.Status.ID != asked.Status.ID {
		t.Errorf("asked again while it goes on it is %s, not %s", again.Status.ID, asked.Status.ID)
	}
	object := c.await(s.ctx(), "the end of the restart", func(object *clusterObject) bool {
		op := object.Status.Operation
		return op != nil && op.ID == asked.Status.ID && op.IsOver()
	})
	if op := object.Status.Operation; op.Phase != v1beta2.OperationSucceeded || len(op.Results) != 3 {
		t.Errorf("it came to %+v", op)
	}
	c.rolled(3, func(p *corev1.Pod) bool {
		return p.Annotations["etcd.database.coreos.com/restarted-at"] == asked.Status.ID
	})
	c.same(ids, uids, false)
	if n := down(); n > 1 {
		t.Errorf("%d members were down at the same time", n)
	}
	report := c.stopped(w)
	t.Logf("restarted within %v; %d of %d writes failed, the longest gap was %v",
		object.Status.Operation.CompletionTime.Sub(asked.Status.RequestedAt.Time), report.Failed, report.Sent, report.LongestGap)
	c.holds(data)
	for _, want := range []string{"OperationStarted", "OperationSucceeded"} {
		if !slices.Contains(c.reasons(), want) {
			t.Errorf("no event says %s: %v", want, c.reasons())
		}
	}

	// The next request is a new operation.
	if next := post[v1beta2.EtcdClusterOperation](c, "restart?dryRun=All", "{}"); next.Status.ID == asked.Status.ID {
		t.Errorf("the next one is %s, too", next.Status.ID)
	}
}
