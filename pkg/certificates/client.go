// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// ClientConfig returns how a client of etcd proves itself and whom it trusts, from a
// secret in either format, and a name for that which changes with its content: what
// etcd.Target wants as TLS and TLSIdentity. The errors are those of Read. That the
// certificate is still valid is for the server to say.
func ClientConfig(secret *corev1.Secret) (config *tls.Config, identity string, err error) {
	pair, err := Read(resources.UseOperator, secret)
	if err != nil {
		return nil, "", err
	}
	config, identity = pair.ClientConfig()
	return config, identity, nil
}

// ClientConfig returns the same for a pair that was read before.
func (p *Pair) ClientConfig() (config *tls.Config, identity string) {
	config = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{p.certificate},
		RootCAs:      pool(p.Authorities),
	}
	// The key follows from the certificate, so only public bytes are needed.
	sum := sha256.New()
	for _, c := range p.Chain {
		sum.Write(c.Raw)
	}
	sum.Write([]byte(Trust(p.Authorities)))
	return config, hex.EncodeToString(sum.Sum(nil))
}
