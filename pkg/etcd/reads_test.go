// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TestFailedReads: voters that serve complete a linearizable read, and a member that responds
// without a quorum does not. That etcd rejects a read for another reason is no failure: a
// voter with a full database serves reads.
func TestFailedReads(t *testing.T) {
	t.Parallel()
	c := etcdtest.New(t)
	c.Promote(c.Learner("m1"))
	if failed := c.Client().FailedReads(within(t, limit)); len(failed) != 0 {
		t.Errorf("two voters that serve: %v", failed)
	}
	c.Member("m0").RaiseNoSpace()
	if failed := c.Client().FailedReads(within(t, limit)); len(failed) != 0 {
		t.Errorf("two voters with a full database: %v", failed)
	}
	c.Member("m1").Kill()
	failed := c.Client().FailedReads(within(t, 2*time.Second))
	if failed["m0"] == nil || failed["m1"] == nil {
		t.Errorf("a voter without a quorum and one that does not run: %v", failed)
	}
}
