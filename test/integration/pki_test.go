// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// testCA signs certificates for one purpose.
type testCA struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
	file        string
}

// pair is a certificate with its key, in memory and in files.
type pair struct {
	cert, key         []byte
	certFile, keyFile string
}

func newCA(dir, name string) (*testCA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	pem, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name+".crt")
	return &testCA{certificate: certificate, key: key, pem: pem, file: file}, os.WriteFile(file, pem, 0o600)
}

// issue signs a certificate that serves on loopback addresses and identifies a user.
func (a *testCA) issue(dir, name, user string, groups ...string) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	issued := &pair{certFile: filepath.Join(dir, name+".crt"), keyFile: filepath.Join(dir, name+".key")}
	if issued.cert, err = cert.EncodeCertificates(certificate); err != nil {
		return nil, err
	}
	if issued.key, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, err
	}
	for file, content := range map[string][]byte{issued.certFile: issued.cert, issued.keyFile: issued.key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
	}
	return issued, nil
}
