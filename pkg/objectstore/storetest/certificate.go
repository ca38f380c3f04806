// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// issued are a CA and the certificate of all servers, in PEM form.
type issued struct{ ca, certificate, key []byte }

// issue makes them once for all tests of a process.
var issue = sync.OnceValues(func() (*issued, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stores of tests"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "store"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &issued{ca: inPEM("CERTIFICATE", caDER), certificate: inPEM("CERTIFICATE", leafDER), key: inPEM("PRIVATE KEY", keyDER)}, nil
})

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func mustIssue(t testing.TB) *issued {
	t.Helper()
	made, err := issue()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// CA is the certificate of the CA of all servers, in PEM form.
func CA(t testing.TB) []byte {
	t.Helper()
	return bytes.Clone(mustIssue(t).ca)
}

// Transport returns a transport that trusts the servers. It is closed with the test. It fails
// after Stall only for tests of stalls: a busy machine takes longer now and then.
func Transport(t testing.TB, through *Proxy) *http.Transport {
	t.Helper()
	config := objectstore.TransportConfig{CA: CA(t)}
	if through != nil {
		config.Stall = through.timeout
	}
	transport, err := objectstore.NewTransport(config)
	if err != nil {
		t.Fatal(err)
	}
	if through != nil {
		transport.Proxy = http.ProxyURL(through.url)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// ServerTLS is what servers in this process have.
func ServerTLS(t testing.TB) *tls.Config {
	t.Helper()
	made := mustIssue(t)
	pair, err := tls.X509KeyPair(made.certificate, made.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}

func certificateFile(t testing.TB) string {
	t.Helper()
	return fileOf(t, "tls.crt", mustIssue(t).certificate)
}

func keyFile(t testing.TB) string {
	t.Helper()
	return fileOf(t, "tls.key", mustIssue(t).key)
}

func fileOf(t testing.TB, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
