// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// selfSigned returns a certificate for a host, and a pool that trusts it.
func selfSigned(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveTLS starts a server that wants client certificates and returns its address.
func (f *fakeServer) serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	pb.RegisterMaintenanceServer(s, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	const host = "m.c.ns.svc"
	server, trustServer := selfSigned(t, host)
	client, trustClient := selfSigned(t, "operator")
	unknown, trustUnknown := selfSigned(t, host)
	var f fakeServer
	address := f.serveTLS(t, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}, ClientCAs: trustClient, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	good := func() *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trustServer, Certificates: []tls.Certificate{client}}
	}
	with := func(change func(*tls.Config)) *tls.Config {
		c := good()
		change(c)
		return c
	}
	for name, tc := range map[string]struct {
		url    string
		config *tls.Config
		want   error
	}{
		"good":                      {"https://" + host + ":2379", good(), nil},
		"another host":              {"https://x.c.ns.svc:2379", good(), ErrUnavailable},
		"no client certificate":     {"https://" + host + ":2379", with(func(c *tls.Config) { c.Certificates = nil }), ErrUnavailable},
		"another's certificate":     {"https://" + host + ":2379", with(func(c *tls.Config) { c.Certificates = []tls.Certificate{unknown} }), ErrUnavailable},
		"a server that is not ours": {"https://" + host + ":2379", with(func(c *tls.Config) { c.RootCAs = trustUnknown }), ErrUnavailable},
		"no configuration":          {"https://" + host + ":2379", nil, ErrUnavailable},
		"plain":                     {"http://" + host + ":2379", good(), ErrUnavailable},
	} {
		p := NewPool(PoolConfig{StatusTimeout: time.Minute}) // a busy machine takes seconds to read the roots of the system
		e := Endpoint{Name: name, URL: tc.url, Address: address}
		_, err := p.Client(Target{TLS: tc.config}).Status(context.Background(), e)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		p.Close()
	}
}
