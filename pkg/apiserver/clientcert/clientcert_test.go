// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"
)

const nameHeader = "X-Remote-User"

// testCA signs certificates of clients and of intermediate CAs.
type testCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func issue(t testing.TB, parent *testCA, name string, isCA bool, validFor time.Duration) *testCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor),
		IsCA: isCA, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	made := &testCA{key: key, pool: x509.NewCertPool()}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}
	if made.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	made.pool.AddCert(made.certificate)
	return made
}

// trust is the CAs of a server, which may change.
type trust struct {
	mu   sync.Mutex
	pool *x509.CertPool
	pem  []byte
}

func (tr *trust) set(ca *testCA) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.pool, tr.pem = ca.pool, ca.certificate.Raw
}

func (tr *trust) bundle() []byte {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.pem
}

func (tr *trust) options() (x509.VerifyOptions, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	options := x509request.DefaultVerifyOptions()
	options.Roots = tr.pool
	return options, tr.pool != nil
}

func TestVerifier(t *testing.T) {
	t.Parallel()
	first, second := issue(t, nil, "first", true, time.Hour), issue(t, nil, "second", true, time.Hour)
	client := issue(t, first, "client", false, time.Hour).certificate
	roots := &trust{}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	verifier := NewVerifier(roots.options, clock)
	presented := []*x509.Certificate{client}
	if verifier.IsVerified(presented) {
		t.Error("a certificate is verified without CAs")
	}
	roots.set(second)
	if verifier.IsVerified(presented) {
		t.Error("a certificate of another CA is verified")
	}
	for range 2 {
		roots.set(first)
		for range 2 {
			if !verifier.IsVerified(presented) {
				t.Error("a certificate of the CA is not verified")
			}
		}
		roots.set(second)
		if verifier.IsVerified(presented) {
			t.Error("a certificate is verified with a CA that was replaced")
		}
	}
	roots.set(first)
	clock.SetTime(client.NotAfter.Add(time.Second))
	if verifier.IsVerified(presented) {
		t.Error("a certificate is verified after its end")
	}
	if verifier.IsVerified(nil) {
		t.Error("no certificate is verified")
	}
}

// TestVerifierRemembersUntilTheFirstEnd uses an intermediate CA that ends before its client.
func TestVerifierRemembersUntilTheFirstEnd(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, "root", true, time.Hour)
	intermediate := issue(t, root, "intermediate", true, 30*time.Second)
	presented := []*x509.Certificate{issue(t, intermediate, "client", false, time.Hour).certificate, intermediate.certificate}
	roots := &trust{}
	roots.set(root)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	verifier := NewVerifier(roots.options, clock)
	if !verifier.IsVerified(presented) {
		t.Fatal("a certificate with an intermediate CA is not verified")
	}
	if verifier.IsVerified(presented[:1]) {
		t.Error("a certificate is verified without its intermediate CA")
	}
	clock.SetTime(intermediate.certificate.NotAfter.Add(time.Second))
	if verifier.IsVerified(presented) {
		t.Error("a certificate is verified after the end of its intermediate CA")
	}
}

// counter counts the requests that it passes on.
type counter struct {
	next  authenticator.Request
	calls int
}

func (c *counter) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	c.calls++
	return c.next.AuthenticateRequest(req)
}

// clients authenticates by certificate.
type clients struct {
	ca, other *testCA
	trust     *trust
	clock     *clocktesting.FakePassiveClock
	counter   *counter
	users     authenticator.Request
}

func newClients(t testing.TB) *clients {
	t.Helper()
	c := &clients{ca: issue(t, nil, "ca", true, time.Hour), other: issue(t, nil, "other", true, time.Hour), trust: &trust{}}
	c.trust.set(c.ca)
	c.clock = clocktesting.NewFakePassiveClock(time.Now())
	c.counter = &counter{next: x509request.NewDynamic(c.trust.options, x509request.CommonNameUserConversion)}
	c.users = NewAuthenticator(c.counter, c.trust.bundle, headerrequest.StaticStringSlice{nameHeader}, c.clock)
	return c
}

// ask returns the name of the user, and whether the request reached the authenticator behind.
func (c *clients) ask(t testing.TB, presented []*x509.Certificate, headers ...string) (name string, asked bool) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.TLS = &tls.ConnectionState{PeerCertificates: presented}
	for _, header := range headers {
		req.Header.Set(header, "somebody")
	}
	before := c.counter.calls
	response, ok, err := c.users.AuthenticateRequest(req)
	if ok && err == nil {
		name = response.User.GetName()
	}
	return name, c.counter.calls > before
}

func (c *clients) expect(t *testing.T, presented []*x509.Certificate, wantName string, wantAsked bool, headers ...string) {
	t.Helper()
	if name, asked := c.ask(t, presented, headers...); name != wantName || asked != wantAsked {
		t.Errorf("user %q, asked %v; want %q, %v", name, asked, wantName, wantAsked)
	}
}

func TestAuthenticatorRemembersCertificates(t *testing.T) {
	t.Parallel()
	c := newClients(t)
	alice := []*x509.Certificate{issue(t, c.ca, "alice", false, time.Hour).certificate}
	bob := []*x509.Certificate{issue(t, c.ca, "bob", false, 30*time.Second).certificate}
	untrusted := []*x509.Certificate{issue(t, c.other, "untrusted", false, time.Hour).certificate}

	c.expect(t, alice, "alice", true)
	c.expect(t, alice, "alice", false)
	c.expect(t, bob, "bob", true)
	c.expect(t, bob, "bob", false)
	// A failure is not remembered.
	c.expect(t, untrusted, "", true)
	c.expect(t, untrusted, "", true)
	// A front proxy names another user in each request.
	c.expect(t, alice, "alice", true, nameHeader)

	c.clock.SetTime(bob[0].NotAfter.Add(time.Second))
	if _, asked := c.ask(t, bob); !asked {
		t.Error("a user is remembered after the end of its certificate")
	}
	c.expect(t, alice, "alice", false)
	c.clock.SetTime(c.clock.Now().Add(maxAge))
	c.expect(t, alice, "alice", true)

	// Another CA takes effect at once, in both directions.
	c.trust.set(c.other)
	c.expect(t, alice, "", true)
	c.expect(t, untrusted, "untrusted", true)
	c.trust.set(c.ca)
	c.expect(t, untrusted, "", true)
}

func TestAuthenticatorRemembersCertificatesOnly(t *testing.T) {
	t.Parallel()
	c := newClients(t)
	alice := []*x509.Certificate{issue(t, c.ca, "alice", false, time.Hour).certificate}
	// A token identifies the user, although the client presented a certificate.
	c.counter.next = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{
			Name: "token", Extra: map[string][]string{user.CredentialIDKey: {"JTI=1"}},
		}}, true, nil
	})
	c.expect(t, alice, "token", true)
	c.expect(t, alice, "token", true)
	c.expect(t, nil, "token", true)
	c.expect(t, nil, "token", true)
}

func BenchmarkAuthenticate(b *testing.B) {
	for name, remembered := range map[string]bool{"remembered": true, "verified with each request": false} {
		b.Run(name, func(b *testing.B) {
			c := newClients(b)
			users := c.users
			if !remembered {
				users = c.counter
			}
			req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", nil)
			req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{issue(b, c.ca, "alice", false, time.Hour).certificate}}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := users.AuthenticateRequest(req); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
