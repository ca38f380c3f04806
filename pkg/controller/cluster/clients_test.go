// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// newClientWorld is a certWorld whose cluster has these clients.
func newClientWorld(t *testing.T, policy v1beta2.TLSPolicy, clients ...v1beta2.ClusterClient) *certWorld {
	t.Helper()
	w := newCertWorld(t, policy)
	w.kube.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateAction)
		secret, _ := create.GetObject().(*corev1.Secret)
		secret.UID = types.UID("uid-" + secret.Name) // as Kubernetes does
		return false, nil, nil
	})
	w.declare(clients...)
	return w
}

// declare changes spec.clients.
func (w *certWorld) declare(clients ...v1beta2.ClusterClient) {
	w.Helper()
	w.cluster.Generation++
	w.cluster.Spec.Clients = clients
	w.update()
}

func (w *certWorld) update() {
	w.Helper()
	if _, err := w.etcd.EtcdV1beta2().EtcdClusters("n").Update(w.Context(), w.cluster, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// steps reconciles several times, and writes the status each time.
func (w *certWorld) steps(n int) *seen {
	w.Helper()
	var s *seen
	for range n {
		s = w.step()
		w.cluster.Status = planner.Status(s.Observed, planner.Decide(s.Observed))
		w.update()
	}
	return s
}

// secret returns a Secret; nil if it does not exist.
func (w *certWorld) secret(name string) *corev1.Secret {
	w.Helper()
	secret, err := w.kube.CoreV1().Secrets("n").Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

// certificate returns the certificate in the Secret of a client.
func (w *certWorld) certificate(name string) *certificates.Pair {
	w.Helper()
	pair, err := certificates.Read(resources.UseOperator, w.secret(name))
	if err != nil {
		w.Fatal(err)
	}
	return pair
}

var issuedPolicy = v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}

// TestClientSecret: the Secret of a client has everything that the application needs, and
// members accept its certificate.
func TestClientSecret(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "app"}, v1beta2.ClusterClient{Name: "other", CommonName: "user", SecretName: "mine"})
	w.cluster.Spec.Pod = &v1beta2.PodPolicy{ClusterDomain: "example.org"}
	w.update()
	s := w.steps(6)
	secret := w.secret("c-app-binding")
	if secret == nil || secret.Type != "servicebinding.io/etcd" || !resources.Owns(w.cluster, secret) || len(secret.OwnerReferences) != 1 {
		t.Fatalf("the Secret is %+v", secret)
	}
	for entry, want := range map[string]string{
		"type": "etcd", "provider": "etcd-operator", "host": "c-client.n.svc.example.org", "port": "2379",
		"uri": "https://c-client.n.svc.example.org:2379", "endpoints": "https://c-client.n.svc.example.org:2379",
	} {
		if got := string(secret.Data[entry]); got != want {
			t.Errorf("entry %s is %q, want %q", entry, got, want)
		}
	}
	for name, common := range map[string]string{"c-app-binding": "app", "mine": "user"} {
		pair := w.certificate(name)
		if pair.Leaf.Subject.CommonName != common || len(pair.Leaf.DNSNames) != 0 {
			t.Errorf("the certificate in %s names %q, %v", name, pair.Leaf.Subject.CommonName, pair.Leaf.DNSNames)
		}
		if err := pair.Check(w.clock.Now(), s.certificates[v1beta2.CertificateUseServer].CAs, nil, x509.ExtKeyUsageClientAuth); err != nil {
			t.Errorf("members reject the certificate in %s: %v", name, err)
		}
		if err := pair.Check(w.clock.Now(), pair.CAs, nil, x509.ExtKeyUsageServerAuth); err == nil {
			t.Errorf("the certificate in %s is one of a server", name)
		}
	}
	if b := w.cluster.Status.Binding; b == nil || b.Name != "c-app-binding" {
		t.Errorf("the binding is %+v", b)
	}
	for _, c := range w.cluster.Status.Clients {
		if c.Ready != corev1.ConditionTrue || c.NotAfter == nil || c.RenewalTime == nil {
			t.Errorf("the status says %+v", c)
		}
	}
}

// TestClientSecretWithoutTLS has no certificate.
func TestClientSecretWithoutTLS(t *testing.T) {
	w := newClientWorld(t, v1beta2.TLSPolicy{}, v1beta2.ClusterClient{Name: "app"})
	w.steps(3)
	secret := w.secret("c-app-binding")
	if secret == nil || string(secret.Data["uri"]) != "http://c-client.n.svc:2379" || len(secret.Data) != 6 {
		t.Fatalf("the Secret is %+v", secret)
	}
}

// TestClientSecretFollows: a renewal, a rotation of the CA and a change by a user change the
// Secret, and what a user has added stays.
func TestClientSecretFollows(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "app"})
	w.steps(6)
	first := w.certificate("c-app-binding").Leaf
	issuedAt := w.clock.Now()

	edited := w.secret("c-app-binding")
	edited.Data["host"], edited.Data["username"] = []byte("elsewhere"), []byte("someone")
	if _, err := w.kube.CoreV1().Secrets("n").Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(w.clock.Now().Add(secretLife))
	w.steps(2)
	if secret := w.secret("c-app-binding"); string(secret.Data["host"]) != "c-client.n.svc" || string(secret.Data["username"]) != "someone" {
		t.Errorf("after a user has changed the Secret it has host %q, username %q", secret.Data["host"], secret.Data["username"])
	}
	if now := w.certificate("c-app-binding").Leaf; !now.Equal(first) {
		t.Error("the certificate was issued again without need")
	}

	w.clock.SetTime(issuedAt.Add(certificates.LeafLife / 3 * 2))
	w.steps(3)
	renewed := w.certificate("c-app-binding").Leaf
	if !renewed.NotAfter.After(first.NotAfter) || renewed.Issuer.String() != first.Issuer.String() {
		t.Errorf("it is valid until %v and was until %v", renewed.NotAfter, first.NotAfter)
	}

	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	w.steps(4)
	pair := w.certificate("c-app-binding")
	if pair.Leaf.Issuer.String() == first.Issuer.String() || len(pair.CAs) != 2 || len(pair.Chain) != 3 {
		t.Errorf("during a rotation the certificate is of %s, with %d CAs and a chain of %d", pair.Leaf.Issuer, len(pair.CAs), len(pair.Chain))
	}
	if err := pair.Check(w.clock.Now(), certsOf(renewed.Issuer.String(), pair.CAs), nil, x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("members that trust only the old CA reject it: %v", err)
	}
}

