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

// testNow is between the begin and the end of the certificates that signer signs.
var testNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// signer returns a function that signs templates with one key, which is that of each of them, too.
func signer(t *testing.T) func(template, parent *x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return func(template, parent *x509.Certificate) *x509.Certificate {
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
}

// TestSuccessEndsWithItsCA: a certificate outlives the CA that signed it. What was accepted
// while both were valid is judged afresh when the CA has ended, and before it began.
func TestSuccessEndsWithItsCA(t *testing.T) {
	t.Parallel()
	now, issue := testNow, signer(t)
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
		return verifyChain(at, []*x509.Certificate{leaf}, []*x509.Certificate{root}, x509.ExtKeyUsageServerAuth).err
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

// TestEnd: a certificate ends with the first certificate of its chain, and of several chains the one counts that ends last.
func TestEnd(t *testing.T) {
	t.Parallel()
	issue, other := signer(t), signer(t)
	at := func(hours int) time.Time { return testNow.Add(time.Duration(hours) * time.Hour) }
	caOf := func(name string, from, until int) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(int64(until)), Subject: pkix.Name{CommonName: name}, NotBefore: at(from), NotAfter: at(until),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
	}
	root := func(from, until int) *x509.Certificate {
		return issue(caOf("root", from, until), caOf("root", from, until))
	}
	first, renewed, later := root(-9, 10), root(-1, 50), root(5, 80)
	between := issue(caOf("between", -9, 20), first)
	unrelated := other(caOf("unrelated", -9, 90), caOf("unrelated", -9, 90))
	sameName := other(caOf("root", -9, 70), caOf("root", -9, 70))
	leafOf := func(until int, parent *x509.Certificate) *x509.Certificate {
		return issue(&x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: at(-9), NotAfter: at(until),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, parent)
	}
	leaf, short := leafOf(30, first), leafOf(5, first)
	list := func(certificates ...*x509.Certificate) []*x509.Certificate { return certificates }
	for _, test := range []struct {
		name    string
		now     int
		chain   []*x509.Certificate
		trusted []*x509.Certificate
		end     int
		withCA  bool
	}{
		{"it ends before its CA", 0, list(short), list(first), 5, false},
		{"its CA ends first", 0, list(leaf), list(first), 10, true},
		{"its CA was renewed with the same key", 0, list(leaf), list(renewed), 30, false},
		{"a bundle of its CA and the renewed one", 0, list(leaf), list(first, renewed), 30, false},
		{"the same in the other order", 0, list(leaf), list(renewed, first), 30, false},
		{"a bundle with a CA that has not signed it", 0, list(leaf), list(unrelated, sameName, first), 10, true},
		{"the renewed CA is valid later only", 0, list(leaf), list(first, later), 10, true},
		{"the CA has begun in the meantime", 6, list(leaf), list(first, later), 30, false},
		{"a CA in its chain ends first", 0, list(leafOf(30, between), between), list(renewed), 20, true},
		{"the CA of a CA in its chain ends first", 0, list(leafOf(30, between), between), list(first), 10, true},
		{"its CA has ended", 11, list(leaf), list(unrelated, sameName, first), 10, true},
		{"a CA in its chain has ended", 21, list(leafOf(30, between), between), list(renewed), 20, true},
		{"it has ended itself", 6, list(short), list(first), 5, false},
		{"no CA has signed it", 0, list(leaf), list(unrelated), 30, false},
		{"its CA has not begun", 0, list(leaf), list(later), 30, false},
	} {
		pair := &Pair{Leaf: test.chain[0], Chain: test.chain}
		end, withCA := pair.End(at(test.now), test.trusted, x509.ExtKeyUsageServerAuth)
		if !end.Equal(at(test.end)) || withCA != test.withCA {
			t.Errorf("%s: it ends %v, with a CA %t; want %v, %t", test.name, end.Sub(testNow), withCA, at(test.end).Sub(testNow), test.withCA)
		}
	}
}
