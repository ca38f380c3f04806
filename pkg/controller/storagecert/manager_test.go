// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storagecert

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	ns      = "etcd-operator-system"
	service = "etcd-operator-storage"
	host    = "etcd-operator-storage-1.etcd-operator-storage.etcd-operator-system.svc"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type bench struct {
	*testing.T

	kube    *fake.Clientset
	clock   *clocktesting.FakeClock
	manager *Manager
	// restartBefore is what the last sync has set.
	restartBefore time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, kube: fake.NewClientset(), clock: clocktesting.NewFakeClock(start)}
	b.manager = NewManager(Config{Namespace: ns, Service: service}, b.kube, b.clock)
	b.manager.setRestartBefore = func(at time.Time) { b.restartBefore = at }
	return b
}

func (b *bench) sync() {
	b.Helper()
	if err := b.manager.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) secret(suffix string) *corev1.Secret {
	b.Helper()
	secret, err := b.kube.CoreV1().Secrets(ns).Get(b.Context(), service+suffix, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return secret
}

// pair reads a certificate as a member reads it.
func (b *bench) pair(suffix string) *certificates.Pair {
	b.Helper()
	pair, err := certificates.Read(resources.UseOperator, b.secret(suffix))
	if err != nil {
		b.Fatal(err)
	}
	return pair
}

// checkAccepted checks that a program that trusts the CAs accepts a member under its own name,
// and a client.
func (b *bench) checkAccepted(trusted []*x509.Certificate) {
	b.Helper()
	if err := b.pair(memberSuffix).Check(b.clock.Now(), trusted, []string{host}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
		b.Errorf("member: %v", err)
	}
	if err := b.pair(clientSuffix).Check(b.clock.Now(), trusted, nil, x509.ExtKeyUsageClientAuth); err != nil {
		b.Errorf("client: %v", err)
	}
}

func (b *bench) annotate(key string) {
	b.Helper()
	secret := b.secret(caSuffix)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, "now")
	if _, err := b.kube.CoreV1().Secrets(ns).Update(b.Context(), secret, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) writes() int {
	n := 0
	for _, action := range b.kube.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func TestFirstSyncIssuesEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync()
	b.checkAccepted(b.pair(clientSuffix).CAs)
	b.checkAccepted(b.pair(memberSuffix).CAs)
	if _, ok := b.secret(memberSuffix).Data[resources.CrossEntry]; ok || len(b.secret(clientSuffix).Data) != 3 {
		t.Error("a Secret that is mounted holds more than a certificate, its key and the CAs")
	}
	before := b.writes()
	b.sync()
	if n := b.writes() - before; n != 0 {
		t.Errorf("the second sync wrote %d times", n)
	}
	if err := b.pair(clientSuffix).Check(start, b.pair(clientSuffix).CAs, nil, x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("the certificate of clients is good for a server")
	}
}

// TestCertificatesAreAlwaysValid lets twelve years pass, a week at a time. A program that was
// started within the last twenty months accepts every certificate.
func TestCertificatesAreAlwaysValid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync()
	const week = 7 * 24 * time.Hour
	const remembered = 85 // weeks, just below a third of the life of a CA
	var started [][]*x509.Certificate
	cas := map[string]bool{}
	for range 12 * 52 {
		started = append(started, b.pair(memberSuffix).CAs)
		if len(started) > remembered {
			started = started[1:]
		}
		b.clock.Step(week)
		b.sync()
		b.checkAccepted(started[0])
		b.checkAccepted(started[len(started)-1])
		if b.Failed() {
			t.Fatalf("after %v", b.clock.Now().Sub(start))
		}
		trusted := b.pair(memberSuffix).CAs
		cas[certificates.Fingerprint(trusted[0])] = true
		if len(trusted) > 2 {
			t.Fatalf("%d CAs are trusted after %v", len(trusted), b.clock.Now().Sub(start))
		}
	}
	if len(cas) < 3 {
		t.Errorf("there were %d CAs", len(cas))
	}
}

// TestRequestedRotation replaces the CA in the documented steps. At each step programs that were
// started before and after it accept each other.
func TestRequestedRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync()
	first := b.pair(memberSuffix).CAs
	b.annotate(resources.AnnotationRotateCA)
	b.sync()
	both := b.pair(memberSuffix).CAs
	if len(both) != 2 || both[0].Equal(first[0]) {
		t.Fatalf("%d CAs are trusted after the rotation", len(both))
	}
	b.checkAccepted(first)
	b.checkAccepted(both)
	b.sync()
	if again := b.pair(memberSuffix).CAs; !again[0].Equal(both[0]) {
		t.Error("one request made two CAs")
	}
	b.annotate(resources.AnnotationDropOldCA)
	b.sync()
	last := b.pair(memberSuffix).CAs
	if len(last) != 1 || !last[0].Equal(both[0]) {
		t.Fatalf("%d CAs are trusted in the end", len(last))
	}
	b.checkAccepted(both)
	b.checkAccepted(last)
}

