// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestTLSStaticCARotation replaces the CA of a cluster with a user's own
// certificates, in the three steps that the documentation names, while a client writes.
// The user restarts nothing.
func TestTLSStaticCARotation(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.pki("moved", false)
	p.putAll()
	c := s.cluster("moved")
	c.secure(operatorSecret, "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("moved", 3, etcdVersion, withStaticTLS+withVolumes))
	c.settle(3)
	data, ids := c.fill(), c.ids()
	old := p.identity()
	w := c.write()

	before, pods := p.ca, c.uids()
	next, err := harness.NewCA("the next " + s.namespace)
	s.must(err, "make another CA")
	both := slices.Concat(before.PEM, next.PEM)
	p.putTrusting(both)
	c.restarted(pods)
	c.same(ids, pods, false)

	p.ca = next
	pods, shown := c.uids(), c.serials()
	p.putTrusting(both)
	s.kubectl("annotate", "etcd/moved", "example.com/look=exchanged", "--overwrite")
	c.shows(shown)
	c.settle(3)
	c.same(ids, pods, true)

	p.putTrusting(next.PEM)
	c.restarted(pods)
	c.same(ids, pods, false)
	c.rejects(old)
	report := c.stopped(w)
	t.Logf("%d of %d writes failed, the longest gap was %v", report.Failed, report.Sent, report.LongestGap)
	c.holds(data)
}

// putTrusting reissues all certificates, with these CAs beside them.
func (p *pki) putTrusting(cas []byte) {
	p.Helper()
	for secret, use := range map[string]string{peerSecret: "peer", serverSecret: "server", operatorSecret: "etcd-client"} {
		data := p.data(use, harness.Request{})
		_, _, ca := p.entries(use)
		data[ca] = cas
		p.put(secret, data)
	}
}

// identity is a client with a certificate of the CA of now, which trusts every server.
func (p *pki) identity() *tls.Config {
	p.Helper()
	cert, key, err := p.ca.Issue(harness.Request{Name: "client"})
	p.must(err, "issue")
	pair, err := tls.X509KeyPair(cert, key)
	p.must(err, "read a certificate")
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}} //nolint:gosec // every server must reject it
}

// restarted waits until no pod is one of those of before and nothing is pending.
func (c *cluster) restarted(pods map[string]types.UID) {
	c.Helper()
	c.kubectl("annotate", "etcd/"+c.name, "example.com/look=restart", "--overwrite")
	c.kubectl("annotate", "etcd/"+c.name, "example.com/look=restarted", "--overwrite")
	c.await(c.ctx(), "every member to restart", func(object *v1beta2.EtcdCluster) bool {
		valid := condition(object, v1beta2.ClusterConditionCertificatesValid)
		return isSettled(object, len(pods)) && valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" && c.isRenewed(pods)
	})
	c.settle(len(pods))
}
