// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// withAutoTLS lets the controller issue everything.
const withAutoTLS = `
  TLS:
    auto: {}`

// issued returns the serial numbers and issuers of the certificates in the status.
func issued(object *v1beta2.EtcdCluster) (serials map[v1beta2.CertificateUse]string, issuers []string) {
	serials = map[v1beta2.CertificateUse]string{}
	for i := range object.Status.Certificates {
		c := &object.Status.Certificates[i]
		serials[c.Use] = c.SerialNumber
		issuers = append(issuers, c.Issuer)
	}
	return serials, issuers
}

// TestCARotation replaces the CAs of clusters beside each other: of two that a kube-apiserver keeps
// its objects in, and of one under a writer. One kube-apiserver has the certificate that all
// applications share, the other has one of its own. They count failed writes, so they do not run
// beside other tests.
func TestCARotation(t *testing.T) {
	env.RequireLocal(t, harness.NodeImages)
	for name, test := range map[string]func(*testing.T){
		"kube-apiserver without volumes": func(t *testing.T) { consumerCARotation(t, "used-client-tls") },
		"kube-apiserver with volumes": func(t *testing.T) {
			consumerCARotation(t, "used-apiserver-binding", withVolumes+"\n  clients: [{name: apiserver}]")
		},
		"writer": rotationUnderAWriter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// rotationUnderAWriter makes a cluster with certificates of its own, and under a writer that
// follows the client's secret loses a member, loses a secret, and replaces the CA.
func rotationUnderAWriter(t *testing.T) {
	s := start(t)
	c := s.cluster("auto")
	c.secure("auto-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("auto", 3, etcdVersion, withAutoTLS))
	object := c.settle(3)
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionCertificatesValid: corev1.ConditionTrue,
		v1beta2.ClusterConditionAvailable:         corev1.ConditionTrue,
	})
	before, _ := issued(object)
	if len(before) != 5 {
		t.Fatalf("the status tells about %v, not five certificates", before)
	}
	data := c.fill()
	target := c.follower()
	s.kubectl("delete", "pod", target.Pod.Name)
	c.must(c.members.AwaitVoters(s.ctx(), 3, target.Pod.UID), "a member was lost")
	c.settle(3)

	w := c.write()
	// A Secret that a user deletes is recreated.
	s.kubectl("delete", "secret", "auto-server-tls")
	s.kubectl("annotate", "etcd/auto", "example.com/look=now")
	c.await(s.ctx(), "another certificate of the server", func(object *v1beta2.EtcdCluster) bool {
		now, _ := issued(object)
		return now[v1beta2.CertificateUseServer] != "" && now[v1beta2.CertificateUseServer] != before[v1beta2.CertificateUseServer]
	})

	old := c.frozen()
	pods := c.uids()
	s.kubectl("annotate", "etcd/auto", "etcd.database.coreos.com/rotate-ca=1", "etcd.database.coreos.com/drop-old-ca=1")
	object = c.await(s.ctx(), "certificates of another CA", func(object *v1beta2.EtcdCluster) bool {
		now, issuers := issued(object)
		for _, issuer := range issuers {
			if issuer != issuers[0] {
				return false
			}
		}
		return now[v1beta2.CertificateUseCA] != before[v1beta2.CertificateUseCA] && len(issuers) == 5
	})
	c.await(s.ctx(), "only the new CA to be trusted", func(*v1beta2.EtcdCluster) bool {
		secret, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), "auto-client-tls", metav1.GetOptions{})
		return err == nil && strings.Count(string(secret.Data["ca.crt"]), "BEGIN CERTIFICATE") == 1 &&
			strings.Contains(strings.Join(c.reasons(), " "), "CADropped")
	})
	c.await(s.ctx(), "the members to trust nothing else", func(object *v1beta2.EtcdCluster) bool {
		valid := condition(object, v1beta2.ClusterConditionCertificatesValid)
		return isSettled(object, 3) && valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" && c.isRenewed(pods)
	})
	c.settle(3)
	c.rejects(old)
	// No exchange fails a write. In the end the members that had trusted the old CA were
	// replaced, and etcd drops what is on its way while the leader hands over. How much that is
	// depends on how busy the disk is: of 4735 writes, 7 were dropped beside builds. An exchange that
	// interrupts service for a quarter of a second fails more than this.
	report := c.stopped(w)
	if most := report.Sent / 200; report.Failed > most {
		t.Errorf("%d of %d writes failed while the certificates were exchanged, more than %d: %v", report.Failed, report.Sent, most, report.Errors)
	}
	c.holds(data)
	checkEncrypted(c)
	key, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), "auto-ca-tls", metav1.GetOptions{})
	s.must(err, "read the CA")
	checkNoKeys(c, key.Data["tls.key"])
	t.Logf("issuers at the end: %v", object.Status.Certificates[0].Issuer)
}

// frozen returns the configuration of a client that stays with the certificate of now.
func (c *cluster) frozen() *tls.Config {
	c.Helper()
	secret, err := env.Kube.CoreV1().Secrets(c.namespace).Get(c.ctx(), c.name+"-client-tls", metav1.GetOptions{})
	c.must(err, "read the certificate of clients")
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	c.must(err, "read the certificate of clients")
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}} //nolint:gosec // every server must reject it
}

// rejects fails the test if a member serves a client.
func (c *cluster) rejects(config *tls.Config) {
	c.Helper()
	others := harness.MembersOf(c.members.Pods)
	others.TLS = config
	for _, pod := range c.members.Live() {
		client, err := others.Client(pod)
		c.must(err, "connect")
		if _, err := client.Get(c.within(2*time.Second), "a"); err == nil {
			c.Errorf("member %s takes a certificate of the CA that was dropped", pod.Name)
		}
		c.must(client.Close(), "close")
	}
}

// isRenewed is true if no pod is one of those of before.
func (c *cluster) isRenewed(before map[string]types.UID) bool {
	for name, uid := range c.uids() {
		if before[name] == uid {
			return false
		}
	}
	return true
}
