// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Why a certificate cannot be used.
var (
	// ErrIncomplete: the secret lacks an entry.
	ErrIncomplete = errors.New("the secret is incomplete")
	// ErrUnusable: an entry cannot be read, or the key is not that of the certificate.
	ErrUnusable = errors.New("the certificate cannot be used")
	// ErrExpired and ErrNotYetValid: it is good at another time.
	ErrExpired     = errors.New("the certificate has expired")
	ErrNotYetValid = errors.New("the certificate is not valid yet")
	// ErrUntrusted: those that it is shown to do not trust its issuer, or not for this use.
	ErrUntrusted = errors.New("the certificate is not trusted")
	// ErrNames: it does not name the host that it is for.
	ErrNames = errors.New("the certificate names other hosts")
)

// Pair is a certificate with its key, and the CAs that its holder trusts.
type Pair struct {
	Use    resources.SecretUse
	Format resources.SecretFormat
	// Leaf is the certificate; Chain is the whole of it, leaf first.
	Leaf  *x509.Certificate
	Chain []*x509.Certificate
	// CAs that the holder trusts.
	CAs []*x509.Certificate

	certificate tls.Certificate
}

// Read returns what a secret holds for a use. The error matches ErrIncomplete or
// ErrUnusable.
func Read(use resources.SecretUse, secret *corev1.Secret) (*Pair, error) {
	format, complete := resources.FormatOf(use, secret)
	if !complete {
		return nil, fmt.Errorf("%w: it needs the entries %s", ErrIncomplete, desired(use))
	}
	files := resources.Files(use, format)
	if err := requireBytes(len(secret.Data[files.Cert]) + len(secret.Data[files.Key]) + len(secret.Data[files.CA])); err != nil {
		return nil, fmt.Errorf("%w: entries %s, %s and %s have %w", ErrUnusable, files.Cert, files.Key, files.CA, err)
	}
	chain, err := parseAll(secret.Data[files.Cert])
	if err != nil {
		return nil, fmt.Errorf("%w: entry %s: %w", ErrUnusable, files.Cert, err)
	}
	cas, err := parseAll(secret.Data[files.CA])
	if err != nil {
		return nil, fmt.Errorf("%w: entry %s: %w", ErrUnusable, files.CA, err)
	}
	certificate, err := keyPair(secret.Data[files.Cert], secret.Data[files.Key])
	if err != nil {
		// The certificate was read, so it is about the key. What the library says of a
		// key names its type and its form, and the rest of the text is not needed.
		return nil, fmt.Errorf("%w: entry %s is no private key of the certificate in %s", ErrUnusable, files.Key, files.Cert)
	}
	return &Pair{
		Use: use, Format: format, Leaf: chain[0], Chain: chain, CAs: cas, certificate: certificate,
	}, nil
}

// desired lists the entries of both formats for a message.
func desired(use resources.SecretUse) string {
	var sets []string
	for _, format := range []resources.SecretFormat{resources.FormatNamed, resources.FormatKubernetes} {
		f := resources.Files(use, format)
		sets = append(sets, strings.Join([]string{f.Cert, f.Key, f.CA}, ", "))
	}
	return strings.Join(sets, " or ")
}

var (
	errNoPEM          = errors.New("it holds no certificate in PEM form")
	errNoASN1         = errors.New("it holds a certificate that cannot be read")
	errNotCertificate = errors.New("it holds something else than certificates")
	errTooMany        = fmt.Errorf("it holds more than %d certificates", maxCertificates)
)

// parseAll reads the certificates of a PEM file; there is at least one. All certificates of tenants come from here.
func parseAll(text []byte) ([]*x509.Certificate, error) {
	if err := requireBytes(len(text)); err != nil {
		return nil, fmt.Errorf("it has %w", err)
	}
	var list []*x509.Certificate
	for len(text) > 0 {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, errNotCertificate // its content is not quoted: it may be a key
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errNoASN1
		}
		if err := requireSmall(parsed); err != nil {
			return nil, err
		}
		if len(list) == maxCertificates {
			return nil, errTooMany
		}
		list = append(list, parsed)
	}
	if len(list) == 0 {
		return nil, errNoPEM
	}
	return list, nil
}

