// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// namesInterval is the time between two writes, and between two queries.
const namesInterval = 20 * time.Millisecond

// naming is a cluster and the name server that reads from it.
type naming struct {
	*cluster
	server *harness.NameServer
	secret string
}

// TestConsumerNames: a CoreDNS that keeps its names in a cluster, with a certificate of its own,
// responds to every query while the cluster is upgraded and gets another CA. No response is older than
// what was acknowledged before the query. Only the kill of the leader may cost queries.
func TestConsumerNames(t *testing.T) {
	harness.RequireNightly(t)
	t.Parallel()
	env.RequireLocal(t, harness.NodeImages)
	s := start(t)
	n := &naming{cluster: s.cluster("names"), secret: "names-dns-binding"}
	n.secure(n.secret, "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("names", 3, previousVersion, withAutoTLS, withVolumes+"\n  clients: [{name: dns}]"))
	n.settle(3)
	n.serve("dns")

	n.whole("upgrade", func() {
		n.kubectl(patchVersion("names", etcdVersion)...)
		n.await(s.ctx(), "version "+etcdVersion, func(o *clusterObject) bool { return o.Status.CurrentVersion == etcdVersion && isSettled(o, 3) })
	})
	before := n.trust(n.secret)
	n.whole("rotation", func() { n.beginRotation("1") })
	n.serve("dns-rotated") // CoreDNS reads certificates when it starts
	n.whole("drop of the old CA", func() { n.endRotation("1", n.secret, before) })
	n.during("kill of the leader", n.killLeader)
	n.whole("nothing", func() { <-n.within(5 * time.Second).Done() })
}

// serve starts a name server, which reads its certificate.
func (n *naming) serve(name string) {
	n.Helper()
	server, err := env.NameServer(n.ctx(), harness.ConsumerOptions{Namespace: n.namespace, Name: name, Cluster: n.cluster.name, Secret: n.secret})
	n.must(err, "start a name server on %s", n.cluster.name)
	n.server = server
}

// during does something while names are written and read. No response may be wrong.
func (n *naming) during(what string, do func()) *harness.NameReport {
	n.Helper()
	traffic, err := n.server.Traffic(n.ctx(), n.members, "counter", namesInterval)
	n.must(err, "write a name before the %s", what)
	do()
	report, err := traffic.Stop()
	n.must(err, "ask for names during the %s", what)
	n.Logf("%s: %v", what, report)
	for _, wrong := range report.Wrong {
		n.Errorf("%s: a wrong response: %s", what, wrong)
	}
	return report
}

// whole does something that may cost no response.
func (n *naming) whole(what string, do func()) {
	n.Helper()
	for _, err := range n.during(what, do).Failures {
		n.Errorf("%s: a query failed: %v", what, err)
	}
}
