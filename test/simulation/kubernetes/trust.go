// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/tls"
	"crypto/x509"

	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// shown names a certificate and the CAs by which it was verified. Both stay as they are: what
// changes is another slice.
type shown struct {
	trusted  *byte
	identity string
	chain    *byte
}

// Accepts is true if a program that trusts these CAs takes the certificate in a secret.
func (w *World) Accepts(trusted []byte, secret *corev1.Secret, usage x509.ExtKeyUsage) bool {
	chain := secret.Data[corev1.TLSCertKey]
	if len(trusted) == 0 || len(chain) == 0 {
		return false
	}
	return w.remember(shown{trusted: &trusted[0], chain: &chain[0]}, func() bool {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(trusted)
		return w.verifies(roots, CertificatesIn(chain), usage)
	})
}

// AcceptsClient is true if a member takes the certificate of a client, and the client that of
// the member. Without TLS each takes the other.
func (w *World) AcceptsClient(p *simetcd.Process, config *tls.Config, identity string) bool {
	server := p.Run.Mounts()[schedules.ServerSecret]
	if config == nil || p.Trust == nil || server == nil {
		return true
	}
	trusted, der, chain := p.Trust[schedules.ServerSecret], config.Certificates[0].Certificate, server.Data[corev1.TLSCertKey]
	return w.remember(shown{trusted: &trusted[0], chain: &der[0][0]}, func() bool {
		var list []*x509.Certificate
		for _, raw := range der {
			if c, err := x509.ParseCertificate(raw); err == nil {
				list = append(list, c)
			}
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(trusted)
		return w.verifies(roots, list, x509.ExtKeyUsageClientAuth)
	}) && w.remember(shown{identity: identity, chain: &chain[0]}, func() bool {
		return w.verifies(config.RootCAs, CertificatesIn(chain), x509.ExtKeyUsageServerAuth)
	})
}

// Rejects implements etcd's network: a member shows the other one what its volume holds now, and
// verifies by the CAs that it has read when it started.
func (w *World) Rejects(a, b *simetcd.Process) bool {
	mounted := b.Run.Mounts()[schedules.PeerSecret]
	return a.Trust != nil && mounted != nil && !w.Accepts(a.Trust[schedules.PeerSecret], mounted, x509.ExtKeyUsageServerAuth)
}

func (w *World) remember(what shown, verify func() bool) bool {
	if w.verified == nil {
		w.verified = map[shown]bool{}
	}
	result, known := w.verified[what]
	if !known {
		result = verify()
		w.verified[what] = result
	}
	return result
}

func (w *World) verifies(roots *x509.CertPool, chain []*x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(chain) == 0 {
		return false
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: w.Now(), KeyUsages: []x509.ExtKeyUsage{usage}}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(options)
	return err == nil
}
