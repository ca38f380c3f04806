// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secret beside tls.crt and tls.key.
const (
	authorityCertKey = "ca.crt"
	authorityKeyKey  = "ca.key"
)

var (
	errIncomplete = errors.New("the secret lacks a part of the certificates")
	errMismatch   = errors.New("a private key does not belong to its certificate")
)

// bundle is what the Secret holds: the authorities that clients shall trust, newest
// first, the key of the newest, and a leaf.
type bundle struct {
	authorities  []*x509.Certificate
	authorityKey crypto.Signer
	leaf         *x509.Certificate
	leafKey      crypto.Signer
}

// step returns the bundle that the step leads to. The receiver may be nil for
// StepCreate; it is never changed.
func (b *bundle) step(step Step, now time.Time, names []string) (*bundle, error) {
	next := &bundle{}
	if b != nil {
		*next = *b
	}
	switch step {
	case StepNone:
		return next, nil
	case StepCreate:
		next.authorities = nil
		if err := next.addAuthority(now); err != nil {
			return nil, err
		}
		return next, next.issueLeaf(now, names)
	case StepAddAuthority:
		return next, next.addAuthority(now)
	case StepIssueLeaf:
		return next, next.issueLeaf(now, names)
	case StepDropAuthorities:
		next.authorities = next.authorities[:1]
		return next, nil
	}
	return nil, fmt.Errorf("unknown step %q", step)
}

func (b *bundle) addAuthority(now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	// The name tells authorities apart, so that a client with both in its pool picks
	// the right one.
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: fmt.Sprintf("etcd-operator-apiserver-ca-%x", serial.Bytes()[:4])},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	authority, err := sign(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	b.authorities = append([]*x509.Certificate{authority}, b.authorities...)
	b.authorityKey = key
	return nil
}

func (b *bundle) issueLeaf(now time.Time, names []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: names[0]},
		DNSNames:     names,
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := sign(template, b.authorities[0], key.Public(), b.authorityKey)
	if err != nil {
		return err
	}
	b.leaf, b.leafKey = leaf, key
	return nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func newSerial() (*big.Int, error) {
	const bits = 127
	// The highest bit is set so that the serial always has its full length.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), bits-1))
	if err != nil {
		return nil, err
	}
	return serial.SetBit(serial, bits-1, 1), nil
}

// parse reads a bundle from the data of a Secret.
func parse(data map[string][]byte) (*bundle, error) {
	for _, key := range []string{authorityCertKey, authorityKeyKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(data[key]) == 0 {
			return nil, fmt.Errorf("%w: %s", errIncomplete, key)
		}
	}
	authorities, err := cert.ParseCertsPEM(data[authorityCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authorityCertKey, err)
	}
	leaves, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSCertKey, err)
	}
	parsed := &bundle{authorities: authorities, leaf: leaves[0]}
	if parsed.authorityKey, err = parseKey(data[authorityKeyKey], authorities[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", authorityKeyKey, err)
	}
	if parsed.leafKey, err = parseKey(data[corev1.TLSPrivateKeyKey], parsed.leaf); err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSPrivateKeyKey, err)
	}
	return parsed, nil
}

func parseKey(pem []byte, certificate *x509.Certificate) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return nil, err
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: a %T cannot sign", errMismatch, parsed)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificate.PublicKey) {
		return nil, errMismatch
	}
	return signer, nil
}

// encode is the reverse of parse.
func (b *bundle) encode() (map[string][]byte, error) {
	trust, err := b.trustPEM()
	if err != nil {
		return nil, err
	}
	authorityKey, err := keyutil.MarshalPrivateKeyToPEM(b.authorityKey)
	if err != nil {
		return nil, err
	}
	certificate, key, err := b.leafPEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		authorityCertKey:        trust,
		authorityKeyKey:         authorityKey,
		corev1.TLSCertKey:       certificate,
		corev1.TLSPrivateKeyKey: key,
	}, nil
}

// trustPEM is what clients shall trust.
func (b *bundle) trustPEM() ([]byte, error) {
	return cert.EncodeCertificates(b.authorities...)
}

// leafPEM is what the server shows.
func (b *bundle) leafPEM() (certificate, key []byte, err error) {
	if certificate, err = cert.EncodeCertificates(b.leaf); err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(b.leafKey); err != nil {
		return nil, nil, err
	}
	if _, err = tls.X509KeyPair(certificate, key); err != nil {
		return nil, nil, err
	}
	return certificate, key, nil
}
