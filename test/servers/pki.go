// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

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

// CA signs certificates for one purpose.
type CA struct {
	// PEM is the certificate of the CA, and File where it is stored.
	PEM  []byte
	File string

	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is a certificate with its key, in memory and in files.
type Pair struct {
	Cert, Key         []byte
	CertFile, KeyFile string
}

// NewCA returns a CA whose certificate is the file NAME.crt in dir.
func NewCA(dir, name string) (*CA, error) {
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
	return &CA{certificate: certificate, key: key, PEM: pem, File: file}, os.WriteFile(file, pem, 0o600)
}

// Issue signs a certificate that serves on loopback addresses and identifies a user.
func (a *CA) Issue(dir, name, user string, groups ...string) (*Pair, error) {
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
		NotAfter:     time.Now().Add(24 * time.Hour),
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
	issued := &Pair{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
	if issued.Cert, err = cert.EncodeCertificates(certificate); err != nil {
		return nil, err
	}
	if issued.Key, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, err
	}
	for file, content := range map[string][]byte{issued.CertFile: issued.Cert, issued.KeyFile: issued.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
	}
	return issued, nil
}
