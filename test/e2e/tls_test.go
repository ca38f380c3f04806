// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// Names of secrets that a user might give.
const (
	peerSecret     = "etcd-peer-tls"
	serverSecret   = "etcd-server-tls"
	operatorSecret = "etcd-client-tls"
)

// withStaticTLS names the user's secrets.
const withStaticTLS = `
  TLS:
    static:
      member:
        peerSecret: ` + peerSecret + `
        serverSecret: ` + serverSecret + `
      operatorSecret: ` + operatorSecret

// pki is what a user makes for a cluster: a CA and three certificates.
type pki struct {
	*scenario
	ca    *harness.CA
	hosts []string
	// named is true for the names that etcd-operator's users know, false for those of
	// kubernetes.io/tls.
	named bool
}

func (s *scenario) pki(cluster string, named bool) *pki {
	s.Helper()
	ca, err := harness.NewCA("the user's own " + cluster)
	s.must(err, "make a CA")
	domain := cluster + "." + s.namespace + ".svc"
	return &pki{scenario: s, ca: ca, named: named, hosts: []string{
		"*." + domain, domain, cluster + "-client." + s.namespace + ".svc", "localhost", "127.0.0.1",
	}}
}

func (p *pki) entries(use string) (cert, key, ca string) {
	if p.named {
		return use + ".crt", use + ".key", use + "-ca.crt"
	}
	return "tls.crt", "tls.key", "ca.crt"
}

// data issues a certificate and returns the content of its secret.
func (p *pki) data(use string, r harness.Request) map[string][]byte {
	p.Helper()
	if r.Name == "" {
		r.Name = use
	}
	if r.Hosts == nil && use != "etcd-client" {
		r.Hosts = p.hosts
	}
	crt, private, err := p.ca.Issue(r)
	p.must(err, "issue")
	cert, key, ca := p.entries(use)
	return map[string][]byte{cert: crt, key: private, ca: p.ca.PEM}
}

// put makes a secret, or gives it another content.
func (p *pki) put(name string, data map[string][]byte) {
	p.Helper()
	secrets := env.Kube.CoreV1().Secrets(p.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := secrets.Create(p.ctx(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(p.ctx(), secret, metav1.UpdateOptions{})
	}
	p.must(err, "write secret %s", name)
}

func (p *pki) putAll() {
	p.Helper()
	p.put(peerSecret, p.data("peer", harness.Request{}))
	p.put(serverSecret, p.data("server", harness.Request{}))
	p.put(operatorSecret, p.data("etcd-client", harness.Request{}))
}

// secure makes the test talk to the cluster with the certificate in a secret.
func (c *cluster) secure(secret, cert, key, ca string) {
	c.Helper()
	view, err := env.Secret(c.ctx(), c.namespace, secret)
	c.must(err, "follow secret %s", secret)
	c.Cleanup(view.Close)
	identity := &harness.Identity{
		Secret: view, Cert: cert, Key: key, CA: ca, Server: c.name + "-client." + c.namespace + ".svc",
	}
	c.members.TLS = identity.Config()
}

// blocked waits until the cluster says what it waits for, with these words.
func (c *cluster) blocked(reason string, words ...string) *v1beta2.EtcdCluster {
	c.Helper()
	object := c.await(c.within(time.Minute), fmt.Sprint("being blocked by ", reason, words), func(object *v1beta2.EtcdCluster) bool {
		return object.Status.BlockedBy != nil && object.Status.BlockedBy.Reason == reason &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(object.Status.BlockedBy.Message, word) })
	})
	if got := condition(object, v1beta2.ClusterConditionCertificatesValid); got.Status != corev1.ConditionFalse || got.Reason != reason {
		c.Errorf("condition CertificatesValid is %s (%s: %s), not False because of %s", got.Status, got.Reason, got.Message, reason)
	}
	return object
}

// TestTLSStatic makes a cluster from secrets as etcd-operator's users have them, which
// come one after the other and are wrong at first.
func TestTLSStatic(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("secure")
	p := s.pki("secure", true)
	s.apply(manifest("secure", 1, etcdVersion, withStaticTLS))

	object := c.blocked("SecretMissing", peerSecret)
	if object.Status.Phase != v1beta2.ClusterPhaseCreating {
		t.Errorf("phase is %s while a secret is missing", object.Status.Phase)
	}
	p.put(peerSecret, p.data("peer", harness.Request{}))
	p.put(operatorSecret, p.data("etcd-client", harness.Request{}))
	server := p.data("server", harness.Request{})
	p.put(serverSecret, map[string][]byte{"server.crt": server["server.crt"], "server-ca.crt": server["server-ca.crt"]})
	c.blocked("SecretIncomplete", serverSecret, "server.key")
	p.put(serverSecret, map[string][]byte{"server.crt": server["server.crt"], "server-ca.crt": server["server-ca.crt"],
		"server.key": p.data("server", harness.Request{})["server.key"]})
	c.blocked("CertificateUnusable", serverSecret, "server.key")
	p.put(serverSecret, p.data("server", harness.Request{Hosts: []string{"elsewhere.example.com"}}))
	c.blocked("CertificateUnusable", serverSecret, "elsewhere.example.com")
	p.put(serverSecret, p.data("server", harness.Request{NotAfter: time.Now().Add(-time.Minute)}))
	c.blocked("CertificateExpired")
	if pods := c.kubectl("get", "pods", "-o", "name"); pods != "" {
		t.Errorf("there are pods before there are usable certificates: %s", pods)
	}
	p.put(serverSecret, server)

	c.secure(operatorSecret, "etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt")
	object = c.settle(1)
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{
		v1beta2.ClusterConditionCertificatesValid: corev1.ConditionTrue,
		v1beta2.ClusterConditionAvailable:         corev1.ConditionTrue,
	})
	data := c.fill()
	s.kubectl("scale", "etcd/secure", "--replicas=3")
	c.settle(3)
	c.holds(data)
	checkEncrypted(c)
	checkNoKeys(c, server["server.key"])
}

