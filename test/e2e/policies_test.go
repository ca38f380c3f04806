// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// clientPod is a pod that etcdctl and nc are executed in.
const clientPod = `apiVersion: v1
kind: Pod
metadata:
  name: %s
  labels: {role: client%s}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: etcdctl
    image: quay.io/coreos/etcd:v3.6.16
    command: [etcd, --data-dir=/tmp/etcd]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  - name: nc
    image: docker.io/library/busybox:1.35
    command: [sleep, "3600"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// namespacePolicies deny everything in the namespace of the test, as its administrator does.
// They allow what does not concern the members: the traffic of the clients and the store, and
// the requests of this machine to members and store.
const namespacePolicies = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default-deny}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: clients}
spec: {podSelector: {matchLabels: {role: client}}, policyTypes: [Egress], egress: [{}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: test-machine}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 172.30.0.1/32}}]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: store}
spec:
  podSelector: {matchLabels: {name: store}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchExpressions: [{key: app, operator: In, values: [etcd, etcd-backup, etcd-restore]}]}}], ports: [{port: 7070}]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: to-store}
spec:
  podSelector: {matchExpressions: [{key: app, operator: In, values: [etcd, etcd-backup, etcd-restore]}]}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {matchLabels: {name: store}}}], ports: [{port: 7070}]}]
`

// TestNetworkPolicies enforces NetworkPolicies for two tests beside each other, in namespaces that
// deny everything that artifacts/network-policies does not allow. So does the namespace of the
// programs, which is why nothing else runs meanwhile.
func TestNetworkPolicies(t *testing.T) {
	env.RequireLocal(t, harness.Nodes)
	s := startFor(t, 8*time.Minute)
	stop, err := env.EnforceNetworkPolicies(s.ctx())
	s.must(err, "enforce NetworkPolicies")
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop enforcing NetworkPolicies: %v", err)
		}
	})
	s.s3()
	s.client("friend", ", etcd-client: \"true\"")
	s.client("unlabelled", "")
	plain := s.create("plain", 1, etcdVersion)
	outside := s.another("outside")
	outside.client("outsider", "")
	for client, from := range map[string]*scenario{"friend": s, "unlabelled": s, "outsider": outside} {
		from.reaches(client, plain, true)
	}
	outside.reachesController("outsider", true)
	s.denyInSystem()
	s.denyByDefault()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		here := s.in(t)
		here.growsUnderPolicies(here.cluster("plain"), outside.in(t))
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		exchangesCAUnderPolicies(t)
	})
}

// growsUnderPolicies grows, heals, saves and restores a cluster where everything else is
// denied, and asks it from pods that may and from pods that may not.
func (s *scenario) growsUnderPolicies(plain *cluster, outside *scenario) {
	s.Helper()
	s.reaches("friend", plain, true)
	s.reaches("unlabelled", plain, false)
	outside.reaches("outsider", plain, false)
	outside.reachesController("outsider", false)

	// One member becomes three, and one of them is lost.
	data := plain.fill()
	s.kubectl("scale", "etcd/plain", "--replicas=3")
	plain.settle(3)
	lost := plain.follower()
	s.kubectl("delete", "pod", lost.Pod.Name)
	plain.must(plain.members.AwaitVoters(s.ctx(), 3, lost.Pod.UID), "a member was lost")
	plain.settle(3)
	plain.holds(data)
	s.contains(s.kubectl("get", "--raw", "/apis/etcd.database.coreos.com/v1beta2/namespaces/"+s.namespace+"/etcdclusters/plain/health"), `"Healthy"`)

	// A Job saves it, and a recovery, which fetches the data itself, restores it.
	s.apply(backupManifest("saved", "  etcdCluster: {name: plain}"+toS3("backups/plain", "aws")))
	s.awaitBackup(s.ctx(), "saved", "success", hasSucceeded)
	s.apply(restoreManifest("back", "plain", "  backup: {name: saved}"))
	s.restored("back")
	plain.settle(3)
	plain.holds(data)
	s.reaches("friend", plain, true)
	s.reaches("unlabelled", plain, false)
}

