// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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

// TestTLSAuto makes a cluster with certificates of its own, and under a writer that
// follows the client's secret grows it, loses a member, loses a secret, and replaces
// the authority.
func TestTLSAuto(t *testing.T) {
	t.Parallel()
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
	victim := c.follower()
	s.kubectl("delete", "pod", victim.Pod.Name)
	c.must(c.members.AwaitVoters(s.ctx(), 3, victim.Pod.UID), "a member was lost")
	c.settle(3)

	w := c.write()
	// A secret that somebody deletes is made again.
	s.kubectl("delete", "secret", "auto-server-tls")
	s.kubectl("annotate", "etcd/auto", "example.com/look=now")
	c.await(s.ctx(), "another certificate of the server", func(object *v1beta2.EtcdCluster) bool {
		now, _ := issued(object)
		return now[v1beta2.CertificateUseServer] != "" && now[v1beta2.CertificateUseServer] != before[v1beta2.CertificateUseServer]
	})

	s.kubectl("annotate", "etcd/auto", "etcd.database.coreos.com/rotate-ca=1", "etcd.database.coreos.com/drop-old-ca=1")
	object = c.await(s.ctx(), "certificates of another authority", func(object *v1beta2.EtcdCluster) bool {
		now, issuers := issued(object)
		for _, issuer := range issuers {
			if issuer != issuers[0] {
				return false
			}
		}
		return now[v1beta2.CertificateUseAuthority] != before[v1beta2.CertificateUseAuthority] && len(issuers) == 5
	})
	c.await(s.ctx(), "only the new authority to be trusted", func(*v1beta2.EtcdCluster) bool {
		secret, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), "auto-client-tls", metav1.GetOptions{})
		return err == nil && strings.Count(string(secret.Data["ca.crt"]), "BEGIN CERTIFICATE") == 1 &&
			strings.Contains(strings.Join(c.reasons(), " "), "AuthorityDropped")
	})
	c.settle(3)
	report := c.stopped(w)
	if report.Failed > 0 {
		t.Errorf("%d of %d writes failed while the certificates were exchanged: %v", report.Failed, report.Sent, report.Errors)
	}
	c.holds(data)
	checkEncrypted(c)
	key, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), "auto-ca-tls", metav1.GetOptions{})
	s.must(err, "read the authority")
	checkNoKeys(c, key.Data["tls.key"])
	t.Logf("issuers at the end: %v", object.Status.Certificates[0].Issuer)
}
