// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestReplaceOnRequest asks for another member in the place of the leader, on volumes, while a
// client writes. The request names the member, the dry run says what happens to it.
func TestReplaceOnRequest(t *testing.T) {
	t.Parallel()
	s := startFor(t, 5*time.Minute)
	c := s.create("swap", 3, etcdVersion, withVolumes)
	data, ids, leader := c.fill(), c.ids(), c.leader().Pod.Name
	s.contains(s.rejected("{}", "create", "--raw", c.raw("replace"), "-f", "-"), "spec.members: Required value: name the members to replace")
	s.contains(s.rejected(`{"spec":{"members":["swap-x"]}}`, "create", "--raw", c.raw("replace"), "-f", "-"), "spec.members[0]")
	body := `{"spec":{"members":["` + leader + `"]}}`
	dry := post[v1beta2.EtcdClusterOperation](c, "replace?dryRun=All", body)
	s.contains(dry.Status.Message, "member "+leader+" on node ", ", whose PVC is deleted")
	c.same(ids, c.uids(), true)

	w := c.write()
	c.replace(leader, 3)
	report := c.stopped(w)
	t.Logf("%d of %d writes failed, the longest gap was %v", report.Failed, report.Sent, report.LongestGap)
	if report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
	s.kubectl("wait", "--for=delete", "pvc/"+leader, "--timeout=60s") // it goes after the pod that mounts it
}

// replaceOnHungDisk: the disk of a member takes no writes and does not come back. The first
// command of /health that replaces it is carried out as it is.
func replaceOnHungDisk(t *testing.T) {
	s := startFor(t, 5*time.Minute)
	c := s.create("shale", 3, etcdVersion)
	data := c.fill()
	w := c.write()
	hung, resume := c.hangDisks(1, ".wal")
	c.await(s.within(noticeWithin), "the member to be NotServing", func(object *clusterObject) bool { return countReason(object, hung, "NotServing") == 1 })
	command := ""
	for _, step := range c.health().NextSteps {
		if strings.Contains(step.Command, "/replace") {
			command = step.Command
		}
	}
	s.contains(command, `{"spec":{"members":["`+hung[0]+`"]}}`)
	from := time.Now()
	c.replace(hung[0], 3)
	t.Logf("replaced after %v", time.Since(from).Round(10*time.Millisecond))
	resume()
	if report := c.stopped(w); report.LongestGap > 5*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
}

// replace sends the request, and waits until a cluster of some size is settled without the
// member.
func (c *cluster) replace(member string, size int) {
	c.Helper()
	asked := post[v1beta2.EtcdClusterOperation](c, "replace", `{"spec":{"members":["`+member+`"]}}`)
	object := c.await(c.ctx(), "the end of the replacement", func(object *clusterObject) bool {
		op := object.Status.Operation
		return op != nil && op.ID == asked.Status.ID && op.IsOver() && isSettled(object, size)
	})
	if op := object.Status.Operation; op.Phase != v1beta2.OperationSucceeded || len(op.Results) != 1 || op.Results[0].Member != member {
		c.Errorf("it came to %+v", op)
	}
	if slices.ContainsFunc(object.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Name == member }) {
		c.Errorf("%s is still a member", member)
	}
	for _, want := range []string{"OperationStarted", "MemberReplaced", "OperationSucceeded"} {
		if !slices.Contains(c.reasons(), want) {
			c.Errorf("no event says %s: %v", want, c.reasons())
		}
	}
}
