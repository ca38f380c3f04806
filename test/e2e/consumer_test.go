// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// consumerRounds is how often each operation is repeated, unless the variable says
	// otherwise.
	consumerRounds         = 1
	consumerRoundsVariable = "ETCD_OPERATOR_CONSUMER_ROUNDS"
	// consumerSizeVariable asks for a database of so many MiB.
	consumerSizeVariable = "ETCD_OPERATOR_CONSUMER_MIB"
	consumerInterval     = 20 * time.Millisecond
	// consumerRound bounds one repetition of all operations of a test.
	consumerRound = 4 * time.Minute
	// consumerGap is the time without an acknowledged write that is counted as a gap.
	consumerGap = 500 * time.Millisecond
	// undisturbed is how long the writer writes while nothing happens, for comparison.
	undisturbed = 10 * time.Second
)

// handOver are the errors of etcd for writes that are under way while one member hands over
// to another. Some of these writes were sent to the leader, others were forwarded to it. A
// member that stops drops what it has accepted and not proposed yet. A leader that hands over
// drops what is forwarded to it without a response. The member that forwarded it responds with a
// time-out after 7 s, which names the previous leader only if no other was elected in that time.
var handOver = []string{"raft proposal dropped", "etcdserver: request timed out", "raft: stopped", "error reading from server"}

// handOverShare is one in how many writes at most fails while members hand over. Without a
// quorum all of them fail.
const handOverShare = 20

// consumption is a cluster, the kube-apiserver that uses it, and what this kube-apiserver has
// observed of each operation.
type consumption struct {
	*cluster
	consumer *harness.Consumer
	// secret holds the certificate of the kube-apiserver; empty without TLS.
	secret   string
	rounds   int
	names    []string
	seen     map[string][]*harness.ConsumerReport
	rejected map[string]int
}

// startConsumption makes a namespace for a cluster that a kube-apiserver uses.
func startConsumption(t *testing.T) (*scenario, int) {
	t.Helper()
	rounds := positive(t, consumerRoundsVariable, consumerRounds)
	return startFor(t, testTimeout+time.Duration(rounds)*consumerRound), rounds
}

// positive reads a number from the environment.
func positive(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a positive number", variable, v)
	}
	return n
}

// consume starts the kube-apiserver of a cluster.
func (c *cluster) consume(rounds int, secret string) *consumption {
	c.Helper()
	u := &consumption{cluster: c, secret: secret, rounds: rounds, seen: map[string][]*harness.ConsumerReport{}, rejected: map[string]int{}}
	u.restartConsumer("consumer")
	u.during("nothing", func(int) { <-c.within(undisturbed).Done() })
	c.Cleanup(u.tell)
	return u
}

// restartConsumer starts a kube-apiserver, which reads its certificates, in place of the one before.
func (u *consumption) restartConsumer(name string) {
	u.Helper()
	if u.consumer != nil {
		u.kubectl("delete", "pod", u.consumer.Name(), "--wait=false", "--grace-period=1")
	}
	consumer, err := env.Consumer(u.ctx(), harness.ConsumerOptions{Namespace: u.namespace, Name: name, Cluster: u.cluster.name, Secret: u.secret})
	u.must(err, "start a kube-apiserver on %s", u.cluster.name)
	u.consumer = consumer
}

// repeat repeats an operation while the kube-apiserver writes.
func (u *consumption) repeat(what string, do func(round int)) {
	u.Helper()
	for i := range u.rounds {
		u.during(what, func(int) { do(i) })
	}
}

