// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// CALife is how long a CA is valid.
	CALife = 5 * 365 * 24 * time.Hour
	// LeafLife is how long every other certificate is.
	LeafLife = 90 * 24 * time.Hour
	// Backdate is how long before its issue every certificate is valid. It covers machines whose clocks are up to a
	// day behind.
	Backdate = 25 * time.Hour
	// serialBits is as random as a serial number has to be.
	serialBits = 127
)

// IssuedAt returns when a certificate was issued that is valid from a time. Every certificate of this project is valid
// before its issue, so that time says nothing of the age of a certificate.
func IssuedAt(notBefore time.Time) time.Time { return notBefore.Add(Backdate) }

// Renewal returns when a certificate is to be renewed: after two thirds of its life.
func Renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// CA signs certificates.
type CA struct {
	Certificate *x509.Certificate
	// CrossSigned, if not nil, is the certificate of this CA that the previous CA signed.
	// A program that trusts only the previous CA accepts what this CA signs.
	CrossSigned *x509.Certificate
	// Previous is the certificate of the CA that signed CrossSigned; nil if it is not known. It stays in
	// the chains after it has left every bundle. A member that has not restarted since then trusts only
	// it. Without it no other program can verify what that member accepts.
	Previous *x509.Certificate

	key crypto.Signer
}

// NewCA makes a CA with a key of its own. A few digits of its serial
// number are added to the name, so that two of them are never taken for each other.
func NewCA(name string, now time.Time) (*CA, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	const digits = 8
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name + "-" + hex.EncodeToString(serial.FillBytes(make([]byte, (serialBits+7)/8)))[:digits]},
		NotBefore:             now.Add(-Backdate),
		NotAfter:              now.Add(CALife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &CA{Certificate: certificate, key: key}, nil
}

// CrossSign makes a certificate for next that a signs. A program that trusts a then trusts
// what next signs, too, for as long as a is valid.
func (a *CA) CrossSign(next *CA) error {
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := *next.Certificate
	template.SerialNumber = serial
	template.AuthorityKeyId = a.Certificate.SubjectKeyId
	if template.NotAfter.After(a.Certificate.NotAfter) {
		template.NotAfter = a.Certificate.NotAfter
	}
	next.CrossSigned, err = sign(&template, a.Certificate, next.Certificate.PublicKey, a.key)
	next.Previous = a.Certificate
	return err
}

// IsCrossSigned is true if the CA before this CA has signed it, and that is still valid.
func (a *CA) IsCrossSigned(now time.Time) bool {
	return a.CrossSigned != nil && now.Before(a.CrossSigned.NotAfter)
}

// IsCrossSignedBy is true if a CA has signed CrossSigned.
func (a *CA) IsCrossSignedBy(other *x509.Certificate) bool {
	return a.CrossSigned != nil && isSigned(a.CrossSigned, other)
}

// Before returns Previous, if it is known.
func (a *CA) Before() []*x509.Certificate {
	if a.Previous == nil {
		return nil
	}
	return []*x509.Certificate{a.Previous}
}

// CrossPEM returns what leads from the CA that cross-signed this CA to this CA; nil if none did.
func (a *CA) CrossPEM() []byte { return PEM(a.cross()...) }

// cross returns CrossSigned and Previous, as far as there are any.
func (a *CA) cross() []*x509.Certificate {
	if a.CrossSigned == nil {
		return nil
	}
	return append([]*x509.Certificate{a.CrossSigned}, a.Before()...)
}

// Template describes a certificate to issue.
type Template struct {
	// Name is the common name.
	Name string
	// Hosts are DNS names and addresses.
	Hosts []string
	// Server and Client are what it is for.
	Server, Client bool
}

// Matches is true if a certificate is what the template says.
func (t Template) Matches(c *x509.Certificate) bool {
	var names, addresses []string
	for _, host := range t.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			addresses = append(addresses, ip.String())
		} else {
			names = append(names, host)
		}
	}
	has := make([]string, 0, len(c.IPAddresses))
	for _, ip := range c.IPAddresses {
		has = append(has, ip.String())
	}
	return c.Subject.CommonName == t.Name && slices.Equal(c.DNSNames, names) && slices.Equal(has, addresses) &&
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) == t.Server &&
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) == t.Client
}

// Issue returns a certificate with the chain that leads to the CA that cross-signed this
// CA, and its key, in PEM form. The chain ends with that CA itself.
func (a *CA) Issue(t Template, now time.Time) (chain, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: t.Name},
		NotBefore:    now.Add(-Backdate),
		NotAfter:     now.Add(LeafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	if template.NotAfter.After(a.Certificate.NotAfter) {
		template.NotAfter = a.Certificate.NotAfter
	}
	if t.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if t.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, host := range t.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	leaf, err := sign(template, a.Certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	list := []*x509.Certificate{leaf}
	if a.IsCrossSigned(now) {
		list = append(list, a.cross()...)
	}
	if key, err = keyPEM(private); err != nil {
		return nil, nil, err
	}
	return PEM(list...), key, nil
}

// LeafRenewal returns when a certificate of a cluster is to be renewed by a CA; zero if never. The CA
// outlives what it signs. In place of a certificate that ends with the CA it would sign one that
// ends at the same time, again and again: the next CA renews such a certificate.
func (a *CA) LeafRenewal(c *x509.Certificate) time.Time {
	if !c.NotAfter.Before(a.Certificate.NotAfter) {
		return time.Time{}
	}
	return Renewal(c)
}

// HasSigned is true if the CA has signed a certificate.
func (a *CA) HasSigned(c *x509.Certificate) bool {
	return isSigned(c, a.Certificate)
}

// ReadCA reads what PEM, KeyPEM and CrossPEM wrote; cross may be empty, or hold no Previous.
func ReadCA(certificate, key, cross []byte) (*CA, error) {
	chain, err := parseAll(certificate)
	if err != nil {
		return nil, fmt.Errorf("%w: the CA: %w", ErrUnusable, err)
	}
	pair, err := keyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%w: the CA has no private key of its certificate", ErrUnusable)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !chain[0].IsCA {
		return nil, fmt.Errorf("%w: it is not that of a CA", ErrUnusable)
	}
	a := &CA{Certificate: chain[0], key: signer}
	if len(cross) > 0 {
		crossSigned, err := parseAll(cross)
		if err != nil {
			return nil, fmt.Errorf("%w: the CA before: %w", ErrUnusable, err)
		}
		if a.CrossSigned = crossSigned[0]; len(crossSigned) > 1 {
			a.Previous = crossSigned[1]
		}
	}
	return a, nil
}

// KeyPEM returns the private key of the CA. It belongs into a secret and nowhere
// else.
func (a *CA) KeyPEM() ([]byte, error) { return keyPEM(a.key) }

// PEM writes certificates one after the other.
func PEM(list ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

// ReadAll reads what PEM wrote.
func ReadAll(text []byte) ([]*x509.Certificate, error) {
	list, err := parseAll(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return list, nil
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
