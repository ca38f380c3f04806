// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"
)

// TestSuccessEndsWithItsCA: a certificate outlives the CA that signed it. What was accepted
// while both were valid is judged afresh when the CA has ended, and before it began.
func TestSuccessEndsWithItsCA(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(template, parent *x509.Certificate) *x509.Certificate {
		t.Helper()
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root := issue(ca, ca)
	leaf := issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(2 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root)
	verify := func(at time.Time) error {
		return verifyChain(at, []*x509.Certificate{leaf}, []*x509.Certificate{root}, x509.ExtKeyUsageServerAuth)
	}
	for range 2 {
		if err := verify(now); err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{now.Add(90 * time.Minute), now.Add(-90 * time.Minute)} {
			if verify(at) == nil {
				t.Errorf("accepted at %v, when its CA was not valid", at)
			}
		}
	}
}
