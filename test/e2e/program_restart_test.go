// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// waitingRequests are an operation that waits for a member which does not respond, and a recovery
// that waits for room in its namespace.
type waitingRequests struct {
	waiting, lost       *cluster
	kept, data          harness.Data
	operation, recovery string
	end                 func()
}

// requestWhatWaits makes two clusters, and requests what cannot be done before end is called.
func (s *scenario) requestWhatWaits() *waitingRequests {
	s.Helper()
	other := s.another("full")
	r := &waitingRequests{waiting: s.create("busy", 3, etcdVersion), lost: other.create("lost", 3, etcdVersion)}
	r.kept, r.data = r.waiting.fill(), r.lost.fill()

	hung := r.waiting.follower().Pod
	r.waiting.hang(hung)
	r.waiting.await(s.within(noticeWithin), "the member to be missed", func(object *clusterObject) bool {
		return len(object.Status.Members.Unready) == 1
	})
	r.operation = post[v1beta2.EtcdClusterOperation](r.waiting, "defrag", "{}").Status.ID

	// There is no room for the new member, so the recovery cannot get further than this.
	other.kubectl("create", "quota", "full", "--hard=pods=1")
	survivor := r.lost.leader().Pod
	r.lost.destroy(survivor)
	r.lost.awaitLoss(survivor.Name)
	asked, err := r.lost.recoverNow()
	s.must(err, "ask for the recovery")
	r.recovery = asked.Status.ID
	r.lost.await(s.within(time.Minute), "the recovery to begin", r.fills)
	r.end = func() {
		r.waiting.resume(hung)
		other.kubectl("delete", "quota", "full")
	}
	return r
}

// fills is true for the cluster whose recovery waits.
func (r *waitingRequests) fills(object *clusterObject) bool {
	now := object.Status.Recovery
	return now != nil && now.ID == r.recovery && now.Phase == v1beta2.RecoveryPhaseFilling
}

// survive fails the test unless both requests are still known, and are carried out when they can be.
func (r *waitingRequests) survive() {
	r.waiting.Helper()
	if object := r.lost.get(); !r.fills(object) {
		r.lost.Errorf("after every program was killed the recovery is %+v", object.Status.Recovery)
	}
	if op := r.waiting.get().Status.Operation; op == nil || op.ID != r.operation || op.IsOver() {
		r.waiting.Errorf("after every program was killed the operation is %+v", op)
	}
	r.end()
	if object := r.lost.recovered(3); object.Status.Recovery.ID != r.recovery || object.Status.Recovery.Trigger != v1beta2.RecoveryTriggerRequest {
		r.lost.Errorf("the recovery that was requested as %s came to %+v", r.recovery, object.Status.Recovery)
	}
	r.lost.holds(r.data)
	object := r.waiting.await(r.waiting.within(time.Minute), "the operation to be over", func(object *clusterObject) bool { return object.Status.Operation.IsOver() })
	if op := object.Status.Operation; op.ID != r.operation || op.Phase != v1beta2.OperationSucceeded {
		r.waiting.Errorf("the operation came to %+v", op)
	}
	r.waiting.settle(3)
	r.waiting.holds(r.kept)
}
