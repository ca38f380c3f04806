// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const withCertManager = `
  TLS:
    certManager:
      issuerRef: {name: tests}`

const definition = "certificates.cert-manager.io"

// define brings the API of cert-manager for the rest of the test.
func (s *scenario) define() {
	s.Helper()
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"delete", "crd", definition, "--ignore-not-found"}}); err != nil {
			s.Errorf("delete the definition: %v", err)
		}
	})
	s.apply(harness.CertificateDefinition)
	s.kubectl("wait", "--for=condition=Established", "crd/"+definition, "--timeout=30s")
}

// TestTLSCertManager makes a cluster whose certificates cert-manager is to issue, before
// there is one; then installs something that plays it, renews a certificate under a writer,
// and edits the requested Certificates. In the nightly run the cluster then walks over three minor
// versions.
func TestTLSCertManager(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.kubectl("delete", "crd", definition, "--ignore-not-found")
	c := s.cluster("managed")
	version := etcdVersion
	if harness.IsNightly() {
		version = "3.5.35"
	}
	s.apply(manifest("managed", 3, version, withCertManager, "\n  etcd: {snapshotCount: 1000}"))
	object := c.blocked("CertManagerMissing", "cert-manager.io/v1")
	if object.Status.Phase != v1beta2.ClusterPhaseCreating {
		t.Errorf("phase is %s while no issuer runs", object.Status.Phase)
	}

	s.define()
	ca, err := harness.NewCA("the issuer " + s.namespace)
	s.must(err, "make a CA")
	issuer, err := env.Issuer(s.ctx(), s.namespace, ca)
	s.must(err, "start the issuer")
	t.Cleanup(func() {
		if err := issuer.Stop(); err != nil {
			t.Errorf("the issuer: %v", err)
		}
	})
	c.await(s.within(time.Minute), "the certificates", func(object *v1beta2.EtcdCluster) bool {
		return is(object, v1beta2.ClusterConditionCertificatesValid, corev1.ConditionTrue)
	})
	c.secure("managed-client-tls", "tls.crt", "tls.key", "ca.crt")
	object = c.settle(3)
	if len(object.Status.Certificates) != 4 {
		t.Fatalf("the status tells about %d certificates, not four", len(object.Status.Certificates))
	}
	data, uids, before := c.fill(), c.uids(), c.serials()
	checkEncrypted(c)

	leader := c.leader()
	w := c.write()
	s.must(issuer.Renew(s.ctx(), "managed-server-tls"), "renew")
	s.must(issuer.Renew(s.ctx(), "managed-peer-tls"), "renew")
	s.kubectl("annotate", "etcd/managed", "example.com/look=now")
	c.shows(before)

	// A change of a field of the request is reverted; an added field stays.
	s.must(issuer.Edit(s.ctx(), "managed-peer-tls", "commonName", "other-name"), "edit")
	s.must(issuer.Edit(s.ctx(), "managed-peer-tls", "duration", "24h"), "edit")
	s.kubectl("annotate", "etcd/managed", "example.com/look=again", "--overwrite")
	s.until(s.within(time.Minute), "the request to be repaired", func() bool {
		u, err := issuer.Get(s.ctx(), "managed-peer-tls")
		s.must(err, "read the request")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "commonName")
		duration, _, _ := unstructured.NestedString(u.Object, "spec", "duration")
		return name == "etcd-peer" && duration == "24h"
	})
	object = c.settle(3)
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{v1beta2.ClusterConditionCertificatesValid: corev1.ConditionTrue})
	c.noFailedWrite(w, leader, "certificates were renewed")
	c.same(c.ids(), uids, true)
	c.holds(data)
	if harness.IsNightly() {
		c.walk()
	}
}

// until asks until it is so.
func (s *scenario) until(ctx context.Context, what string, so func() bool) {
	s.Helper()
	if !met(ctx, so) {
		s.Fatalf("wait for %s: %v", what, context.Cause(ctx))
	}
}

// met waits until something is so. It is false if the context ends first.
func met(ctx context.Context, so func() bool) bool {
	for !so() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
	return true
}

// serials returns what each member shows to clients.
func (c *cluster) serials() map[string]string {
	c.Helper()
	serials := map[string]string{}
	for _, pod := range c.members.Live() {
		// It is looked at, not trusted; a client without a certificate of its own is rejected,
		// after it has seen that of the server.
		soon := c.within(5 * time.Second)
		connection, err := env.Dial(soon, "tcp", net.JoinHostPort(pod.Status.PodIP, "2379"))
		if err != nil {
			continue // it is tried again
		}
		secure := tls.Client(connection, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it only looks
		if secure.HandshakeContext(soon) == nil && len(secure.ConnectionState().PeerCertificates) > 0 {
			serials[pod.Name] = fmt.Sprintf("%x", secure.ConnectionState().PeerCertificates[0].SerialNumber)
		}
		if err := connection.Close(); err != nil {
			c.Logf("close: %v", err)
		}
	}
	return serials
}

// shows waits until each member shows another certificate than before.
func (c *cluster) shows(before map[string]string) {
	c.Helper()
	from := time.Now()
	c.until(c.within(2*time.Minute), "members to show the reissued certificate", func() bool {
		now := c.serials()
		for name, serial := range before {
			if now[name] == "" || now[name] == serial {
				return false
			}
		}
		return len(before) > 0
	})
	c.Logf("every member showed its new certificate after %v", time.Since(from).Round(100*time.Millisecond))
}