// during runs an operation while the kube-apiserver writes. Every acknowledged write must be found
// in the end. No write may fail except those that etcd drops in a hand-over. No attempt may
// end with "connection refused": gRPC waits for seconds before it tries again. Only the kill of
// a leader may cost writes that were under way.
func (u *consumption) during(what string, do func(round int)) {
	u.Helper()
	round := len(u.seen[what])
	w, err := u.consumer.Write(u.ctx(), fmt.Sprintf("%s-%d", what, round), consumerInterval)
	u.must(err, "write through the kube-apiserver")
	from := time.Now()
	do(round)
	took := time.Since(from)
	report := w.Stop()
	rejected, err := u.consumer.ConnectionsRefused(u.ctx(), from)
	u.must(err, "count connections refused")
	u.Logf("%s %d: %v; %d connections refused; %v", what, round+1, took.Round(10*time.Millisecond), rejected, report)
	u.must(u.consumer.Kept(u.ctx(), report), "after %s", what)
	kills := what == leaderKill
	for _, f := range report.Failures {
		if !kills && !slices.ContainsFunc(handOver, func(text string) bool { return strings.Contains(f.Err.Error(), text) }) {
			u.Errorf("%s %d: a write failed: %v", what, round+1, f.Err)
		}
	}
	if n := len(report.Failures); !kills && n*handOverShare > report.Sent {
		u.Errorf("%s %d: %d of %d writes failed, which is more than members drop that hand over", what, round+1, n, report.Sent)
	}
	if rejected > 0 && !kills {
		u.Errorf("%s %d: %d connections refused", what, round+1, rejected)
	}
	if round == 0 {
		u.names = append(u.names, what)
	}
	u.seen[what] = append(u.seen[what], report)
	u.rejected[what] += rejected
}

// tell sums up what the kube-apiserver has seen.
func (u *consumption) tell() {
	u.Helper()
	for _, what := range u.names {
		failed, gaps, longest := 0, 0, time.Duration(0)
		for _, r := range u.seen[what] {
			failed += len(r.Failures)
			longest = max(longest, r.LongestGap)
			if r.LongestGap > consumerGap {
				gaps++
			}
		}
		u.Logf("%s: %d times, %d of them with a gap above %v, the longest %v; %d failed writes, %d connections refused",
			what, len(u.seen[what]), gaps, consumerGap, longest.Round(time.Millisecond), failed, u.rejected[what])
	}
}

// upgrade changes the version to the other patch release.
func (u *consumption) upgrade(int) {
	u.Helper()
	v := etcdVersion
	if u.get().Spec.Version == etcdVersion {
		v = previousVersion
	}
	u.kubectl(patchVersion(u.cluster.name, v)...)
	u.await(u.ctx(), "version "+v, func(o *clusterObject) bool { return o.Status.CurrentVersion == v && isSettled(o, 3) })
}

// operate asks for an operation and waits until it is over.
func (c *cluster) operate(operation string, size int) {
	c.Helper()
	asked := post[v1beta2.EtcdClusterOperation](c, operation, "{}")
	object := c.await(c.ctx(), "the end of the operation", func(object *clusterObject) bool {
		op := object.Status.Operation
		return op != nil && op.ID == asked.Status.ID && op.IsOver()
	})
	if op := object.Status.Operation; op.Phase != v1beta2.OperationSucceeded {
		c.Errorf("%s came to %+v", operation, op)
	}
	c.settle(size)
}

// drainNode drains the node of a member, in turn, and makes it schedulable again.
func (u *consumption) drainNode(round int) {
	u.Helper()
	u.awaitDisruptionsAllowed(1)
	nodes := slices.Sorted(maps.Keys(u.nodes()))
	node := nodes[round%len(nodes)]
	u.must(u.drain(node, time.Minute), "drain %s", node)
	u.kubectl("uncordon", node)
	u.settle(3)
}

// TestConsumer upgrades, restarts and defragments a cluster that a kube-apiserver keeps
// its objects in and reaches through the client Service.
func TestConsumer(t *testing.T) {
	env.RequireLocal(t, harness.NodeImages)
	for _, kind := range []struct{ name, more string }{{"Memory", ""}, {"Volumes", withVolumes}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel() // with the other kind; the test itself runs alone
			s, rounds := startConsumption(t)
			c := s.create("used", 3, previousVersion, kind.more)
			u := c.consume(rounds, "")
			u.repeat("upgrade", u.upgrade)
			u.repeat("restart", func(int) { u.operate("restart", 3) })
			u.repeat("defragmentation", func(int) { u.operate("defrag", 3) })
			u.repeat(leaderKill, func(int) { c.killLeader() })
			u.during("after-the-kill", func(int) { <-c.within(undisturbed).Done() })
		})
	}
}

// leaderKill is the disturbance that no drain can precede.
const leaderKill = "leader-kill"