// TestRotationsInARow requests another rotation before programs restarted, and leaves a request to drop from before.
// No rotation begins and no CA is dropped that a running program needs.
func TestRotationsInARow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync()
	b.annotate(resources.AnnotationDropOldCA)
	first := b.pair(memberSuffix).CAs
	b.annotate(resources.AnnotationRotateCA)
	b.sync()
	b.sync()
	both := b.pair(memberSuffix).CAs
	if len(both) != 2 {
		t.Fatalf("%d CAs are trusted after the rotation: an earlier request has dropped one", len(both))
	}
	b.annotate(resources.AnnotationRotateCA)
	b.sync()
	if again := b.pair(memberSuffix).CAs; !again[0].Equal(both[0]) {
		t.Error("a second rotation began while two CAs are trusted")
	}
	b.checkAccepted(first)
	b.annotate(resources.AnnotationDropOldCA) // the programs have restarted
	b.sync()
	b.checkAccepted(both)
	b.sync()
	last := b.pair(memberSuffix).CAs
	if len(last) != 2 || last[0].Equal(both[0]) || !last[1].Equal(both[0]) {
		t.Error("the second request was not carried out after the CA before was dropped")
	}
	b.checkAccepted(both)
	b.checkAccepted(last)
	if notes := b.secret(caSuffix).Annotations; len(notes) > 0 {
		t.Errorf("requests that were carried out stay: %v", notes)
	}
}

// TestUnusableSecretsAreIssuedAgain gives each Secret in turn content that cannot be used.
func TestUnusableSecretsAreIssuedAgain(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{caSuffix, memberSuffix, clientSuffix} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.sync()
			secret := b.secret(suffix)
			secret.Data[corev1.TLSPrivateKeyKey] = []byte("nonsense")
			if _, err := b.kube.CoreV1().Secrets(ns).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			b.sync()
			b.checkAccepted(b.pair(memberSuffix).CAs)
		})
	}
}

// TestEmbeddedStorage checks the certificate of an etcd inside of an API server. The certificate is
// good for the Service of the API server, and for the members of artifacts/ha. After the move to
// artifacts/ha it is good for the members only.
func TestEmbeddedStorage(t *testing.T) {
	t.Parallel()
	const host = "etcd-operator-apiserver.etcd-operator-system.svc"
	b := newBench(t)
	b.manager.config.EmbeddedService = "etcd-operator-apiserver"
	b.sync()
	trusted := b.pair(clientSuffix).CAs
	b.checkAccepted(trusted)
	if err := b.pair(memberSuffix).Check(start, trusted, []string{host}, x509.ExtKeyUsageServerAuth); err != nil {
		t.Error(err)
	}
	before := b.writes()
	b.sync()
	if n := b.writes() - before; n != 0 {
		t.Errorf("the second sync wrote %d times", n)
	}
	b.manager.config.EmbeddedService = ""
	b.sync()
	b.checkAccepted(trusted)
	if err := b.pair(memberSuffix).Check(start, trusted, []string{host}, x509.ExtKeyUsageServerAuth); !errors.Is(err, certificates.ErrNames) {
		t.Errorf("after the move to artifacts/ha: got %v, want %v", err, certificates.ErrNames)
	}
}

// TestTwoControllers lets another controller write the CA between the read and the write of this
// controller, which writes nothing then.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := NewManager(Config{Namespace: ns, Service: service}, fake.NewClientset(), b.clock)
	if err := other.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	once := false
	b.kube.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if once {
			return false, nil, nil
		}
		once = true
		for _, suffix := range []string{caSuffix, memberSuffix, clientSuffix} {
			secret, err := other.kube.CoreV1().Secrets(ns).Get(t.Context(), service+suffix, metav1.GetOptions{})
			if err != nil {
				return true, nil, err
			}
			if err := b.kube.Tracker().Add(secret); err != nil {
				return true, nil, err
			}
		}
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, service+caSuffix)
	})
	if err := b.manager.Sync(t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("the sync that was slower: %v", err)
	}
	before := b.writes()
	b.sync()
	if n := b.writes() - before; n != 0 {
		t.Errorf("%d writes after the other controller has written", n)
	}
}

func TestSyncReportsWhatKubernetesRejects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rejected := errors.New("rejected")
	b.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, rejected })
	if err := b.manager.Sync(t.Context()); !errors.Is(err, rejected) {
		t.Errorf("got %v", err)
	}
}
