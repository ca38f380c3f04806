// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const withClients = `
  clients:
  - name: shop
  - {name: billing, commonName: accounts, secretName: billing-etcd}`

// application is a pod that has nothing of a cluster but the mounted Secret of a client.
const application = `apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: shop
    image: quay.io/coreos/etcd:v%s
    command: [etcdctl, --cacert=/bindings/etcd/ca.crt, watch, nothing]
    env:
    - {name: ETCDCTL_ENDPOINTS, valueFrom: {secretKeyRef: {name: %[2]s, key: endpoints}}}
    - {name: ETCDCTL_CERT, value: /bindings/etcd/tls.crt}
    - {name: ETCDCTL_KEY, value: /bindings/etcd/tls.key}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: etcd, mountPath: /bindings/etcd, readOnly: true}]
  volumes: [{name: etcd, secret: {secretName: %[2]s}}]
`

// TestClients gives two applications their Secrets. One of them writes with nothing but the
// mounted Secret while the CA is rotated; then it is removed.
func TestClients(t *testing.T) {
	t.Parallel()
	s := startFor(t, 2*testTimeout)
	s.contains(s.rejected(manifest("rejected", 1, etcdVersion, "\n  TLS: {certManager: {issuerRef: {name: ca}}}"+withClients), "apply", "-f", "-"),
		"spec.clients", "create a Certificate of cert-manager")
	c := s.cluster("bound")
	c.secure("bound-shop-binding", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("bound", 3, etcdVersion, withAutoTLS, withClients, withVolumes))
	object := c.settle(3)
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{v1beta2.ClusterConditionClientsAsDeclared: corev1.ConditionTrue})
	if b := object.Status.Binding; b == nil || b.Name != "bound-shop-binding" {
		t.Errorf("status.binding is %+v", b)
	}
	shop, billing := s.readSecret("bound-shop-binding"), s.readSecret("billing-etcd")
	if shop == nil || billing == nil || shop.Type != "servicebinding.io/etcd" || string(shop.Data["host"]) != "bound-client."+s.namespace+".svc" {
		t.Fatalf("the Secrets are %+v, %+v", shop, billing)
	}

	s.apply(fmt.Sprintf(application, etcdVersion, "bound-shop-binding"))
	s.kubectl("wait", "--for=condition=Ready", "pod/shop", "--timeout=60s")
	s.must(s.puts(s.ctx(), "0"), "write with the mounted Secret")
	data := c.fill()
	stop := s.writes()

	s.kubectl("annotate", "etcd/bound", "etcd.database.coreos.com/rotate-ca=1")
	s.awaitSecret("bound-shop-binding", "both CAs and a certificate of the new one", func(secret *corev1.Secret) bool {
		return cas(secret) == 2 && string(secret.Data["tls.crt"]) != string(shop.Data["tls.crt"])
	})
	// The certificate in the mounted Secret comes with the cross-signed CA by now, so that as a
	// list of CAs it is enough to trust the members.
	s.kubectl("annotate", "pod/shop", "example.com/look=now")
	s.poll("the mounted Secret to follow", func(ctx context.Context) bool {
		return s.inPod(ctx, "etcdctl", "--cacert=/bindings/etcd/tls.crt", "get", "a") == nil
	})
	s.kubectl("annotate", "etcd/bound", "etcd.database.coreos.com/drop-old-ca=1")
	s.awaitSecret("bound-shop-binding", "only the new CA", func(secret *corev1.Secret) bool { return cas(secret) == 1 })
	c.await(s.ctx(), "the members to trust nothing else", func(object *v1beta2.EtcdCluster) bool {
		valid := condition(object, v1beta2.ClusterConditionCertificatesValid)
		return isSettled(object, 3) && valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable"
	})
	stop()
	c.holds(data)
	if now := s.readSecret("billing-etcd"); now.UID != billing.UID || cas(now) != 1 || string(now.Data["tls.crt"]) == string(billing.Data["tls.crt"]) {
		t.Errorf("the Secret of the other client has %d CAs", cas(now))
	}

	c.secure("billing-etcd", "tls.crt", "tls.key", "ca.crt")
	s.kubectl("patch", "etcd/bound", "--type=merge", "-p", `{"spec":{"clients":[{"name":"billing","commonName":"accounts","secretName":"billing-etcd"}]}}`)
	object = c.await(s.ctx(), "the Secret of the removed client to be deleted", func(object *v1beta2.EtcdCluster) bool {
		return len(object.Status.Clients) == 1 && object.Status.Binding != nil && object.Status.Binding.Name == "billing-etcd"
	})
	if s.readSecret("bound-shop-binding") != nil {
		t.Error("the Secret of a removed client exists")
	}
	c.are(object, map[v1beta2.ClusterConditionType]corev1.ConditionStatus{v1beta2.ClusterConditionClientsAsDeclared: corev1.ConditionTrue})
}

// readSecret returns a Secret; nil if it does not exist.
func (s *scenario) readSecret(name string) *corev1.Secret {
	s.Helper()
	secret, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err, "read Secret %s", name)
	return secret
}

// cas counts the CAs in a Secret.
func cas(secret *corev1.Secret) int {
	return strings.Count(string(secret.Data["ca.crt"]), "BEGIN CERTIFICATE")
}

func (s *scenario) awaitSecret(name, what string, done func(*corev1.Secret) bool) {
	s.Helper()
	s.poll(what+" in Secret "+name, func(context.Context) bool {
		secret := s.readSecret(name)
		return secret != nil && done(secret)
	})
}

// poll waits for something that nothing announces.
func (s *scenario) poll(what string, done func(context.Context) bool) {
	s.Helper()
	err := wait.PollUntilContextCancel(s.within(2*time.Minute), time.Second, true, func(ctx context.Context) (bool, error) { return done(ctx), nil })
	s.must(err, "wait for %s", what)
}

// inPod runs a command in the pod of the application.
func (s *scenario) inPod(ctx context.Context, command ...string) error {
	_, err := env.Kubectl(ctx, harness.Command{Args: append([]string{"-n", s.namespace, "exec", "shop", "--"}, command...)})
	return err
}

func (s *scenario) puts(ctx context.Context, value string) error {
	return s.inPod(ctx, "etcdctl", "--cacert=/bindings/etcd/ca.crt", "put", "shop", value)
}

// enoughWrites is how many writes of an application a test asks for at least.
const enoughWrites = 10

// writes writes from the pod of the application, until the returned function is called and at
// least enoughWrites were sent. Each write is a process that reads the mounted files. A write that
// fails is sent once more: etcd drops what is on its way while a leader hands over.
func (s *scenario) writes() func() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx())
	var running sync.WaitGroup
	sent, repeated := 0, 0
	enough := make(chan struct{})
	running.Go(func() {
		for ctx.Err() == nil {
			if sent++; sent == enoughWrites+1 {
				close(enough)
			}
			err := s.puts(ctx, fmt.Sprint(sent))
			if err != nil && ctx.Err() == nil {
				repeated++
				err = s.puts(ctx, fmt.Sprint(sent))
			}
			if err != nil && ctx.Err() == nil {
				s.Errorf("write %d with the mounted Secret failed twice: %v", sent, err)
			}
		}
	})
	stop := func() {
		cancel()
		running.Wait()
	}
	s.Cleanup(stop)
	return func() {
		select {
		case <-enough:
		case <-ctx.Done():
			s.Errorf("not even %d writes with the mounted Secret", enoughWrites)
		}
		stop()
		s.Logf("%d writes with the mounted Secret, %d sent twice", sent, repeated)
	}
}
