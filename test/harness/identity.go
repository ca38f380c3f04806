// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Identity is a client of etcd that takes its certificate and its CAs from a
// secret, and follows it: each new connection uses what the secret holds then.
type Identity struct {
	Secret *View[*corev1.Secret]
	// Cert, Key and CA are the entries of the secret.
	Cert, Key, CA string
	// Server is the name that the server's certificate must be good for.
	Server string
}

var errNoIdentity = errors.New("the secret of the client does not exist")

func (i *Identity) entry(name string) ([]byte, error) {
	for _, secret := range i.Secret.List() {
		return secret.Data[name], nil
	}
	return nil, errNoIdentity
}

// Config returns the configuration of the client.
func (i *Identity) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: i.Server,
		// The CAs may change, so VerifyConnection below does what the library
		// would do with fixed ones.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := i.entry(i.Cert)
			if err != nil {
				return nil, err
			}
			key, err := i.entry(i.Key)
			if err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(cert, key)
			return &pair, err
		},
		VerifyConnection: i.verify,
	}
}

func (i *Identity) verify(state tls.ConnectionState) error {
	ca, err := i.entry(i.CA)
	if err != nil {
		return err
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) || len(state.PeerCertificates) == 0 {
		return fmt.Errorf("entry %s of the secret holds no CA, or the server showed nothing", i.CA)
	}
	for _, c := range state.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: i.Server})
	return err
}
