// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// issuedSecrets are the Secrets of a cluster with certificates that the controller issues, by the
// ends of their names.
var issuedSecrets = []string{"ca", "peer", "server", "operator", "client"}

// secretsLost deletes Secrets of one cluster together. While the controller runs it has the CA in
// memory, and no member restarts. If it was killed before, the CA is lost permanently.
func secretsLost(t *testing.T) {
	c, p, data := secretsToLose(t)
	pods := c.uids()
	c.losesSecrets(nil, issuedSecrets...)
	c.holds(data)
	for name, uid := range c.uids() {
		if pods[name] != uid {
			t.Errorf("pod %s was made again, although the CA was in memory", name)
		}
	}
	for _, lost := range [][]string{{"ca", "operator"}, {"ca", "peer"}} {
		pods = c.uids()
		c.losesSecrets(p, lost...)
		c.holds(data)
		if !c.isRenewed(pods) {
			t.Errorf("%q were lost, and not every member has restarted to trust another CA", lost)
		}
	}
}

// everySecretLost deletes every combination of Secrets, each of a cluster of its own whose controller
// was killed before.
func everySecretLost(t *testing.T) {
	harness.RequireNightly(t)
	for mask := 1; mask < 1<<len(issuedSecrets); mask++ {
		var lost []string
		for i, name := range issuedSecrets {
			if mask&(1<<i) != 0 {
				lost = append(lost, name)
			}
		}
		t.Run(strings.Join(lost, " "), func(t *testing.T) {
			t.Parallel()
			c, p, data := secretsToLose(t)
			c.losesSecrets(p, lost...)
			c.holds(data)
		})
	}
}

// secretsToLose makes a cluster with volumes and certificates that a controller of its own issues.
func secretsToLose(t *testing.T) (*cluster, *process, harness.Data) {
	t.Helper()
	s := start(t)
	p := s.controller("secrets", "--namespace="+s.namespace)
	c := s.cluster("lost")
	c.secure("lost-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("lost", 3, etcdVersion, withAutoTLS, withVolumes))
	c.settle(3)
	return c, p, c.fill()
}

// losesSecrets deletes Secrets together, and waits until the condition has said so and the cluster is as
// declared again. With p that controller is killed before.
func (c *cluster) losesSecrets(p *process, lost ...string) {
	c.Helper()
	view, err := env.Cluster(c.ctx(), c.namespace, c.name)
	c.must(err, "watch the cluster")
	defer view.Close()
	if p != nil {
		p.kill()
	}
	args := []string{"delete", "secret"}
	for _, name := range lost {
		args = append(args, c.name+"-"+name+"-tls")
	}
	c.kubectl(args...)
	if p != nil {
		p.launch()
	}
	until := func(what string, done func(valid v1beta2.ClusterCondition, object *v1beta2.EtcdCluster) bool) {
		c.must(view.Await(c.ctx(), func(list []*v1beta2.EtcdCluster) bool {
			return len(list) == 1 && done(condition(list[0], v1beta2.ClusterConditionCertificatesValid), list[0])
		}), "%q were lost: CertificatesValid is %s; at last:\n%s", lost, what, describe(c.get()))
	}
	until("not True", func(valid v1beta2.ClusterCondition, _ *v1beta2.EtcdCluster) bool {
		return valid.Status != corev1.ConditionTrue
	})
	until("True again", func(valid v1beta2.ClusterCondition, object *v1beta2.EtcdCluster) bool {
		return valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" && isSettled(object, 3)
	})
	c.settle(3)
}