// killLeader kills the process of the leader, and waits until all members serve again.
func (c *cluster) killLeader() {
	c.Helper()
	leader := c.leader().Pod
	restarts := leader.Status.ContainerStatuses[0].RestartCount
	c.must(harness.Signal(leader, "etcd", syscall.SIGKILL), "kill the leader")
	err := c.members.Pods.Await(c.ctx(), func(now []*corev1.Pod) bool {
		return slices.ContainsFunc(now, func(p *corev1.Pod) bool {
			return p.UID == leader.UID && harness.IsPodReady(p) && p.Status.ContainerStatuses[0].RestartCount > restarts
		})
	})
	c.must(err, "the leader to be restarted")
	// The status may be from before the kill.
	c.must(c.members.AwaitVoters(c.ctx(), 3), "after the kill")
	c.settle(3)
}

// TestConsumerDrain drains the nodes of such a cluster.
func TestConsumerDrain(t *testing.T) {
	harness.RequireNightly(t)
	env.RequireLocal(t, harness.NodeImages)
	needNodes(t, 3)
	for _, kind := range []struct{ name, more string }{{"Memory", ""}, {"Volumes", oneNodeEach}} {
		t.Run(kind.name, func(t *testing.T) {
			s, rounds := startConsumption(t)
			c := s.create("used", 3, etcdVersion, kind.more)
			s.uncordonLater(slices.Collect(maps.Keys(c.nodes()))...)
			u := c.consume(rounds, "")
			u.repeat("drain", u.drainNode)
		})
	}
}

// consumerCARotation replaces the CA of such a cluster. A kube-apiserver reads the CAs
// that it trusts when it starts, so it is started again before the old one is dropped.
func consumerCARotation(t *testing.T, secret string, more ...string) {
	t.Helper()
	s, rounds := startConsumption(t)
	c := s.cluster("used")
	c.secure(secret, "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("used", 3, etcdVersion, append([]string{withAutoTLS}, more...)...))
	c.settle(3)
	u := c.consume(rounds, secret)
	for i := range rounds {
		u.rotate(strconv.Itoa(i + 1))
	}
}

// rotate replaces the CA.
func (u *consumption) rotate(request string) {
	u.Helper()
	before := u.trust(u.secret)
	u.during("rotation", func(int) { u.beginRotation(request) })
	u.restartConsumer("consumer-" + request)
	u.during("drop-of-the-old-ca", func(int) { u.endRotation(request, u.secret, before) })
}

// beginRotation has the members show certificates of a new CA, beside which they trust the old one.
func (c *cluster) beginRotation(request string) {
	c.Helper()
	shown := c.serials()
	c.kubectl("annotate", "--overwrite", "etcd/"+c.name, "etcd.database.coreos.com/rotate-ca="+request)
	c.shows(shown)
}

// endRotation drops the old CA, which the Secret of a client had before.
func (c *cluster) endRotation(request, secret, before string) {
	c.Helper()
	c.kubectl("annotate", "--overwrite", "etcd/"+c.name, "etcd.database.coreos.com/drop-old-ca="+request)
	c.await(c.ctx(), "the members to trust only the new CA", func(object *v1beta2.EtcdCluster) bool {
		valid := condition(object, v1beta2.ClusterConditionCertificatesValid)
		trust := c.trust(secret)
		return isSettled(object, 3) && valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" &&
			trust != before && strings.Count(trust, "BEGIN CERTIFICATE") == 1
	})
	c.settle(3)
}

// trust returns the CAs in the Secret of a client.
func (c *cluster) trust(secret string) string {
	c.Helper()
	object, err := env.Kube.CoreV1().Secrets(c.namespace).Get(c.ctx(), secret, metav1.GetOptions{})
	c.must(err, "read the certificate of clients")
	return string(object.Data["ca.crt"])
}

// TestConsumerLargeDatabase defragments a large database, which is a measurement and runs
// only where a size is set.
func TestConsumerLargeDatabase(t *testing.T) {
	env.RequireLocal(t, harness.NodeImages)
	size := positive(t, consumerSizeVariable, 0)
	if size == 0 {
		t.Skipf("set %s to the size of the database in MiB", consumerSizeVariable)
	}
	s, rounds := startConsumption(t)
	u := s.create("used", 3, etcdVersion, "\n  etcd: {quotaBackendBytes: 4Gi}").consume(rounds, "")
	const value = 512 << 10
	_, err := u.members.Fill(s.ctx(), size<<20/value, value)
	s.must(err, "fill %d MiB", size)
	u.repeat("defragmentation", func(int) { u.operate("defrag", 3) })
}
