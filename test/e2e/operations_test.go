// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// raw is the path of a subresource.
func (c *cluster) raw(subresource string) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/etcdclusters/%s/%s", v1beta2.SchemeGroupVersion, c.namespace, c.name, subresource)
}

// look reads a subresource as a user does.
func look[T any](c *cluster, subresource string) *T {
	c.Helper()
	response := new(T)
	c.must(json.Unmarshal([]byte(c.kubectl("get", "--raw", c.raw(subresource))), response), "read %s", subresource)
	return response
}

func (c *cluster) health() *v1beta2.EtcdClusterHealth {
	c.Helper()
	return look[v1beta2.EtcdClusterHealth](c, "health")
}

// post sends a body to a subresource as a user does.
func post[T any](c *cluster, subresource, body string) *T {
	c.Helper()
	response := new(T)
	out, err := env.Kubectl(c.ctx(), harness.Command{Args: []string{"create", "--raw", c.raw(subresource), "-f", "-"}, Stdin: body})
	c.must(err, "post %s", subresource)
	c.must(json.Unmarshal([]byte(out), response), "read the response %s", out)
	return response
}

// typed runs a command line as it stands in a response.
func (c *cluster) typed(command string) string {
	c.Helper()
	cmd := exec.CommandContext(c.ctx(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig, "PATH="+env.Bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	c.must(err, "type %s: %s", command, out)
	return string(out)
}

// awaitVerdict asks until the verdict is the one that is expected.
func (c *cluster) awaitVerdict(want v1beta2.ClusterVerdict) *v1beta2.EtcdClusterHealth {
	c.Helper()
	ctx := c.within(60 * time.Second)
	for {
		health := c.health()
		// On a busy machine the pods and PVCs may not be read within the budget: the response says so, and has the rest.
		if health.Verdict == want && (want != v1beta2.VerdictHealthy || len(health.Problems) == 0) {
			return health
		}
		select {
		case <-ctx.Done():
			c.Fatalf("the verdict is %s (%s), not %s; problems %v", health.Verdict, health.Message, want, health.Problems)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// TestHealth looks at a cluster that is well, with one member that hangs, and with two.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("well", 3, etcdVersion, withVolumes)
	health := c.awaitVerdict(v1beta2.VerdictHealthy)
	leader := c.leader()
	if health.Leader != leader.Pod.Name || health.Voters != 3 || health.Serving != 3 || !health.QuorumResponded || ptr.Deref(health.Tolerance, 9) != 1 {
		t.Errorf("unexpected %+v", health)
	}
	for _, m := range health.Members {
		if !m.Responded || m.Pod == nil || m.Pod.Node == "" || m.Claim == nil || m.Claim.Phase != "Bound" || m.Quota == 0 || m.DBSize == 0 || m.Version != etcdVersion {
			t.Errorf("unexpected %+v", m)
		}
	}
	if members := look[v1beta2.EtcdClusterMembers](c, "members"); !members.Agreed || !members.Confirmed || len(members.Members) != 3 {
		t.Errorf("unexpected %+v", members)
	}

	first := c.follower().Pod
	c.hang(first)
	health = c.awaitVerdict(v1beta2.VerdictDegraded)
	var took []time.Duration
	for range 5 {
		from := time.Now()
		health = c.health()
		took = append(took, time.Since(from).Round(time.Millisecond))
	}
	t.Logf("health with one member that hangs: %v with kubectl, the server took %v", took, health.Took.Duration.Round(time.Millisecond))
	if health.Took.Duration > 4*time.Second || ptr.Deref(health.Tolerance, 9) != 0 || health.Serving != 2 {
		t.Errorf("unexpected %s (%s) after %v", health.Verdict, health.Message, health.Took)
	}
	i := slices.IndexFunc(health.NextSteps, func(n v1beta2.NextStep) bool { return strings.Contains(n.Command, "logs "+first.Name) })
	if i < 0 {
		t.Fatalf("no step is about %s: %+v", first.Name, health.NextSteps)
	}
	c.typed(health.NextSteps[i].Command)

	for _, p := range c.members.Live() {
		if p.Name != first.Name {
			c.hang(p)
			break
		}
	}
	health = c.awaitVerdict(v1beta2.VerdictQuorumLost)
	if ptr.Deref(health.Tolerance, 9) >= 0 || health.QuorumResponded {
		t.Errorf("unexpected %+v", health)
	}
	for _, p := range c.members.Live() {
		if err := harness.Signal(p, "etcd", syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	c.awaitVerdict(v1beta2.VerdictHealthy)
}

// TestWithoutController stops the controller once for two clusters.
func TestWithoutController(t *testing.T) {
	s := start(t)
	alone := s.create("alone", 3, etcdVersion)
	dropped := s.create("dropped", 1, etcdVersion, withVolumes)
	dropped.fill()
	s.stopInstalledController()
	alone.servesRequests()
	dropped.waitsForTheController()
}

// servesRequests: the subresources that send requests to members need no controller.
func (c *cluster) servesRequests() {
	c.Helper()
	if health := c.awaitVerdict(v1beta2.VerdictHealthy); health.Serving != 3 {
		c.Errorf("unexpected %+v", health)
	}
	if members := look[v1beta2.EtcdClusterMembers](c, "members"); !members.Agreed {
		c.Errorf("unexpected %+v", members.Disagreements)
	}
	before := c.leader().Pod.Name
	if moved := post[v1beta2.EtcdClusterLeaderMove](c, "moveleader", "{}"); moved.Status.Leader == before || moved.Status.From != before {
		c.Errorf("unexpected %+v", moved.Status)
	}
}

func TestMoveLeader(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("moved", 3, etcdVersion)
	before, target := c.leader().Pod.Name, c.follower().Pod.Name
	body := fmt.Sprintf(`{"spec":{"target":%q}}`, target)

	if dry := post[v1beta2.EtcdClusterLeaderMove](c, "moveleader?dryRun=All", body); dry.Status.Leader != target || dry.Status.From != before {
		t.Errorf("a dry run says %+v", dry.Status)
	}
	if now := c.leader().Pod.Name; now != before {
		t.Errorf("a dry run has moved the leadership from %s to %s", before, now)
	}
	moved := post[v1beta2.EtcdClusterLeaderMove](c, "moveleader", body)
	if now := c.leader().Pod.Name; now != target || moved.Status.Leader != target || moved.Status.Term == 0 {
		t.Errorf("%s leads, and the response is %+v", now, moved.Status)
	}
	t.Logf("moved in %v", moved.Status.Took.Duration)
	s.contains(s.rejected(`{"spec":{"target":"no-such-member"}}`, "create", "--raw", c.raw("moveleader"), "-f", "-"), "no member of this name")
	hung := before
	for _, p := range c.members.Live() {
		if p.Name == hung {
			c.hang(p)
		}
	}
	s.contains(s.rejected(fmt.Sprintf(`{"spec":{"target":%q}}`, hung), "create", "--raw", c.raw("moveleader"), "-f", "-"), "does not respond")
}

// TestDefrag fills a small database until etcd takes no more, and does what health says.
func TestDefrag(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create("full", 3, etcdVersion, smallQuota).fullAndBack()
}

// smallQuota is soon reached.
const smallQuota = `
  etcd: {quotaBackendBytes: 16Mi}`

// fillDatabase writes until etcd rejects writes, and returns a client and the last revision.
func (c *cluster) fillDatabase() (*clientv3.Client, int64) {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "connect")
	value, revision := strings.Repeat("x", 256<<10), int64(0)
	for range 200 {
		response, err := client.Put(c.ctx(), "big", value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return client, revision
		}
		c.must(err, "fill")
		revision = response.Header.Revision
	}
	c.Fatal("the database does not get full")
	return nil, 0
}

// awaitFull waits until the status says that etcd rejects writes, and what ends that.
func (c *cluster) awaitFull() {
	c.Helper()
	object := c.await(c.within(time.Minute), "a cluster that is neither Ready nor Available", func(object *clusterObject) bool {
		return is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse) && is(object, v1beta2.ClusterConditionReady, corev1.ConditionFalse) &&
			is(object, v1beta2.ClusterConditionDegraded, corev1.ConditionTrue)
	})
	if available := condition(object, v1beta2.ClusterConditionAvailable); available.Reason != "DatabaseFull" {
		c.Errorf("Available is False because of %s: %s", available.Reason, available.Message)
	}
	c.contains(object.Status.Reason, "Raise spec.etcd.quotaBackendBytes", "-- compaction", "kubectl etcd defrag "+c.name)
	c.contains(c.kubectl("get", "etcd", c.name), "DatabaseFull")
}

// fullAndBack fills the database until etcd takes no more, and does what health says.
func (c *cluster) fullAndBack() {
	s, t := c.scenario, c.T
	c.Helper()
	client, revision := c.fillDatabase()
	health := c.awaitVerdict(v1beta2.VerdictDegraded)
	s.contains(health.Message, "etcd rejects writes", "NOSPACE")
	c.awaitFull()
	if object := c.get(); !resources.HasLearners(object.Status.CurrentVersion) {
		// So old an etcd is not ready while it is full. The operation must begin nonetheless.
		c.await(c.within(time.Minute), "pods that are not ready", func(o *clusterObject) bool { return len(o.Status.Members.Ready) == 0 })
	}
	_, err := client.Compact(s.ctx(), revision, clientv3.WithCompactPhysical())
	s.must(err, "compact")
	if _, err := client.Put(s.ctx(), "small", "x"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("the alarm was cleared before anything was done: %v", err)
	}

	health = c.health()
	i := slices.IndexFunc(health.NextSteps, func(n v1beta2.NextStep) bool { return strings.Contains(n.Command, "/defrag'") })
	if i < 0 {
		t.Fatalf("health does not say what to do: %+v", health.NextSteps)
	}
	asked := &v1beta2.EtcdClusterOperation{}
	out := c.typed(health.NextSteps[i].Command)
	s.must(json.Unmarshal([]byte(out), asked), "read %s", out)
	object := c.await(s.ctx(), "the end of the operation", func(object *clusterObject) bool {
		op := object.Status.Operation
		return op != nil && op.ID == asked.Status.ID && op.IsOver()
	})
	op := object.Status.Operation
	if op.Phase != v1beta2.OperationSucceeded || len(op.Results) != len(c.members.Live()) {
		t.Fatalf("unexpected %+v", op)
	}
	for _, r := range op.Results {
		t.Logf("%s: %d bytes before, %d after", r.Member, r.DBSizeBefore, r.DBSizeAfter)
		if r.State != v1beta2.OperationSucceeded || r.DBSizeAfter == 0 || r.DBSizeAfter*4 > r.DBSizeBefore {
			t.Errorf("unexpected %+v", r)
		}
	}
	_, err = client.Put(s.ctx(), "small", "x")
	s.must(err, "write again")
	c.awaitVerdict(v1beta2.VerdictHealthy)
	c.settle(len(c.members.Live()))
	reasons := c.reasons()
	for _, want := range []string{"OperationStarted", "AlarmDisarmed", "OperationSucceeded"} {
		if !slices.Contains(reasons, want) {
			t.Errorf("no event says %s: %v", want, reasons)
		}
	}
}