// checkEncrypted makes sure that members accept no connection without a certificate.
func checkEncrypted(c *cluster) {
	c.Helper()
	for _, pod := range c.members.Live() {
		for _, url := range []string{"http://" + net.JoinHostPort(pod.Status.PodIP, "2379"), "https://" + net.JoinHostPort(pod.Status.PodIP, "2379")} {
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{url}, Logger: zap.NewNop(), DialOptions: env.DialOptions(),
				TLS: map[bool]*tls.Config{true: {InsecureSkipVerify: true}, false: nil}[strings.HasPrefix(url, "https")], // the server must reject it
			})
			c.must(err, "make a client")
			ctx := c.within(2 * time.Second)
			if _, err := client.Get(ctx, "a"); err == nil {
				c.Errorf("member %s serves at %s without a client certificate", pod.Name, url)
			}
			if err := client.Close(); err != nil {
				c.Logf("close: %v", err)
			}
		}
		list, err := c.members.Client(pod)
		c.must(err, "make a client")
		members, err := list.MemberList(c.ctx())
		c.must(err, "list the members")
		for _, m := range members.Members {
			for _, url := range append(m.PeerURLs, m.ClientURLs...) {
				if !strings.HasPrefix(url, "https://") {
					c.Errorf("member %s has URL %s", m.Name, url)
				}
			}
		}
	}
}

// checkNoKeys makes sure that no key is where people look.
func checkNoKeys(c *cluster, key []byte) {
	c.Helper()
	secret := strings.Split(string(key), "\n")[1]
	text := c.kubectl("get", "etcd,pods,events,services,configmaps", "-o", "yaml")
	logs, err := env.Kubectl(c.ctx(), harness.Command{Args: []string{"logs", "-n", harness.SystemNamespace, "deployment/" + harness.Controller}})
	c.must(err, "read the log of the controller")
	for where, text := range map[string]string{"objects": text, "log": logs} {
		if strings.Contains(text, secret) || strings.Contains(text, "PRIVATE KEY") {
			c.Errorf("a private key is in the %s", where)
		}
	}
}

// TestTLSStaticRenewed runs a cluster on secrets with Kubernetes' names, loses a
// member, renews the certificates and lets one expire.
func TestTLSStaticRenewed(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.pki("renewed", false)
	p.putAll()
	c := s.cluster("renewed")
	c.secure(operatorSecret, "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("renewed", 3, etcdVersion, withStaticTLS))
	object := c.settle(3)
	if len(object.Status.Certificates) != 3 {
		t.Fatalf("the status tells about %d certificates, not 3", len(object.Status.Certificates))
	}
	data := c.fill()
	target := c.follower()
	s.kubectl("delete", "pod", target.Pod.Name)
	c.must(c.members.AwaitVoters(s.ctx(), 3, target.Pod.UID), "a member was lost")
	c.holds(data)

	until := time.Now().Add(6 * time.Hour).Truncate(time.Second).UTC()
	for secret, use := range map[string]string{peerSecret: "peer", serverSecret: "server", operatorSecret: "etcd-client"} {
		p.put(secret, p.data(use, harness.Request{NotAfter: until}))
	}
	s.kubectl("annotate", "etcd/renewed", "example.com/look=now")
	c.await(s.ctx(), "the new certificates in the status", func(object *v1beta2.EtcdCluster) bool {
		for _, certificate := range object.Status.Certificates {
			if certificate.NotAfter == nil || !certificate.NotAfter.Time.Equal(until) {
				return false
			}
		}
		return true
	})
	c.holds(data)

	p.put(operatorSecret, p.data("etcd-client", harness.Request{NotAfter: time.Now().Add(-time.Minute)}))
	s.kubectl("annotate", "etcd/renewed", "example.com/look=again", "--overwrite")
	expired := c.blocked("CertificateExpired", operatorSecret)
	if is(expired, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) {
		t.Error("the status says QuorumLost because the controller has no certificate")
	}
	p.put(operatorSecret, p.data("etcd-client", harness.Request{}))
	c.settle(3)
	c.holds(data)
}
