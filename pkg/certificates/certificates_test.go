// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const host = "c-abc.c.ns.svc"

var serverTemplate = certificates.Template{Name: "server", Hosts: []string{"*.c.ns.svc", "127.0.0.1"}, Server: true, Client: true}

func ca(t *testing.T, at time.Time) *certificates.CA {
	t.Helper()
	a, err := certificates.NewCA("c-ca", at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// secret issues a certificate and puts it where a use expects it.
func secret(t *testing.T, a *certificates.CA, use resources.SecretUse, format resources.SecretFormat, template certificates.Template, at time.Time) *corev1.Secret {
	t.Helper()
	chain, key, err := a.Issue(template, at)
	if err != nil {
		t.Fatal(err)
	}
	f := resources.Files(use, format)
	return &corev1.Secret{Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: certificates.PEM(a.Certificate)}}
}

func TestReadBothFormats(t *testing.T) {
	t.Parallel()
	a := ca(t, now)
	for _, use := range []resources.SecretUse{resources.UsePeer, resources.UseServer, resources.UseOperator} {
		for _, format := range []resources.SecretFormat{resources.FormatNamed, resources.FormatKubernetes} {
			pair, err := certificates.Read(use, secret(t, a, use, format, serverTemplate, now))
			if err != nil {
				t.Fatalf("%s, %q: %v", use, format, err)
			}
			if pair.Format != format || pair.Leaf.Subject.CommonName != "server" || len(pair.CAs) != 1 {
				t.Errorf("%s, %q: read as %+v", use, format, pair)
			}
			if err := pair.Check(now, pair.CAs, []string{host}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
				t.Errorf("%s, %q: %v", use, format, err)
			}
		}
	}
}

// TestErrorsNameTheDefect spoils a secret in every way that people do, and makes sure
// that each gives its own error and that no message quotes a key.
func TestErrorsNameTheDefect(t *testing.T) {
	t.Parallel()
	a, other := ca(t, now), ca(t, now)
	f := resources.Files(resources.UseServer, resources.FormatNamed)
	for name, test := range map[string]struct {
		spoil    func(*corev1.Secret)
		template certificates.Template
		at       time.Time
		trusted  *certificates.CA
		purpose  x509.ExtKeyUsage
		want     error
		says     string
	}{
		"no key":            {spoil: func(s *corev1.Secret) { delete(s.Data, f.Key) }, want: certificates.ErrIncomplete, says: f.Key},
		"empty":             {spoil: func(s *corev1.Secret) { s.Data = nil }, want: certificates.ErrIncomplete, says: "tls.crt"},
		"certificate is no": {spoil: func(s *corev1.Secret) { s.Data[f.Cert] = []byte("hello") }, want: certificates.ErrUnusable, says: f.Cert},
		"key as certificate": {spoil: func(s *corev1.Secret) { s.Data[f.Cert] = s.Data[f.Key] }, want: certificates.ErrUnusable,
			says: "something else"},
		"CA is no": {spoil: func(s *corev1.Secret) { s.Data[f.CA] = nil }, want: certificates.ErrUnusable, says: f.CA},
		"key of another": {spoil: func(s *corev1.Secret) {
			s.Data[f.Key] = secret(t, a, resources.UseServer, "", serverTemplate, now).Data[f.Key]
		}, want: certificates.ErrUnusable, says: f.Key},
		"key is garbage": {spoil: func(s *corev1.Secret) { s.Data[f.Key] = []byte("SECRETSECRET") }, want: certificates.ErrUnusable, says: f.Key},
		"another CA":     {trusted: other, want: certificates.ErrUntrusted, says: "c-ca"},
		"another host":   {template: certificates.Template{Name: "x", Hosts: []string{"elsewhere"}, Server: true, Client: true}, want: certificates.ErrNames, says: "elsewhere"},
		"no host":        {template: certificates.Template{Name: "x", Server: true, Client: true}, want: certificates.ErrNames, says: "no host"},
		"another use":    {template: certificates.Template{Name: "x", Hosts: serverTemplate.Hosts, Client: true}, want: certificates.ErrUntrusted, says: "serverAuth"},
		"expired":        {at: now.Add(-2 * certificates.LeafLife), want: certificates.ErrExpired, says: "2025"},
		"not yet valid":  {at: now.Add(26 * time.Hour), want: certificates.ErrNotYetValid, says: "2026-03-04T06:06:07Z"},
		"CA has ended":   {trusted: ca(t, now.Add(-2*certificates.CALife)), want: certificates.ErrUntrusted, says: "c-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, at, trusted := serverTemplate, now, a
			if test.template.Name != "" {
				template = test.template
			}
			if !test.at.IsZero() {
				at = test.at
			}
			if test.trusted != nil {
				trusted = test.trusted
			}
			s := secret(t, a, resources.UseServer, resources.FormatNamed, template, at)
			key := strings.Split(string(s.Data[f.Key]), "\n")[1]
			if test.spoil != nil {
				test.spoil(s)
			}
			pair, err := certificates.Read(resources.UseServer, s)
			if err == nil {
				err = pair.Check(now, []*x509.Certificate{trusted.Certificate}, []string{host}, x509.ExtKeyUsageServerAuth)
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v, want %v and the word %q", err, test.want, test.says)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "SECRETSECRET") {
				t.Errorf("the message quotes the key: %v", err)
			}
		})
	}
}

