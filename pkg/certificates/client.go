// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ClientConfig returns the TLS configuration of a client of etcd, from a secret in either
// format, and a name that changes with the content of the secret. These are TLS and
// TLSIdentity of etcd.Target. The errors are those of Read. The server checks whether the
// certificate is still valid.
func ClientConfig(secret *corev1.Secret) (config *tls.Config, identity string, err error) {
	pair, err := Read(resources.UseOperator, secret)
	if err != nil {
		return nil, "", err
	}
	config, identity = pair.ClientConfig()
	return config, identity, nil
}

// Trusting returns the pair for a holder that trusts other CAs.
func (p *Pair) Trusting(cas []*x509.Certificate) *Pair {
	other := *p
	other.CAs = cas
	return &other
}

// ClientConfig returns the same for a pair that was read before.
func (p *Pair) ClientConfig() (config *tls.Config, identity string) {
	config = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{p.certificate},
		RootCAs:      roots(p.CAs),
	}
	// The key follows from the certificate, so only public bytes are needed.
	sum := sha256.New()
	for _, c := range p.Chain {
		sum.Write(c.Raw)
	}
	sum.Write([]byte(Trust(p.CAs)))
	return config, hex.EncodeToString(sum.Sum(nil))
}

// fewCAs is how many CAs a configuration holds as they are.
const fewCAs = 16

// roots returns the CAs for a configuration, which lives as long as its connections. A parsed certificate takes about four
// times its bytes. So of a bundle only the bytes are held, and a CA is parsed again when a certificate names it.
func roots(cas []*x509.Certificate) *x509.CertPool {
	if len(cas) <= fewCAs {
		return pool(cas)
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(PEM(cas...))
	return p
}