// Check says whether programs that trust these CAs accept the pair now, under all these
// host names, and for each of the purposes.
func (p *Pair) Check(now time.Time, trusted []*x509.Certificate, hosts []string, purposes ...x509.ExtKeyUsage) error {
	switch {
	case now.After(p.Leaf.NotAfter):
		return fmt.Errorf("%w at %s", ErrExpired, p.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(p.Leaf.NotBefore):
		return fmt.Errorf("%w: it will be from %s", ErrNotYetValid, p.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	for _, purpose := range purposes {
		if err := p.verify(now, trusted, purpose); err != nil {
			return err
		}
	}
	for _, host := range hosts {
		if err := p.Leaf.VerifyHostname(host); err != nil {
			return fmt.Errorf("%w: it is good for %s and not for %s", ErrNames, p.names(), host)
		}
	}
	return nil
}

// CheckNamed is Check for programs that trust the CAs of these names, as in Names. These CAs are looked
// for among those that are known and in the chain of the pair. A name is made of the subject and the key of
// its CA, so a certificate under that name is that of the CA, wherever it was found.
func (p *Pair) CheckNamed(now time.Time, known []*x509.Certificate, names string, purposes ...x509.ExtKeyUsage) error {
	return p.Check(now, Named(slices.Concat(known, p.Chain[1:]), names), nil, purposes...)
}

// End returns until when programs that trust these CAs accept the pair for all of the purposes. withCA is true if a CA
// ends then, and the certificate itself later: an issuer may sign what outlives its own certificate.
func (p *Pair) End(now time.Time, trusted []*x509.Certificate, purposes ...x509.ExtKeyUsage) (end time.Time, withCA bool) {
	end = p.Leaf.NotAfter
	for _, purpose := range purposes {
		if found := verifyChain(now, p.Chain, trusted, purpose).end; !found.IsZero() && found.Before(end) {
			end, withCA = found, true
		}
	}
	return end, withCA
}

// IsSignedBy is true if a CA has signed the certificate itself.
func (p *Pair) IsSignedBy(ca *x509.Certificate) bool { return isSigned(p.Leaf, ca) }

func (p *Pair) verify(now time.Time, trusted []*x509.Certificate, purpose x509.ExtKeyUsage) error {
	found := verifyChain(now, p.Chain, trusted, purpose)
	if found.err == nil {
		return nil
	}
	if invalid := (x509.CertificateInvalidError{}); errors.As(found.err, &invalid) {
		switch {
		case invalid.Reason == x509.Expired && found.end.IsZero():
			return fmt.Errorf("%w: its CA %q is not valid now", ErrExpired, p.Leaf.Issuer.CommonName)
		case invalid.Reason == x509.Expired:
			return fmt.Errorf("%w: its CA %q was valid until %s", ErrExpired, p.Leaf.Issuer.CommonName, found.end.UTC().Format(time.RFC3339))
		case invalid.Reason == x509.IncompatibleUsage:
			return fmt.Errorf("%w: it is not for %s", ErrUntrusted, purposeName(purpose))
		}
	}
	return fmt.Errorf("%w: no trusted CA has signed it; its issuer is %q", ErrUntrusted, p.Leaf.Issuer.CommonName)
}

func purposeName(purpose x509.ExtKeyUsage) string {
	if purpose == x509.ExtKeyUsageClientAuth {
		return "clients (extended key usage clientAuth)"
	}
	return "servers (extended key usage serverAuth)"
}

// names lists what the certificate is good for, for a message.
func (p *Pair) names() string {
	list := slices.Clone(p.Leaf.DNSNames)
	for _, ip := range p.Leaf.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return "no host (it has no subject alternative names)"
	}
	const enough = 5
	if len(list) > enough {
		list = append(list[:enough], "…")
	}
	return strings.Join(list, ", ")
}

func pool(list []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range list {
		p.AddCert(c)
	}
	return p
}

// Fingerprint names a certificate: the first bytes of its SHA-256 in hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:fingerprintBytes])
}

const fingerprintBytes = 16

// Names lists CAs by their identity: a certificate that is issued again for the same
// subject and key is the same CA to a program that knows the earlier certificate.
func Names(cas []*x509.Certificate) string {
	names := make([]string, 0, len(cas))
	for _, a := range cas {
		names = append(names, nameOf(a))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ".")
}

// Named returns those CAs of a list that are among these names.
func Named(list []*x509.Certificate, names string) []*x509.Certificate {
	known := strings.Split(names, ".")
	return slices.DeleteFunc(slices.Clone(list), func(c *x509.Certificate) bool { return !slices.Contains(known, nameOf(c)) })
}

func nameOf(c *x509.Certificate) string {
	sum := sha256.Sum256(slices.Concat(c.RawSubject, c.RawSubjectPublicKeyInfo))
	return hex.EncodeToString(sum[:fingerprintBytes])
}

// Trust names a set of CAs, whatever their order.
func Trust(cas []*x509.Certificate) string {
	prints := make([]string, 0, len(cas))
	for _, a := range cas {
		prints = append(prints, Fingerprint(a))
	}
	slices.Sort(prints)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(prints), " ")))
	return hex.EncodeToString(sum[:fingerprintBytes])
}
