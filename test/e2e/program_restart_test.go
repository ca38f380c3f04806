// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestRequestsSurviveProgramRestarts requests a recovery and an operation that both have to
// wait, and kills every program meanwhile. Both requests are still known, and are carried
// out.
func TestRequestsSurviveProgramRestarts(t *testing.T) {
	s := start(t)
	t.Cleanup(func() { replacePrograms(t) })
	other := s.another("full")
	waiting, lost := s.create("busy", 3, etcdVersion), other.create("lost", 3, etcdVersion)
	kept, data := waiting.fill(), lost.fill()

	hung := waiting.follower().Pod
	waiting.hang(hung)
	waiting.await(s.within(noticeWithin), "the member to be missed", func(object *clusterObject) bool {
		return len(object.Status.Members.Unready) == 1
	})
	operation := post[v1beta2.EtcdClusterOperation](waiting, "defrag", "{}").Status.ID

	// There is no room for the new member, so the recovery cannot get further than this.
	other.kubectl("create", "quota", "full", "--hard=pods=1")
	survivor := lost.leader().Pod
	lost.destroy(survivor)
	lost.awaitLoss(survivor.Name)
	asked, err := lost.recoverNow()
	s.must(err, "ask for the recovery")
	filling := func(object *clusterObject) bool {
		r := object.Status.Recovery
		return r != nil && r.ID == asked.Status.ID && r.Phase == v1beta2.RecoveryPhaseFilling
	}
	lost.await(s.within(time.Minute), "the recovery to begin", filling)

	for _, program := range []string{harness.Controller, harness.APIServer} {
		s.killProgram(program)
	}
	always := func(*clusterObject) bool { return true }
	if object := lost.await(s.ctx(), "the API to respond", always); !filling(object) {
		t.Errorf("after every program was killed the recovery is %+v", object.Status.Recovery)
	}
	if op := waiting.await(s.ctx(), "the API to respond", always).Status.Operation; op == nil || op.ID != operation || op.IsOver() {
		t.Errorf("after every program was killed the operation is %+v", op)
	}
	waiting.resume(hung)
	other.kubectl("delete", "quota", "full")
	if object := lost.recovered(3); object.Status.Recovery.ID != asked.Status.ID || object.Status.Recovery.Trigger != v1beta2.RecoveryTriggerRequest {
		t.Errorf("the recovery that was requested as %s came to %+v", asked.Status.ID, object.Status.Recovery)
	}
	lost.holds(data)
	object := waiting.await(s.within(time.Minute), "the operation to be over", func(object *clusterObject) bool { return object.Status.Operation.IsOver() })
	if op := object.Status.Operation; op.ID != operation || op.Phase != v1beta2.OperationSucceeded {
		t.Errorf("the operation came to %+v", op)
	}
	waiting.settle(3)
	waiting.holds(kept)
}