// shake makes a TLS connection between a server and a client and returns why it failed.
func shake(t *testing.T, server, client *certificates.Pair, at time.Time) error {
	t.Helper()
	serverConfig, _ := server.ClientConfig() // holds the certificate
	serverConfig.ClientCAs, serverConfig.ClientAuth = serverConfig.RootCAs, tls.RequireAndVerifyClientCert
	clientConfig, _ := client.ClientConfig()
	clientConfig.ServerName = host
	for _, config := range []*tls.Config{serverConfig, clientConfig} {
		config.Time = func() time.Time { return at }
	}
	a, b := net.Pipe()
	result := make(chan error, 1)
	go func() {
		conn := tls.Server(a, serverConfig)
		err := conn.HandshakeContext(t.Context())
		a.Close()
		result <- err
	}()
	conn := tls.Client(b, clientConfig)
	err := conn.HandshakeContext(t.Context())
	if err == nil {
		var one [1]byte
		_, _ = conn.Read(one[:]) // the verdict of the server comes after the client's own
	}
	b.Close()
	return errors.Join(err, <-result)
}

func pairOf(t *testing.T, signer *certificates.CA, trusted ...*certificates.CA) *certificates.Pair {
	t.Helper()
	s := secret(t, signer, resources.UseOperator, resources.FormatKubernetes, serverTemplate, now)
	s.Data["ca.crt"] = nil
	for _, a := range trusted {
		s.Data["ca.crt"] = append(s.Data["ca.crt"], certificates.PEM(a.Certificate)...)
	}
	pair, err := certificates.Read(resources.UseOperator, s)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestRotationNeverParts goes through what two parties may hold while the CA is replaced
// by a CA that it cross-signed. A program that does not know the new CA yet still talks to
// a program that does.
func TestRotationNeverParts(t *testing.T) {
	t.Parallel()
	before, after := ca(t, now), ca(t, now)
	if err := before.CrossSign(after); err != nil {
		t.Fatal(err)
	}
	old, both := pairOf(t, before, before), pairOf(t, after, after, before)
	// A member that has not restarted since shows the new certificate and trusts the old
	// CA only.
	behind, done := pairOf(t, after, before), pairOf(t, after, after)
	for name, party := range map[string][2]*certificates.Pair{
		"before and overlap": {old, both}, "before and behind": {old, behind}, "overlap": {both, both},
		"behind and overlap": {behind, both}, "behind and behind": {behind, behind},
		"behind and done": {behind, done}, "overlap and done": {both, done}, "done": {done, done},
	} {
		for i := range party {
			if err := shake(t, party[i], party[1-i], now); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := shake(t, done, old, now); err == nil {
		t.Error("the old CA is trusted after it was dropped")
	}
	if after.HasSigned(old.Leaf) || !after.HasSigned(done.Leaf) {
		t.Error("the signers are not distinguished")
	}
	unknown := ca(t, now)
	if err := shake(t, both, pairOf(t, unknown, after, before), now); err == nil {
		t.Error("a certificate of an unknown CA was accepted")
	}
}

func TestCAIsKept(t *testing.T) {
	t.Parallel()
	before, after := ca(t, now), ca(t, now)
	if before.Certificate.Subject.CommonName == after.Certificate.Subject.CommonName {
		t.Error("two CAs have one name")
	}
	if err := before.CrossSign(after); err != nil {
		t.Fatal(err)
	}
	key, err := after.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	read, err := certificates.ReadCA(certificates.PEM(after.Certificate), key, after.CrossPEM())
	if err != nil {
		t.Fatal(err)
	}
	chain, _, err := read.Issue(serverTemplate, now)
	if err != nil {
		t.Fatal(err)
	}
	list, err := certificates.ReadAll(chain)
	if err != nil || len(list) != 3 || !read.HasSigned(list[0]) || !list[2].Equal(before.Certificate) {
		t.Fatalf("the chain is %d long: %v", len(list), err)
	}
	if got := certificates.Renewal(list[0]); !got.After(now) || !got.Before(list[0].NotAfter) {
		t.Errorf("it is renewed at %v", got)
	}
	if _, err := certificates.ReadCA(certificates.PEM(before.Certificate), key, nil); !errors.Is(err, certificates.ErrUnusable) {
		t.Errorf("the key of another CA: %v", err)
	}
	if _, err := certificates.ReadCA(chain, key, nil); !errors.Is(err, certificates.ErrUnusable) {
		t.Errorf("a certificate that is no CA: %v", err)
	}
}

// TestCheckNamed: a program that trusts only the CA before the present one accepts what the present CA
// signs, and that is known without a bundle that holds the CA before.
func TestCheckNamed(t *testing.T) {
	t.Parallel()
	before, after, other := ca(t, now), ca(t, now), ca(t, now)
	if err := before.CrossSign(after); err != nil {
		t.Fatal(err)
	}
	alone := *after
	alone.Previous = nil
	names := func(a *certificates.CA) string { return certificates.Names([]*x509.Certificate{a.Certificate}) }
	for name, test := range map[string]struct {
		signer  *certificates.CA
		trusted string
		want    bool
	}{
		"the present CA":                   {after, names(after), true},
		"the CA before":                    {after, names(before), true},
		"another CA":                       {after, names(other), false},
		"no CA":                            {after, "", false},
		"the CA before, which is not kept": {&alone, names(before), false},
	} {
		pair, err := certificates.Read(resources.UsePeer, secret(t, test.signer, resources.UsePeer, resources.FormatKubernetes, serverTemplate, now))
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.CheckNamed(now, pair.CAs, test.trusted, x509.ExtKeyUsageClientAuth); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientConfigIsNamedByItsContent(t *testing.T) {
	t.Parallel()
	a := ca(t, now)
	first := secret(t, a, resources.UseOperator, resources.FormatNamed, serverTemplate, now)
	config, identity, err := certificates.ClientConfig(first)
	if err != nil || len(config.Certificates) != 1 || config.RootCAs == nil {
		t.Fatalf("%+v, %v", config, err)
	}
	_, again, err := certificates.ClientConfig(first.DeepCopy())
	if err != nil || again != identity {
		t.Errorf("the same content is %q and %q: %v", identity, again, err)
	}
	_, other, err := certificates.ClientConfig(secret(t, a, resources.UseOperator, resources.FormatNamed, serverTemplate, now))
	if err != nil || other == identity {
		t.Errorf("another certificate has the same name: %v", err)
	}
	if _, _, err := certificates.ClientConfig(&corev1.Secret{}); !errors.Is(err, certificates.ErrIncomplete) {
		t.Errorf("an empty secret: %v", err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	a, b := ca(t, now), ca(t, now)
	both, one := []*x509.Certificate{a.Certificate, b.Certificate}, []*x509.Certificate{b.Certificate}
	if certificates.Names(both) != certificates.Names([]*x509.Certificate{b.Certificate, a.Certificate, b.Certificate}) {
		t.Error("the order and the number of times matter")
	}
	if got := certificates.Named(both, certificates.Names(one)); len(got) != 1 || !got[0].Equal(b.Certificate) {
		t.Errorf("of two CAs %d are the one that was named", len(got))
	}
	if got := certificates.Named(both, ""); len(got) != 0 {
		t.Errorf("%d CAs have no name", len(got))
	}
	// A cross-signed CA is the same CA to a program that knows it.
	if err := a.CrossSign(b); err != nil {
		t.Fatal(err)
	}
	if got := certificates.Names([]*x509.Certificate{b.CrossSigned}); got != certificates.Names(one) {
		t.Errorf("with another certificate it has the name %s, not %s", got, certificates.Names(one))
	}
}
