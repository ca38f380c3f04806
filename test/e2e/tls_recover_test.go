// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// recoverSecure takes all members but one away, and lets the cluster go on from it.
func (c *cluster) recoverSecure() {
	c.Helper()
	data, survivor := c.fill(), c.leader().Pod
	c.destroy(survivor)
	c.awaitLoss(survivor.Name)
	_, err := c.recoverNow()
	c.must(err, "ask for the recovery")
	object := c.recovered(3)
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{v1beta2.ClusterConditionCertificatesValid: corev1.ConditionTrue})
	c.holds(data)
	c.bumped()
	checkEncrypted(c)
	c.gone("pods", "etcd_retired="+c.name)
}

// TestTLSRecoveryStatic recovers a cluster whose secrets have Kubernetes' names.
func TestTLSRecoveryStatic(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.pki("saved", false).putAll()
	c := s.cluster("saved")
	c.secure(operatorSecret, "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("saved", 3, etcdVersion, withStaticTLS))
	c.settle(3)
	c.recoverSecure()
}

// TestTLSRecoveryAuto recovers a cluster with certificates of its own, and with etcd's
// own users: each certificate stays that of the same user.
func TestTLSRecoveryAuto(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.cluster("guarded")
	c.secure("guarded-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("guarded", 3, etcdVersion, withAutoTLS))
	c.settle(3)
	c.guard()
	c.recoverSecure()
	c.guarded()
}

// guard makes users prove their names by their certificates.
func (c *cluster) guard() {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "connect")
	for _, name := range []string{"root", "etcd-client"} {
		_, err := client.UserAddWithOptions(c.ctx(), name, "", &clientv3.UserAddOptions{NoPassword: true})
		c.must(err, "add user %s", name)
		_, err = client.UserGrantRole(c.ctx(), name, "root")
		c.must(err, "grant user %s a role", name)
	}
	_, err = client.AuthEnable(c.ctx())
	c.must(err, "want users to prove themselves")
}

// guarded fails the test unless they still must, and have the same names.
func (c *cluster) guarded() {
	c.Helper()
	client, err := c.members.Client(c.leader().Pod)
	c.must(err, "connect")
	status, err := client.AuthStatus(c.ctx())
	c.must(err, "ask for users")
	users, err := client.UserList(c.ctx())
	c.must(err, "list the users")
	if !status.Enabled || len(users.Users) != 2 {
		c.Errorf("afterwards users must prove themselves: %t, and are %v", status.Enabled, users.Users)
	}
	c.rejectsUnknownUsers()
}

// rejectsUnknownUsers makes sure that a certificate with the name of no user does nothing.
func (c *cluster) rejectsUnknownUsers() {
	c.Helper()
	view, err := env.Secret(c.ctx(), c.namespace, c.name+"-server-tls")
	c.must(err, "follow the secret of the server")
	defer view.Close()
	identity := &harness.Identity{Secret: view, Cert: "tls.crt", Key: "tls.key", CA: "ca.crt", Server: c.name + "-client." + c.namespace + ".svc"}
	others := harness.MembersOf(c.members.Pods)
	others.TLS = identity.Config()
	client, err := others.Client(c.leader().Pod)
	c.must(err, "connect")
	if _, err := client.Get(c.ctx(), "a"); err == nil {
		c.Errorf("a client whose name is no user may read")
	}
	c.must(client.Close(), "close")
}