// certsOf returns the CA of this name.
func certsOf(name string, list []*x509.Certificate) []*x509.Certificate {
	for _, c := range list {
		if c.Subject.String() == name && c.Issuer.String() == name {
			return []*x509.Certificate{c}
		}
	}
	return nil
}

// TestRemovedClient: the Secret of a client that was removed or moved is deleted, and no other.
func TestRemovedClient(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "a"}, v1beta2.ClusterClient{Name: "b"})
	w.steps(6)
	w.declare(v1beta2.ClusterClient{Name: "a", SecretName: "moved"})
	w.steps(4)
	if w.secret("c-a-binding") != nil || w.secret("c-b-binding") != nil || w.secret("moved") == nil {
		t.Errorf("Secrets after the change: a %t, b %t, moved %t", w.secret("c-a-binding") != nil, w.secret("c-b-binding") != nil, w.secret("moved") != nil)
	}
	if got := w.cluster.Status.Clients; len(got) != 1 || got[0].SecretName != "moved" {
		t.Errorf("the status says %+v", got)
	}
}

// TestClientSecretOfOthers: a Secret that was not made for a client of this cluster is neither
// written nor deleted, whatever its name and whatever the status says.
func TestClientSecretOfOthers(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "a", SecretName: "theirs"}, v1beta2.ClusterClient{Name: "b"})
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "n"}, Type: resources.BindingSecretType, Data: map[string][]byte{"k": []byte("v")}}
	if _, err := w.kube.CoreV1().Secrets("n").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.steps(6)
	if secret := w.secret("theirs"); len(secret.Data) != 1 {
		t.Fatalf("a Secret that is not owned was written: %+v", secret)
	}
	if s := w.cluster.Status.Clients[0]; s.Ready != corev1.ConditionFalse || s.Reason != "NameConflict" || w.cluster.Status.Binding != nil {
		t.Errorf("the status says %+v, binding %+v", s, w.cluster.Status.Binding)
	}
	if w.secret("c-b-binding") == nil {
		t.Error("a conflict of one client costs another client its Secret")
	}
	w.declare()
	w.cluster.Status.Clients = append(w.cluster.Status.Clients, v1beta2.ClientStatus{SecretName: "c-ca-tls"})
	w.update()
	w.steps(4)
	if w.secret("theirs") == nil || w.secret("c-ca-tls") == nil || w.secret("c-b-binding") != nil {
		t.Errorf("Secrets at the end: theirs %t, CA %t, b %t", w.secret("theirs") != nil, w.secret("c-ca-tls") != nil, w.secret("c-b-binding") != nil)
	}
	if len(w.cluster.Status.Clients) != 0 {
		t.Errorf("the status says %+v", w.cluster.Status.Clients)
	}
}

// TestStaleClientActions: what has changed since the observation is left to the next one.
func TestStaleClientActions(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "a"})
	s := w.steps(6)
	r := &run{Reconciler: w.r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}
	remove := planner.DeleteClientSecret{Name: "c-a-binding", UID: "another"}
	write := planner.WriteClientSecret{Client: "a", Change: certplanner.ChangeAll}
	if err := carryOut(t.Context(), r, remove); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("a Secret with another UID is deleted: %v", err)
	}
	unknown := planner.WriteClientSecret{Client: "b", Change: certplanner.ChangeAll}
	if err := carryOut(t.Context(), r, unknown); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("the Secret of an unknown client is written: %v", err)
	}
	observed := *w.cluster
	r.seen.Cluster = &observed
	w.declare()
	for _, action := range []planner.Action{write, remove} {
		if err := carryOut(t.Context(), r, action); !errors.Is(err, reconcile.ErrStale) || !strings.Contains(err.Error(), "spec") {
			t.Errorf("%T by an outdated spec: %v", action, err)
		}
	}
}

// TestClientSecretIsReadOnce: Secrets of clients that are as declared are read every five
// minutes, as the others are.
func TestClientSecretIsReadOnce(t *testing.T) {
	w := newClientWorld(t, issuedPolicy, v1beta2.ClusterClient{Name: "a"})
	w.steps(6)
	w.steps(1)
	w.kube.ClearActions()
	w.step()
	if n := len(w.kube.Actions()); n != 0 {
		t.Errorf("%d requests for a cluster at rest: %v", n, w.kube.Actions())
	}
	w.clock.SetTime(w.clock.Now().Add(secretLife + time.Second))
	w.step()
	for _, action := range w.kube.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("a cluster at rest makes a request to %s", action.GetVerb())
		}
	}
	if n := len(w.kube.Actions()); n != 6 {
		t.Errorf("%d requests after five minutes, not one for each Secret", n)
	}
}
