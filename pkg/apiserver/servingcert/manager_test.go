// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const apiService = "v1beta2.etcd.database.coreos.com"

// bench is a cluster as the manager sees it.
type bench struct {
	kube       *fake.Clientset
	aggregator *aggregatorfake.Clientset
	clock      *clocktesting.FakeClock
	// writes counts the writes of the Secret.
	writes int
}

func newBench(objects ...runtime.Object) *bench {
	b := &bench{
		kube: fake.NewClientset(objects...),
		aggregator: aggregatorfake.NewSimpleClientset(&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: apiService},
			Spec:       apiregistrationv1.APIServiceSpec{InsecureSkipTLSVerify: true},
		}),
		clock: clocktesting.NewFakeClock(start),
	}
	b.dateWrites()
	return b
}

func (b *bench) manager() *Manager {
	return NewManager(Config{Namespace: "ns", Service: "server", Secret: "tls", APIService: apiService}, b.kube, b.aggregator, b.clock)
}

func (b *bench) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := b.kube.CoreV1().Secrets("ns").Get(t.Context(), "tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func (b *bench) apiService(t *testing.T) *apiregistrationv1.APIService {
	t.Helper()
	service, err := b.aggregator.ApiregistrationV1().APIServices().Get(t.Context(), apiService, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// checkTrusted verifies what a manager shows the way the kube-apiserver does.
func (b *bench) checkTrusted(t *testing.T, m *Manager) {
	t.Helper()
	pair, err := tls.X509KeyPair(m.provider.CurrentCertKeyContent())
	if err != nil {
		t.Fatal(err)
	}
	service := b.apiService(t)
	if service.Spec.InsecureSkipTLSVerify {
		t.Error("the kube-apiserver skips the verification")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(service.Spec.CABundle)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "server.ns.svc", CurrentTime: b.clock.Now()}); err != nil {
		t.Error(err)
	}
}

func TestSyncFromNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if secret := b.secret(t); secret.Type != corev1.SecretTypeTLS || !bytes.Equal(secret.Data[caCertDataKey], b.apiService(t).Spec.CABundle) {
		t.Error("the secret is not what the APIService trusts")
	}
	b.checkTrusted(t, m)
}

func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	b := newBench()
	first, second := b.manager(), b.manager()
	for _, m := range []*Manager{first, second} {
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one, _ := first.provider.CurrentCertKeyContent()
	two, _ := second.provider.CurrentCertKeyContent()
	if !bytes.Equal(one, two) {
		t.Error("two replicas show different certificates")
	}
}

// TestSecondReplicaWins lets another replica write between the read and the write.
func TestSecondReplicaWins(t *testing.T) {
	t.Parallel()
	other := walk(t, time.Duration(0), StepCreate)
	other, err := other.step(StepIssueLeaf, start, NewManager(Config{Namespace: "ns", Service: "server"}, nil, nil, nil).names())
	if err != nil {
		t.Fatal(err)
	}
	data, err := other.encode()
	if err != nil {
		t.Fatal(err)
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for verb, objects := range map[string][]runtime.Object{
		"create": nil,
		"update": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tls"}}},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			b := newBench(objects...)
			b.kube.PrependReactor(verb, "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tls"}, Data: data}
				if verb == "create" {
					err := b.kube.Tracker().Create(secrets, theirs, "ns")
					return true, nil, errors.Join(err, apierrors.NewAlreadyExists(secrets.GroupResource(), "tls"))
				}
				if err := b.kube.Tracker().Update(secrets, theirs, "ns"); err != nil {
					return true, nil, err
				}
				return true, nil, apierrors.NewConflict(secrets.GroupResource(), "tls", errors.New("modified"))
			})
			m := b.manager()
			if err := m.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			shown, _ := m.provider.CurrentCertKeyContent()
			if !bytes.Equal(shown, data[corev1.TLSCertKey]) {
				t.Error("shows another certificate than the one that was written first")
			}
		})
	}
}

func TestContention(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.kube.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, "tls")
	})
	if err := b.manager().Sync(t.Context()); !errors.Is(err, ErrContended) {
		t.Errorf("got %v, want %v", err, ErrContended)
	}
}

func TestUselessSecretIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tls", Labels: map[string]string{"kept": "yes"}},
		Data:       map[string][]byte{corev1.TLSCertKey: []byte("nonsense")},
	})
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.secret(t).Labels["kept"] != "yes" {
		t.Error("the labels are missing")
	}
	b.checkTrusted(t, m)
}

