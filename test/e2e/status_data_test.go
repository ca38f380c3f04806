// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// tryDamagedLog flips a bit in the log of a member. The member does not start any more, the
// status reports that, and the others serve. The commands of /health replace it by a new
// member.
func tryDamagedLog(t *testing.T) {
	s := start(t)
	c := s.create("damaged", 3, etcdVersion, withVolumes)
	data := c.fill()
	target := c.follower()
	s.must(harness.Damage("etcd", dataMount, target.Pod), "damage the log of a member")
	missed := func(object *clusterObject) bool {
		return slices.Equal(object.Status.Members.Unready, []string{target.Pod.Name}) && len(object.Status.Members.Ready) == 2 &&
			is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue) && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	}
	c.await(s.within(noticeWithin), "the member to be missed", missed)
	c.keeps(10*time.Second, "that the member does not serve", func(object *clusterObject) bool { return !isDown(object, target.Pod.Name) })
	for _, p := range c.members.Live() {
		if p.Name != target.Pod.Name {
			c.has(p, data)
		}
	}
	var command string
	s.must(wait.PollUntilContextCancel(s.within(time.Minute), time.Second, true, func(context.Context) (bool, error) {
		for _, step := range c.health().NextSteps {
			if strings.Contains(step.Command, "/replace") && strings.Contains(step.Command, `"`+target.Pod.Name+`"`) {
				command = step.Command
			}
		}
		return command != "", nil
	}), "what to do about the damaged member")
	c.typed(command)
	c.await(s.ctx(), "another member in its place", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
	})
	c.settle(3)
	for member, id := range c.ids() {
		if id == target.ID {
			t.Errorf("%s came back as member %x", member, id)
		}
	}
	c.holds(data)
}

// tryCorrupt raises etcd's alarm for members whose data differs: etcd takes no writes, so
// the cluster is not available, whatever its quorum says.
func tryCorrupt(t *testing.T) {
	s := start(t)
	c := s.create("corrupt", 3, etcdVersion)
	data, follower := c.fill(), c.follower()
	client, err := c.members.Client(follower.Pod)
	s.must(err, "connect")
	alarm := func(action pb.AlarmRequest_AlarmAction) {
		t.Helper()
		_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(s.ctx(),
			&pb.AlarmRequest{Action: action, MemberID: follower.ID, Alarm: pb.AlarmType_CORRUPT})
		s.must(err, "alarm: %v", action)
	}
	alarm(pb.AlarmRequest_ACTIVATE)
	if _, err := client.Put(s.ctx(), "x", "y"); err == nil {
		t.Fatal("etcd takes writes")
	}
	object := c.await(s.within(noticeWithin), "that it is not available", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionDegraded:   corev1.ConditionTrue,
		v1beta2.ClusterConditionQuorumLost: corev1.ConditionFalse,
	})
	if available := condition(object, v1beta2.ClusterConditionAvailable); available.Reason != "DataCorrupt" || !strings.Contains(available.Message, "alarm disarm") {
		t.Errorf("it is not available because %+v", available)
	}
	alarm(pb.AlarmRequest_DEACTIVATE)
	c.await(s.within(time.Minute), "that it is available again", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) && isSettled(object, 3)
	})
	c.settle(3)
	c.holds(data)
}

// protect turns etcd's own authorization on, for a root user and others.
func (c *cluster) protect(client *clientv3.Client, password string, others ...string) {
	c.Helper()
	_, err := client.RoleAdd(c.ctx(), "root")
	c.must(err, "add the role root")
	for _, user := range append([]string{"root"}, others...) {
		_, err := client.UserAddWithOptions(c.ctx(), user, password, &clientv3.UserAddOptions{NoPassword: password == ""})
		c.must(err, "add user %s", user)
		_, err = client.UserGrantRole(c.ctx(), user, "root")
		c.must(err, "grant user %s everything", user)
	}
	_, err = client.AuthEnable(c.ctx())
	c.must(err, "turn authorization on")
}

