// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// writeInterval is the pace of the writers: 20 writes a second. Several run at a time, and each write is synced to the
// disk of each member.
const writeInterval = 50 * time.Millisecond

// withVolumes gives every member a volume of the default storage class.
const withVolumes = `
  pod:
    persistentVolumeClaimSpec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 64Mi}}`

// manifest returns an EtcdCluster as a user would write it; more continues its spec.
func manifest(name string, size int, version string, more ...string) string {
	return fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata:
  name: %s
spec:
  size: %d
  version: %q%s
`, name, size, version, strings.Join(more, ""))
}

// cluster is one EtcdCluster of a test, and its members.
type cluster struct {
	*scenario
	name    string
	members *harness.Members
}

// cluster follows an EtcdCluster that was or will be made.
func (s *scenario) cluster(name string) *cluster {
	s.Helper()
	members, err := env.Members(s.ctx(), s.namespace, name)
	s.must(err, "follow the members of %s", name)
	s.Cleanup(func() {
		if err := members.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return &cluster{scenario: s, name: name, members: members}
}

// create applies a cluster and waits until it runs as declared.
func (s *scenario) create(name string, size int, version string, more ...string) *cluster {
	s.Helper()
	c := s.cluster(name)
	s.apply(manifest(name, size, version, more...))
	c.settle(size)
	return c
}

// get reads the object.
func (c *cluster) get() *v1beta2.EtcdCluster {
	c.Helper()
	object, err := env.Etcd.EtcdV1beta2().EtcdClusters(c.namespace).Get(c.ctx(), c.name, metav1.GetOptions{})
	c.must(err, "read cluster %s", c.name)
	return object
}

// await watches the object until done is true of it.
func (c *cluster) await(ctx context.Context, what string, done func(*v1beta2.EtcdCluster) bool) *v1beta2.EtcdCluster {
	c.Helper()
	view, err := env.Cluster(ctx, c.namespace, c.name)
	c.must(err, "watch cluster %s", c.name)
	defer view.Close()
	var last *v1beta2.EtcdCluster
	err = view.Await(ctx, func(list []*v1beta2.EtcdCluster) bool {
		for _, object := range list {
			last = object
			return done(object)
		}
		return false
	})
	if err != nil {
		c.Fatalf("cluster %s, waiting for %s: %v; at last:\n%s", c.name, what, err, describe(last))
	}
	return last
}

func describe(object *v1beta2.EtcdCluster) string {
	if object == nil {
		return "it does not exist"
	}
	text, err := yaml.Marshal(object.Status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// settle waits until etcd has exactly n voters and the status says that nothing is
// left to do.
func (c *cluster) settle(n int) *v1beta2.EtcdCluster {
	c.Helper()
	object := c.await(c.ctx(), fmt.Sprintf("%d members as declared", n), func(object *v1beta2.EtcdCluster) bool {
		return isSettled(object, n)
	})
	c.must(c.members.AwaitVoters(c.within(time.Minute), n), "the status of %s says %d members", c.name, n)
	return object
}

func isSettled(object *v1beta2.EtcdCluster, n int) bool { return harness.IsSettled(object, n) }

func condition(object *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	return harness.Condition(object, t)
}

func is(object *v1beta2.EtcdCluster, t v1beta2.ClusterConditionType, status corev1.ConditionStatus) bool {
	return harness.HasCondition(object, t, status)
}

// are fails the test for each condition that has not the status given.
func (c *cluster) are(object *v1beta2.EtcdCluster, want map[v1beta2.ClusterConditionType]corev1.ConditionStatus) {
	c.Helper()
	for t, status := range want {
		if got := condition(object, t); got.Status != status {
			c.Errorf("condition %s is %q (%s: %s), not %q", t, got.Status, got.Reason, got.Message, status)
		}
	}
}

// awaitConditions waits until the conditions have the status given. A member that responds late changes some of them for a
// moment.
func (c *cluster) awaitConditions(want map[v1beta2.ClusterConditionType]corev1.ConditionStatus) {
	c.Helper()
	c.await(c.within(noticeWithin), fmt.Sprintf("the conditions %v", want), func(object *v1beta2.EtcdCluster) bool {
		for t, status := range want {
			if !is(object, t, status) {
				return false
			}
		}
		return true
	})
}

// write starts a writer; the test must stop it with stopped.
func (c *cluster) write() *harness.Writer {
	c.Helper()
	w, err := c.members.Write(c.ctx(), writeInterval)
	c.must(err, "write to %s", c.name)
	return w
}

// stopped ends a writer and makes sure that no acknowledged write was lost.
func (c *cluster) stopped(w *harness.Writer) *harness.Report {
	c.Helper()
	report, err := w.Stop()
	c.must(err, "stop the writer")
	c.Logf("writer of %s: %v", c.name, report)
	c.must(c.members.Kept(c.ctx(), report), "after the writer stopped")
	return report
}

// mostLate is how many writes may get no response in time although nothing is wrong: all that are under way wait for a disk
// that others keep busy.
const mostLate = 30

// noFailedWrite stops a writer and fails the test if a write has failed, unless etcd has
// elected by itself: on a disk that others keep busy a heartbeat may be late. A few writes may
// be late for the same reason; any other error is one too many. Before is the response of the
// leader when the writer began.
func (c *cluster) noFailedWrite(w *harness.Writer, before harness.Response, while string) {
	c.Helper()
	report := c.stopped(w)
	if report.Failed == 0 {
		return
	}
	if now := c.leader(); now.Term != before.Term && !slices.Contains(c.reasons(), "LeaderMoved") {
		c.Logf("%s: etcd elected by itself: term %d, then %d", while, before.Term, now.Term)
		return
	}
	late := 0
	for text, n := range report.Errors {
		if strings.Contains(text, context.DeadlineExceeded.Error()) {
			late += n
		}
	}
	if late == report.Failed && late <= mostLate {
		c.Logf("%s: %d of %d writes were late", while, late, report.Sent)
		return
	}
	c.Errorf("%s: %d of %d writes failed: %v", while, report.Failed, report.Sent, report.Errors)
}

// fill writes data that must be found again.
func (c *cluster) fill() harness.Data {
	c.Helper()
	data, err := c.members.Fill(c.ctx(), 200, 256)
	c.must(err, "fill %s", c.name)
	return data
}

// holds fails the test unless every member has the data.
func (c *cluster) holds(data harness.Data) {
	c.Helper()
	c.must(c.members.Holds(c.ctx(), data), "the data of %s", c.name)
}

// leader returns what the leading member says. For a moment of an election no member leads, and on a busy machine one of
// them may take longer than a question may.
func (c *cluster) leader() harness.Response {
	c.Helper()
	var leader harness.Response
	c.until(c.within(time.Minute), "a member of "+c.name+" leads", func() bool {
		var err error
		leader, err = c.members.Leader(c.ctx())
		return err == nil
	})
	return leader
}

// responses returns what every member says. On a busy machine one of them may take longer than a question may.
func (c *cluster) responses() map[string]harness.Response {
	c.Helper()
	var responses map[string]harness.Response
	c.until(c.within(time.Minute), "every member of "+c.name+" responds", func() bool {
		var err error
		responses, err = c.members.Ask(c.ctx())
		return err == nil
	})
	return responses
}

// follower returns what a member says that does not lead.
func (c *cluster) follower() harness.Response {
	c.Helper()
	for _, a := range c.responses() {
		if a.ID != a.Leader {
			return a
		}
	}
	c.Fatalf("cluster %s has no follower", c.name)
	return harness.Response{}
}

// ids returns the IDs of the members by their names.
func (c *cluster) ids() map[string]uint64 {
	c.Helper()
	ids := map[string]uint64{}
	for name, a := range c.responses() {
		ids[name] = a.ID
	}
	return ids
}

// reasons returns the reasons of the events about the cluster, in order.
func (c *cluster) reasons() []string {
	c.Helper()
	return strings.Fields(c.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp",
		"--field-selector=involvedObject.kind=EtcdCluster,involvedObject.name="+c.name,
		"-o", "jsonpath={.items[*].reason}"))
}