func TestMissingAPIServiceIsNoError(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.aggregator = aggregatorfake.NewSimpleClientset()
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil || m.provider.isEmpty() {
		t.Errorf("got %v, want a certificate", err)
	}
}

// TestUntrustedLeafIsNotShown: as long as the APIService cannot be changed, the old
// leaf stays in use.
func TestUntrustedLeafIsNotShown(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := m.provider.CurrentCertKeyContent()

	rejected := errors.New("rejected")
	b.aggregator.PrependReactor("get", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, rejected })
	b.clock.Step(leafLifetime - leafRenewBefore + time.Hour)
	if err := m.Sync(t.Context()); !errors.Is(err, rejected) {
		t.Errorf("got %v, want %v", err, rejected)
	}
	after, _ := m.provider.CurrentCertKeyContent()
	if !bytes.Equal(before, after) {
		t.Error("the server uses a leaf that clients do not trust yet")
	}

	b.aggregator.ReactionChain = b.aggregator.ReactionChain[1:]
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, _ = m.provider.CurrentCertKeyContent(); bytes.Equal(before, after) {
		t.Error("the renewed leaf is not shown")
	}
	b.checkTrusted(t, m)
}

// TestFirstCertificateIsShownWithoutTrust: a server that shows something is of more
// use than one that does not start, and the bundle follows.
func TestFirstCertificateIsShownWithoutTrust(t *testing.T) {
	t.Parallel()
	b := newBench()
	rejected := errors.New("rejected")
	b.aggregator.PrependReactor("get", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, rejected })
	m := b.manager()
	if err := m.Sync(t.Context()); !errors.Is(err, rejected) {
		t.Errorf("got %v, want %v", err, rejected)
	}
	if m.provider.isEmpty() {
		t.Error("no certificate")
	}
}

func TestBundleOfTheAPIServiceIsRepaired(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	service := b.apiService(t)
	service.Spec.CABundle = nil
	if _, err := b.aggregator.ApiregistrationV1().APIServices().Update(t.Context(), service, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.checkTrusted(t, m)
}

// TestAtRest: nothing is written when nothing is due.
func TestAtRest(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.kube.ClearActions()
	b.aggregator.ClearActions()
	b.clock.Step(day)
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, action := range append(b.kube.Actions(), b.aggregator.Actions()...) {
		if action.GetVerb() != "get" {
			t.Errorf("%s %s at rest", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

type listener struct{ told atomic.Int32 }

func (l *listener) Enqueue() { l.told.Add(1) }

// TestCARotation runs a manager through the renewal of its CA with a
// fake clock, and verifies at each sync what the kube-apiserver would meet.
func TestCARotation(t *testing.T) {
	t.Parallel()
	b := newBench()
	m := b.manager()
	heard := &listener{}
	m.Provider().AddListener(heard)
	bundles := map[int]bool{}
	for range int(caLifetime/(5*day)) + 10 {
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.checkTrusted(t, m)
		bundles[bytes.Count(b.apiService(t).Spec.CABundle, []byte("BEGIN CERTIFICATE"))] = true
		b.clock.Step(5 * day)
	}
	if !bundles[1] || !bundles[2] || bundles[3] {
		t.Errorf("the bundle had %v cas, want 1 and in between 2", bundles)
	}
	if told := heard.told.Load(); told < 10 {
		t.Errorf("the listener got a new leaf %d times", told)
	}
}

// TestDeletedSecretKeepsReplicasTrusted: after the Secret was deleted, a replica makes new
// certificates; the certificate that another server shows until its next look stays trusted.
func TestDeletedSecretKeepsReplicasTrusted(t *testing.T) {
	t.Parallel()
	b := newBench()
	first, second := b.manager(), b.manager()
	for _, m := range []*Manager{first, second} {
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := b.secret(t).Data[corev1.TLSPrivateKeyKey]
	if err := b.kube.CoreV1().Secrets("ns").Delete(t.Context(), "tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.checkTrusted(t, first)
	b.checkTrusted(t, second)
	if after := b.secret(t).Data[corev1.TLSPrivateKeyKey]; bytes.Equal(before, after) {
		t.Error("the key is the one that was deleted")
	}
	if err := second.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(2 * settleTime)
	if err := first.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if have, err := parse(b.secret(t).Data); err != nil || len(have.cas) != 1 {
		t.Errorf("cas %+v (%v), want only the new one", have, err)
	}
}
