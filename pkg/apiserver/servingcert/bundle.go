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

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
)

// Keys of the Secret beside tls.crt and tls.key.
const (
	caCertDataKey = "ca.crt"
	caKeyDataKey  = "ca.key"
)

var (
	errIncomplete = errors.New("the Secret has no value for a required key")
	errMismatch   = errors.New("the private key does not match the certificate")
)

// bundle is the content of the Secret: the certificates of the CAs that clients trust, newest
// first, the key of the newest CA, and a leaf certificate.
type bundle struct {
	cas     []*x509.Certificate
	caKey   crypto.Signer
	leaf    *x509.Certificate
	leafKey crypto.Signer
}

// step returns the bundle after the step, and does not change the receiver, which may be nil for
// StepCreate.
func (b *bundle) step(step Step, now time.Time, names []string) (*bundle, error) {
	next := &bundle{}
	if b != nil {
		*next = *b
	}
	switch step {
	case StepNone:
		return next, nil
	case StepCreate:
		next.cas = nil
		if err := next.addCA(now); err != nil {
			return nil, err
		}
		return next, next.issueLeaf(now, names)
	case StepAddCA:
		return next, next.addCA(now)
	case StepIssueLeaf:
		return next, next.issueLeaf(now, names)
	case StepDropOldCAs:
		next.cas = next.cas[:1]
		return next, nil
	}
	return nil, fmt.Errorf("unknown step %q", step)
}

func (b *bundle) addCA(now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	// Each CA has a name of its own, so that a client with two CAs finds the right one.
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: fmt.Sprintf("etcd-operator-apiserver-ca-%x", serial.Bytes()[:4])},
		NotBefore:             now.Add(-certificates.Backdate),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	ca, err := sign(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	b.cas = append([]*x509.Certificate{ca}, b.cas...)
	b.caKey = key
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
		NotBefore:    now.Add(-certificates.Backdate),
		NotAfter:     now.Add(leafLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := sign(template, b.cas[0], key.Public(), b.caKey)
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
	for _, key := range []string{caCertDataKey, caKeyDataKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(data[key]) == 0 {
			return nil, fmt.Errorf("%w: %s", errIncomplete, key)
		}
	}
	cas, err := cert.ParseCertsPEM(data[caCertDataKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caCertDataKey, err)
	}
	leaves, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSCertKey, err)
	}
	parsed := &bundle{cas: cas, leaf: leaves[0]}
	if parsed.caKey, err = parseKey(data[caKeyDataKey], cas[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyDataKey, err)
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

// encode returns the data of a Secret, which parse reads.
func (b *bundle) encode() (map[string][]byte, error) {
	trust, err := b.caBundlePEM()
	if err != nil {
		return nil, err
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(b.caKey)
	if err != nil {
		return nil, err
	}
	certificate, key, err := b.leafPEM()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		caCertDataKey:           trust,
		caKeyDataKey:            caKey,
		corev1.TLSCertKey:       certificate,
		corev1.TLSPrivateKeyKey: key,
	}, nil
}

// caBundlePEM returns the certificates that clients trust.
func (b *bundle) caBundlePEM() ([]byte, error) {
	return cert.EncodeCertificates(b.cas...)
}

// leafPEM returns the certificate and the key of the server.
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