// exchangesCAUnderPolicies makes a cluster with certificates where everything else is denied, and
// replaces its CA, for which the controller reads certificates on the peer port.
func exchangesCAUnderPolicies(t *testing.T) {
	t.Helper()
	s := startFor(t, 8*time.Minute)
	s.denyByDefault()
	c := s.cluster("secure")
	c.secure("secure-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("secure", 3, etcdVersion, withAutoTLS))
	before, _ := issued(c.settle(3))
	data := c.fill()
	s.contains(s.kubectl("get", "--raw", "/apis/etcd.database.coreos.com/v1beta2/namespaces/"+s.namespace+"/etcdclusters/secure/health"), `"Healthy"`)
	s.kubectl("annotate", "etcd/secure", "etcd.database.coreos.com/rotate-ca=1", "etcd.database.coreos.com/drop-old-ca=1")
	c.await(s.ctx(), "only the new CA to be trusted", func(object *v1beta2.EtcdCluster) bool {
		now, _ := issued(object)
		return now[v1beta2.CertificateUseCA] != before[v1beta2.CertificateUseCA] &&
			strings.Contains(strings.Join(c.reasons(), " "), "CADropped") && isSettled(object, 3)
	})
	c.holds(data)
}

// client runs a pod that clients are executed in.
func (s *scenario) client(name, labels string) {
	s.Helper()
	s.apply(fmt.Sprintf(clientPod, name, labels))
	s.kubectl("wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// reaches waits until the pod can read from the cluster, or until it cannot.
func (s *scenario) reaches(pod string, c *cluster, want bool) {
	s.Helper()
	endpoint := fmt.Sprintf("--endpoints=http://%s-client.%s.svc:2379", c.name, c.namespace)
	s.awaitExit(want, fmt.Sprintf("pod %s to reach cluster %s: %t", pod, c.name, want),
		"exec", pod, "--", "etcdctl", endpoint, "--dial-timeout=2s", "--command-timeout=3s", "get", "nothing")
}

// awaitExit repeats a command until it succeeds, or until it fails if it must not succeed:
// three times in a row, because a command may fail for another reason as well.
func (s *scenario) awaitExit(want bool, what string, args ...string) {
	s.Helper()
	ctx := s.within(time.Minute)
	for needed := 3; ; {
		out, err := env.Kubectl(ctx, harness.Command{Args: append([]string{"-n", s.namespace}, args...)})
		if ctx.Err() != nil {
			s.Fatalf("%s: %v: the last attempt: %s, error %v", what, context.Cause(ctx), out, err)
		}
		switch {
		case err == nil && want:
			return
		case err == nil:
			needed = 3
		case !want:
			if needed--; needed == 0 {
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// denyInSystem applies what a user applies in the namespace of the programs. These policies go
// when the test ends.
func (s *scenario) denyInSystem() {
	s.Helper()
	operator := env.Artifact("network-policies", "operator.yaml")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := env.Kubectl(ctx, harness.Command{Args: []string{"delete", "--ignore-not-found", "-f", operator}}); err != nil {
			s.Errorf("remove the policies of the programs: %v", err)
		}
	})
	_, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"apply", "-f", operator}})
	s.must(err, "apply the policies of the programs")
}

// denyByDefault applies what a user applies in the namespace of members.
func (s *scenario) denyByDefault() {
	s.Helper()
	template, err := os.ReadFile(env.Artifact("network-policies", "members.yaml"))
	s.must(err, "read the policies of members")
	s.apply(string(template))
	s.apply(namespacePolicies)
}

// reachesController waits until a pod can read the metrics of the controller, or until it
// cannot.
func (s *scenario) reachesController(pod string, want bool) {
	s.Helper()
	pods, err := env.Kube.CoreV1().Pods(harness.SystemNamespace).List(s.ctx(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
	s.must(err, "find the controller")
	for i := range pods.Items {
		if program := &pods.Items[i]; harness.IsPodReady(program) {
			s.awaitExit(want, fmt.Sprintf("pod %s to reach the controller: %t", pod, want),
				"exec", pod, "-c", "nc", "--", "nc", "-w", "2", program.Status.PodIP, "8080")
		}
	}
}
