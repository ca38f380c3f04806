// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// withIPv6 has the client Service reached at an IPv6 address alone.
const withIPv6 = `
  services: {client: {ipFamilyPolicy: SingleStack, ipFamilies: [IPv6]}}`

// needFamilies skips a test where pods do not have addresses of these families.
func needFamilies(t *testing.T, families ...corev1.IPFamily) {
	t.Helper()
	if !haveFamilies(t, families...) {
		t.Skipf("pods of this Kubernetes do not have addresses of %v: take it down and make it with IP_FAMILIES=dual", families)
	}
}

func haveFamilies(t *testing.T, families ...corev1.IPFamily) bool {
	t.Helper()
	pods, err := env.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		t.Fatalf("list the pods of the name server: %v", err)
	}
	for i := range pods.Items {
		var has []corev1.IPFamily
		for _, ip := range pods.Items[i].Status.PodIPs {
			has = append(has, familyOf(ip.IP))
		}
		if !slices.ContainsFunc(families, func(f corev1.IPFamily) bool { return !slices.Contains(has, f) }) {
			return true
		}
	}
	return false
}

func familyOf(ip string) corev1.IPFamily {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// addresses waits until the client Service has addresses of just these families, in
// this order, and returns it.
func (c *cluster) addresses(families ...corev1.IPFamily) *corev1.Service {
	c.Helper()
	var found *corev1.Service
	c.awaitService(c.name+"-client", func(svc *corev1.Service) bool {
		var has []corev1.IPFamily
		for _, ip := range svc.Spec.ClusterIPs {
			has = append(has, familyOf(ip))
		}
		found = svc
		return slices.Equal(has, families) && slices.Equal(svc.Spec.IPFamilies, families)
	})
	return found
}

// etcdctl runs etcdctl in a pod until it succeeds: a new address takes a moment to reach
// every node. A change of the members that ran out of time may have been made all the same,
// and says so when it is repeated.
func (c *cluster) etcdctl(pod string, args ...string) string {
	c.Helper()
	out, err := "", error(nil)
	tried := false
	for ctx := c.within(repairWithin); ctx.Err() == nil; tried = true {
		out, err = c.exec(ctx, pod, args...)
		if err == nil || tried && (strings.Contains(err.Error(), "Peer URLs already exists") || strings.Contains(err.Error(), "member not found")) {
			return strings.TrimSpace(out)
		}
	}
	c.Fatalf("etcdctl in pod %s: %v", pod, err)
	return ""
}

func (c *cluster) exec(ctx context.Context, pod string, args ...string) (string, error) {
	return env.Kubectl(ctx, harness.Command{
		Args: append([]string{"-n", c.namespace, "exec", pod, "--", "etcdctl", "--dial-timeout=2s", "--command-timeout=3s"}, args...),
	})
}

// TestIPv6Service has clients reach a cluster at IPv6 addresses alone, a pod through the
// service and others at the members, while a member is lost. Edits of the service are
// undone; its family stays until a user deletes it.
func TestIPv6Service(t *testing.T) {
	t.Parallel()
	needFamilies(t, corev1.IPv6Protocol)
	s := start(t)
	c := s.create("six", 3, etcdVersion, withIPv6)
	svc := c.addresses(corev1.IPv6Protocol)
	endpoint := "--endpoints=http://" + net.JoinHostPort(svc.Spec.ClusterIP, "2379")
	data := c.fill()
	s.clientPod("client")
	s.contains(c.etcdctl("client", endpoint, "put", "greeting", "hello from a pod"), "OK")

	clients, step := c.clients() // at the addresses that the service leads to
	step("a member is lost", func() { c.lose(c.follower().Pod) })
	c.explained(clients)
	if got := c.etcdctl("client", endpoint, "get", "greeting", "--print-value-only"); got != "hello from a pod" {
		t.Errorf("read %q after a member was lost", got)
	}
	// The names of the members, which the cluster tells its clients.
	s.contains(c.etcdctl("client", endpoint, "endpoint", "health", "--cluster"), "is healthy")
	c.holds(data)

	if !haveFamilies(t, corev1.IPv4Protocol, corev1.IPv6Protocol) {
		return // there is nothing to change it to
	}
	s.kubectl("patch", "service", "six-client", "--type=merge", "-p", `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
	if now := c.addresses(corev1.IPv6Protocol); now.Spec.ClusterIP != svc.Spec.ClusterIP {
		t.Errorf("the repair moved the service from %s to %s", svc.Spec.ClusterIP, now.Spec.ClusterIP)
	}
	c.patch(`{"spec":{"services":{"client":{"ipFamilies":["IPv4"]}}}}`)
	object := c.await(s.ctx(), "the family of the service to be fixed", func(object *v1beta2.EtcdCluster) bool {
		return condition(object, v1beta2.ClusterConditionServiceAsDeclared).Reason == "Immutable"
	})
	s.contains(condition(object, v1beta2.ClusterConditionServiceAsDeclared).Message, "service six-client keeps", "delete the service")
	if now := c.addresses(corev1.IPv6Protocol); now.UID != svc.UID {
		t.Error("the Service was recreated, and its address is lost")
	}
	s.kubectl("delete", "service", "six-client")
	c.addresses(corev1.IPv4Protocol)
	c.await(s.ctx(), "the service to be as declared", func(object *v1beta2.EtcdCluster) bool {
		return isSettled(object, 3) && is(object, v1beta2.ClusterConditionServiceAsDeclared, corev1.ConditionTrue)
	})
	c.holds(data)
}

// TestDualStackService has clients that verify certificates reach a cluster at both
// addresses of its service under its name, and gives an edited service its second address
// back.
func TestDualStackService(t *testing.T) {
	t.Parallel()
	needFamilies(t, corev1.IPv4Protocol, corev1.IPv6Protocol)
	s := start(t)
	c := s.cluster("both")
	c.secure("both-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("both", 3, etcdVersion, withAutoTLS, `
  services: {client: {ipFamilyPolicy: RequireDualStack}}`))
	c.settle(3)
	data := c.fill()
	svc := c.addresses(corev1.IPv4Protocol, corev1.IPv6Protocol)
	host := "both-client." + s.namespace + ".svc"
	endpoint := "--endpoints=https://" + host + ":2379"
	for i, ip := range svc.Spec.ClusterIPs {
		pod := fmt.Sprintf("client%d", i)
		s.apply(secureClientPod(pod, "both-client-tls", host, ip))
		s.kubectl("wait", "--for=condition=Ready", "pod/"+pod, "--timeout=60s")
		s.contains(c.etcdctl(pod, endpoint, "put", fmt.Sprintf("from/%d", i), ip), "OK")
	}
	for i := range svc.Spec.ClusterIPs {
		got := strings.Fields(c.etcdctl(fmt.Sprintf("client%d", i), endpoint, "get", "--prefix", "from/", "--print-value-only"))
		if !slices.Equal(got, svc.Spec.ClusterIPs) {
			t.Errorf("client %d read %v, not %v", i, got, svc.Spec.ClusterIPs)
		}
	}
	// No other server is taken for the Service, at either address.
	for i, ip := range svc.Spec.ClusterIPs {
		pod := fmt.Sprintf("client%d", i)
		if out, err := c.exec(s.ctx(), pod, "--endpoints=https://"+net.JoinHostPort(ip, "2379"), "get", "a"); err == nil {
			t.Errorf("the certificate is good for the address %s: %s", ip, out)
		}
	}

	s.kubectl("patch", "service", "both-client", "--type=merge", "-p", `{"spec":{"ipFamilyPolicy":"SingleStack"}}`)
	if now := c.addresses(corev1.IPv4Protocol, corev1.IPv6Protocol); now.Spec.ClusterIP != svc.Spec.ClusterIP {
		t.Errorf("the repair moved the service from %s to %s", svc.Spec.ClusterIP, now.Spec.ClusterIP)
	}
	c.lose(c.follower().Pod)
	c.settle(3)
	c.holds(data)
}

// secureClientPod is a pod with etcdctl and the certificate of clients, for which a host
// name means one address.
func secureClientPod(name, secret, host, ip string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  hostAliases: [{ip: %q, hostnames: [%s]}]
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: tls, secret: {secretName: %s}}]
  containers:
  - name: client
    image: quay.io/coreos/etcd:v%s
    env:
    - {name: ETCDCTL_CACERT, value: /tls/ca.crt}
    - {name: ETCDCTL_CERT, value: /tls/tls.crt}
    - {name: ETCDCTL_KEY, value: /tls/tls.key}
    # It stays by watching a key that is never written, in an etcd that is not there.
    command: [etcdctl, "--endpoints=https://127.0.0.1:2379", watch, nothing]
    volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, name, ip, host, secret, etcdVersion)
}
