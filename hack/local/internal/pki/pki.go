// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/local/internal/process"
)

// lifetime is far longer than any local cluster's life: nothing renews here.
const lifetime = 10 * 365 * 24 * time.Hour

// Names of the files, without .crt and .key.
const (
	CA                 = "ca"
	FrontProxyCA       = "front-proxy-ca"
	APIServer          = "apiserver"
	KubeletClient      = "apiserver-kubelet-client"
	FrontProxyClient   = "front-proxy-client"
	ControllerManager  = "controller-manager"
	Scheduler          = "scheduler"
	KubeProxy          = "kube-proxy"
	Admin              = "admin"
	ServiceAccountKeys = "service-account" // .key and .pub
)

// Certificate describes a certificate to make.
type Certificate struct {
	Name   string // of its files
	Issuer string // the name of its CA's files
	Subject
	// Hosts are the DNS names and addresses for which it serves.
	Hosts []string
	// Kubeconfig also makes NAME.kubeconfig with it.
	Kubeconfig bool
}

// Subject is the identity in a certificate: the user and group to the API server.
type Subject struct {
	User  string
	Group string
}

// Store is a directory of keys and certificates.
type Store struct{ Dir string }

// File is the path of one of its files.
func (s Store) File(name string) string { return filepath.Join(s.Dir, name) }

// Kubeconfig is the path of the kubeconfig made with a certificate.
func (s Store) Kubeconfig(name string) string { return s.File(name + ".kubeconfig") }

// EnsureCAs makes the certificate authorities and the key pair that signs
// service accounts' tokens.
func (s Store) EnsureCAs() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of keys: %w", err)
	}
	for _, name := range []string{CA, FrontProxyCA} {
		template := &x509.Certificate{
			Subject:               pkix.Name{CommonName: "etcd-operator-local-" + name},
			IsCA:                  true,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		}
		if err := s.ensure(name, template, ""); err != nil {
			return fmt.Errorf("making the CA %s: %w", name, err)
		}
	}
	return s.ensureServiceAccountKeys()
}

func (s Store) ensureServiceAccountKeys() error {
	public := s.File(ServiceAccountKeys + ".pub")
	if exists(public) {
		return nil
	}
	key, err := s.newKey(ServiceAccountKeys)
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the key of service accounts: %w", err)
	}
	return writePEM(public, "PUBLIC KEY", der)
}

// Ensure makes a certificate, and its kubeconfig, which points to server.
func (s Store) Ensure(want Certificate, server string) error {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: want.User},
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if want.Group != "" {
		template.Subject.Organization = []string{want.Group}
	}
	for _, host := range want.Hosts {
		if addr := net.ParseIP(host); addr != nil {
			template.IPAddresses = append(template.IPAddresses, addr)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(want.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if err := s.ensure(want.Name, template, want.Issuer); err != nil {
		return fmt.Errorf("making the certificate %s: %w", want.Name, err)
	}
	if !want.Kubeconfig || exists(s.Kubeconfig(want.Name)) {
		return nil
	}
	return s.writeKubeconfig(want, server)
}

// ensure makes one certificate unless it exists; no issuer means self-signed.
func (s Store) ensure(name string, template *x509.Certificate, issuer string) error {
	// The certificate is written after its key: if it is there, both are.
	if exists(s.File(name + ".crt")) {
		return nil
	}
	key, err := s.newKey(name)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour)
	template.NotAfter = now.Add(lifetime)
	parent, signer := template, key
	if issuer != "" {
		if parent, signer, err = s.load(issuer); err != nil {
			return err
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	return writePEM(s.File(name+".crt"), "CERTIFICATE", der)
}

func (s Store) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(s.File(name+".key"), "EC PRIVATE KEY", der)
}

func (s Store) load(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := readPEM(s.File(name + ".crt"))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", s.File(name+".crt"), err)
	}
	keyDER, err := readPEM(s.File(name + ".key"))
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", s.File(name+".key"), err)
	}
	return cert, key, nil
}

func writePEM(file, kind string, der []byte) error {
	return process.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func readPEM(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block: remove it", file)
	}
	return block.Bytes, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
