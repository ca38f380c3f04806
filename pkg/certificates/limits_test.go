// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var limitsNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func newTestCA(t *testing.T) *CA {
	t.Helper()
	a, err := NewCA("c", limitsNow)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// forged returns a CA certificate with any key. Nothing checks whether it is one.
func forged(t *testing.T, signer *CA, key crypto.PublicKey, organization string) []byte {
	t.Helper()
	c, err := sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged", Organization: []string{organization}}, NotBefore: limitsNow.Add(-time.Hour),
		NotAfter: limitsNow.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, signer.Certificate, key, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	return PEM(c)
}

// rsaKey returns a public key of so many bits, for which signatures take as long as the format allows.
func rsaKey(bits uint) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 1<<31 - 1}
}

// TestSecretIsBounded: a Secret that would take much time or memory is rejected, and a bundle of all public CAs is not.
func TestSecretIsBounded(t *testing.T) {
	t.Parallel()
	a := newTestCA(t)
	chain, key, err := a.Issue(Template{Name: "c", Client: true}, limitsNow)
	if err != nil {
		t.Fatal(err)
	}
	repeated := func(n int, padding int) []byte {
		return bytes.Repeat(forged(t, a, a.Certificate.PublicKey, strings.Repeat("x", padding)), n)
	}
	f := resources.Files(resources.UseOperator, resources.FormatNamed)
	for name, test := range map[string]struct {
		entry string
		text  []byte
		says  string
	}{
		"RSA key of 8192 bits":         {f.CA, forged(t, a, rsaKey(8192), ""), ""},
		"RSA key of 8193 bits":         {f.CA, forged(t, a, rsaKey(8193), ""), "RSA key of 8193 bits"},
		"RSA key of a million bits":    {f.CA, forged(t, a, rsaKey(1_000_000), ""), "RSA key of 1000000 bits"},
		"such a CA behind the leaf":    {f.Cert, append(bytes.Clone(chain), forged(t, a, rsaKey(1_000_000), "")...), "RSA key of 1000000 bits"},
		"bundle of all public CAs":     {f.CA, repeated(150, 700), ""},
		"as many as are read":          {f.CA, repeated(maxCertificates, 0), ""},
		"one more":                     {f.CA, repeated(maxCertificates+1, 0), "more than 256 certificates"},
		"one large certificate":        {f.CA, repeated(1, maxBytes), "at most 262144 are read"},
		"text around the certificates": {f.CA, append(PEM(a.Certificate), make([]byte, maxBytes)...), "entries etcd-client.crt, etcd-client.key and etcd-client-ca.crt have"},
		"text around the key":          {f.Key, append(bytes.Clone(key), make([]byte, maxBytes)...), "at most 262144 are read"},
		"another entry is not read":    {"truststore.jks", make([]byte, 2*maxBytes), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &corev1.Secret{Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: PEM(a.Certificate)}}
			s.Data[test.entry] = test.text
			_, err := Read(resources.UseOperator, s)
			if test.says == "" && err != nil {
				t.Fatal(err)
			}
			if test.says != "" && (!errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), test.says)) {
				t.Fatalf("got %v, want an error that says %q", err, test.says)
			}
		})
	}
	if _, err := ReadAll(append(PEM(a.Certificate), make([]byte, maxBytes)...)); !errors.Is(err, ErrUnusable) {
		t.Errorf("an entry that is read alone: %v", err)
	}
}

// TestLargePrivateKeyIsNotParsed: crypto/x509 computes with the numbers of a key, in a time that grows with the square of
// their size.
func TestLargePrivateKeyIsNotParsed(t *testing.T) {
	t.Parallel()
	a := newTestCA(t)
	own, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	n := rsaKey(100_000).N
	der, err := asn1.Marshal(struct {
		Version             int
		N                   *big.Int
		E                   int
		D, P, Q, Dp, Dq, Qi *big.Int
	}{0, n, 3, n, n, n, n, n, n})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"RSA PRIVATE KEY", "PRIVATE KEY"} {
		large := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if _, err := keyPair(PEM(a.Certificate), append(PEM(a.Certificate), large...)); !errors.Is(err, errKeySize) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := ReadCA(PEM(a.Certificate), large, nil); !errors.Is(err, ErrUnusable) {
			t.Errorf("%s of a CA: %v", kind, err)
		}
	}
	if _, err := keyPair(PEM(a.Certificate), own); err != nil {
		t.Errorf("the key itself: %v", err)
	}
}

// TestFailureIsRemembered: a bundle may hold many CAs with the name of the issuer, each with a large key. The signatures are
// checked once, until a certificate begins or ceases to be valid.
func TestFailureIsRemembered(t *testing.T) {
	t.Parallel()
	a, later := newTestCA(t), newTestCA(t)
	later.Certificate.NotBefore = limitsNow.Add(time.Hour)
	chain, _, err := a.Issue(Template{Name: "c", Client: true}, limitsNow)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ReadAll(chain)
	if err != nil {
		t.Fatal(err)
	}
	soon := *a.Certificate
	soon.NotBefore = limitsNow.Add(time.Hour)
	trusted := []*x509.Certificate{&soon, later.Certificate}
	id := identityOf(uint32(x509.ExtKeyUsageClientAuth), leaf, trusted)
	for _, step := range []struct {
		after time.Duration
		works bool
		from  time.Duration
	}{
		{0, false, -Backdate}, {30 * time.Minute, false, -Backdate}, {time.Hour, true, time.Hour}, {30 * time.Minute, false, -Backdate},
	} {
		err := verifyChain(limitsNow.Add(step.after), leaf, trusted, x509.ExtKeyUsageClientAuth).err
		if (err == nil) != step.works {
			t.Errorf("after %v: %v", step.after, err)
		}
		value, _ := verified.Get(id)
		if j, is := value.(judgment); !is || !j.from.Equal(limitsNow.Add(step.from)) {
			t.Errorf("after %v it remembers %+v", step.after, value)
		}
	}
	if err := reduced(x509.CertificateInvalidError{Cert: leaf[0], Reason: x509.Expired}); !errors.Is(err, x509.CertificateInvalidError{Reason: x509.Expired}) {
		t.Errorf("it remembers a certificate in its result: %v", err)
	}
}

// TestConfigurationOfABundleIsSmall: the configuration of a connection does not hold a parsed bundle.
func TestConfigurationOfABundleIsSmall(t *testing.T) { //nolint:paralleltest // it measures the heap
	a := newTestCA(t)
	chain, key, err := a.Issue(Template{Name: "c", Client: true}, limitsNow)
	if err != nil {
		t.Fatal(err)
	}
	f := resources.Files(resources.UseOperator, resources.FormatNamed)
	bundle := PEM(a.Certificate)
	for i := range maxCertificates - 1 {
		bundle = append(bundle, forged(t, a, a.Certificate.PublicKey, strconv.Itoa(i))...)
	}
	heap := func() uint64 {
		runtime.GC() // the second one ends what the first one has left to sweep
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const number = 20
	var held [number]any
	before := heap()
	for i := range held {
		config, _, err := ClientConfig(&corev1.Secret{Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: bundle}})
		if err != nil {
			t.Fatal(err)
		}
		held[i] = config
	}
	each := (max(heap(), before) - before) / number
	t.Logf("a configuration with %d KiB of CAs holds %d KiB", len(bundle)>>10, each>>10)
	if most := uint64(2 * len(bundle)); each > most {
		t.Errorf("a configuration holds %d bytes, more than %d", each, most)
	}
	runtime.KeepAlive(held)
}