// tryDenied turns etcd's own authorization on where the controller has no certificate. The
// state of the cluster becomes unknown, and the status says why.
func tryDenied(t *testing.T) {
	s := start(t)
	c := s.create("denied", 1, etcdVersion)
	data := c.fill()
	client, err := c.members.Client(c.members.Live()[0])
	s.must(err, "connect")
	c.protect(client, "secret")
	object := c.await(s.within(noticeWithin), "the status to report that etcd denies access", func(object *clusterObject) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == "EtcdDenied"
	})
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionAvailable:  corev1.ConditionUnknown,
		v1beta2.ClusterConditionQuorumLost: corev1.ConditionUnknown,
	})
	s.contains(object.Status.BlockedBy.Unblock, "root", "auth disable")
	uids := c.uids()
	root, err := clientv3.New(clientv3.Config{Endpoints: client.Endpoints(), Username: "root", Password: "secret", Context: s.ctx(), DialTimeout: 10 * time.Second, DialOptions: env.DialOptions()})
	s.must(err, "connect as root")
	_, err = root.AuthDisable(s.ctx())
	s.must(err, "turn authorization off")
	s.must(root.Close(), "close")
	c.settle(1)
	if now := c.uids(); len(now) != 1 || now[c.members.Live()[0].Name] != uids[c.members.Live()[0].Name] {
		t.Errorf("the members were %v and are %v", uids, now)
	}
	c.holds(data)
}

// tryTakenService makes two clusters; one has the name of the other's Service.
func tryTakenService(t *testing.T) {
	s := start(t)
	first := s.create("taken-client", 1, etcdVersion)
	kept := first.fill()
	second := s.cluster("taken")
	s.apply(manifest("taken", 1, etcdVersion))
	object := second.await(s.ctx(), "that the name is taken", func(object *clusterObject) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == "NameConflict"
	})
	s.contains(object.Status.BlockedBy.Message, "taken-client")
	first.settle(1)
	first.holds(kept)
	s.kubectl("delete", "etcd", "taken-client")
	second.await(s.ctx(), "a service of its own", func(object *clusterObject) bool {
		return isSettled(object, 1) && object.Status.ServiceName == "taken-client" && object.Status.BlockedBy == nil
	})
	data := second.fill()
	second.holds(data)
}

// TestEtcdAuthorization turns etcd's own authorization on in a cluster with certificates:
// everything that the controller and the API server do, they do as its user root.
func TestEtcdAuthorization(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("authorized")
	c.secure("authorized-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("authorized", 3, etcdVersion, withAutoTLS))
	c.settle(3)
	data := c.fill()
	client, err := c.members.Client(c.members.Live()[0])
	s.must(err, "connect")
	c.protect(client, "", "etcd-client")

	target := c.follower()
	s.kubectl("delete", "pod", target.Pod.Name, "--wait=false")
	c.await(s.ctx(), "another member in its place", func(object *clusterObject) bool {
		return isSettled(object, 3) && !slices.Contains(object.Status.Members.Ready, target.Pod.Name)
	})
	c.awaitVerdict(v1beta2.VerdictHealthy)
	before := c.leader().Pod.Name
	if moved := post[v1beta2.EtcdClusterLeaderMove](c, "moveleader", "{}"); moved.Status.Leader == before {
		t.Errorf("the leadership was not moved: %+v", moved.Status)
	}
	asked := post[v1beta2.EtcdClusterOperation](c, "defrag", "{}").Status.ID
	object := c.await(s.within(time.Minute), "the operation to be over", func(object *clusterObject) bool { return object.Status.Operation.IsOver() })
	if op := object.Status.Operation; op.ID != asked || op.Phase != v1beta2.OperationSucceeded {
		t.Errorf("the operation is %+v", op)
	}
	s.kubectl("scale", "etcd/authorized", "--replicas=1")
	c.settle(1)
	c.holds(data)
}
