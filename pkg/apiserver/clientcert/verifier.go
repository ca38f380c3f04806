// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"crypto/x509"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/clock"
)

// Verifier verifies client certificates with CAs that may change. It remembers which certificates
// it has verified with the present CAs; a change of the CAs takes effect at once.
type Verifier struct {
	options  x509request.VerifyOptionFunc
	clock    clock.PassiveClock
	verified remembered[*x509.CertPool]
}

// NewVerifier returns a verifier with the options. They must return the same pool of CAs as long
// as the CAs do not change; otherwise every call verifies.
func NewVerifier(options x509request.VerifyOptionFunc, c clock.PassiveClock) *Verifier {
	return &Verifier{options: options, clock: c, verified: newRemembered[*x509.CertPool](c)}
}

// IsVerified is true if a CA has issued the first of the certificates that a client presented.
// The others are intermediate CAs. It is false without CAs.
func (v *Verifier) IsVerified(presented []*x509.Certificate) bool {
	options, ok := v.options()
	if !ok || len(presented) == 0 {
		return false
	}
	key := digestOf(presented)
	if roots, ok := v.verified.get(key); ok && roots == options.Roots {
		return true
	}
	options.CurrentTime = v.clock.Now()
	if options.Intermediates == nil && len(presented) > 1 {
		options.Intermediates = x509.NewCertPool()
		for _, intermediate := range presented[1:] {
			options.Intermediates.AddCert(intermediate)
		}
	}
	chains, err := presented[0].Verify(options)
	if err != nil {
		return false
	}
	v.verified.put(key, options.Roots, chains[0])
	return true
}
