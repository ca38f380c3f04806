// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// consumerRounds is how often each operation is repeated, unless the variable says
	// otherwise.
	consumerRounds         = 2
	consumerRoundsVariable = "ETCD_OPERATOR_CONSUMER_ROUNDS"
	consumerInterval       = 20 * time.Millisecond
	// consumerRound bounds one repetition.
	consumerRound = 2 * time.Minute
)

// consumption is a cluster, the kube-apiserver that uses it, and what that has seen.
type consumption struct {
	*cluster
	consumer *harness.Consumer
	rounds   int
	seen     map[string][]*harness.ConsumerReport
}

// startConsumption makes a namespace for a cluster that a kube-apiserver uses.
func startConsumption(t *testing.T) (*scenario, int) {
	t.Helper()
	rounds := consumerRounds
	if v := os.Getenv(consumerRoundsVariable); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, not a positive number", consumerRoundsVariable, v)
		}
		rounds = n
	}
	return startFor(t, testTimeout+time.Duration(2*rounds)*consumerRound), rounds
}

// consume starts the kube-apiserver of a cluster.
func (c *cluster) consume(rounds int, secret string) *consumption {
	c.Helper()
	consumer, err := env.Consumer(c.ctx(), harness.ConsumerOptions{Namespace: c.namespace, Cluster: c.name, Secret: secret})
	c.must(err, "start a kube-apiserver on %s", c.name)
	return &consumption{cluster: c, consumer: consumer, rounds: rounds, seen: map[string][]*harness.ConsumerReport{}}
}

// during repeats an operation while the kube-apiserver writes, and tells what it has
// seen. What was acknowledged must be there in the end.
func (c *consumption) during(what string, do func(round int)) {
	c.Helper()
	for i := range c.rounds {
		w, err := c.consumer.Write(c.ctx(), fmt.Sprintf("%s-%d", what, i), consumerInterval)
		c.must(err, "write through the kube-apiserver")
		from := time.Now()
		do(i)
		took := time.Since(from)
		report := w.Stop()
		c.Logf("%s %d: %v; %v", what, i+1, took.Round(10*time.Millisecond), report)
		c.must(c.consumer.Kept(c.ctx(), report), "after %s", what)
		c.seen[what] = append(c.seen[what], report)
	}
	failed, gaps, longest := 0, 0, time.Duration(0)
	for _, r := range c.seen[what] {
		failed += len(r.Failures)
		longest = max(longest, r.LongestGap)
		if r.LongestGap > 500*time.Millisecond {
			gaps++
		}
	}
	c.Logf("%s: %d times; %d failed writes; %d times a gap above 0.5 s, the longest %v", what, len(c.seen[what]), failed, gaps, longest.Round(time.Millisecond))
}

// restart asks for a restart and waits until it is over.
func (c *consumption) restart(int) {
	c.Helper()
	asked := post[v1beta2.EtcdClusterOperation](c.cluster, "restart", "{}")
	c.await(c.ctx(), "the end of the restart", func(object *clusterObject) bool {
		op := object.Status.Operation
		return op != nil && op.ID == asked.Status.ID && op.Over()
	})
	c.settle(3)
}

// TestConsumerUpgrades upgrades clusters that a kube-apiserver keeps its objects in.
func TestConsumerUpgrades(t *testing.T) {
	s, rounds := startConsumption(t)
	c := s.create("used", 3, previousVersion).consume(rounds, "")
	c.during("upgrade", func(round int) {
		v := etcdVersion
		if round%2 == 1 {
			v = previousVersion
		}
		s.kubectl(patchVersion(c.name, v)...)
		c.await(s.ctx(), "version "+v, func(o *clusterObject) bool { return o.Status.CurrentVersion == v && settled(o, 3) })
	})
}

// TestConsumerRestarts restarts clusters that a kube-apiserver keeps its objects in.
func TestConsumerRestarts(t *testing.T) {
	s, rounds := startConsumption(t)
	c := s.create("used", 3, etcdVersion, withVolumes).consume(rounds, "")
	c.during("restart", c.restart)
}
