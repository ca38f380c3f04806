// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"k8s.io/utils/lru"
)

// maxVerified bounds what is remembered. A cluster needs about ten results of 300 bytes.
const maxVerified = 1 << 15

// verified remembers the signatures that were checked: a look at a cluster with TLS spent most
// of its time on the same signatures as the look before. A result depends only on the bytes
// of the certificates, which its key names, and on the time, which a period covers.
var verified = lru.New(maxVerified)

// identity is the SHA-256 of everything that a result depends on, but for the time.
type identity [sha256.Size]byte

// period is the time in which each certificate of a chain is valid.
type period struct{ from, until time.Time }

func (p period) covers(now time.Time) bool { return !now.Before(p.from) && !now.After(p.until) }

// judgment is what Verify has found, for as long as it stays so. The error is nil or one of those that reduced returns.
type judgment struct {
	period

	err error
}

// periodOf returns when every certificate of a chain is valid.
func periodOf(chain []*x509.Certificate) period {
	p := period{from: chain[0].NotBefore, until: chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(p.from) {
			p.from = c.NotBefore
		}
		if c.NotAfter.Before(p.until) {
			p.until = c.NotAfter
		}
	}
	return p
}

// untilNextChange returns the time around now in which no certificate of these lists begins or ceases to be valid. What
// Verify finds depends on the time by nothing else.
func untilNextChange(now time.Time, lists ...[]*x509.Certificate) period {
	p := period{until: time.Unix(1<<40, 0)}
	begin := func(at time.Time) {
		if at.After(p.from) {
			p.from = at
		}
	}
	end := func(at time.Time) {
		if at.Before(p.until) {
			p.until = at
		}
	}
	for _, c := range slices.Concat(lists...) {
		if now.Before(c.NotBefore) {
			end(c.NotBefore.Add(-1))
		} else {
			begin(c.NotBefore)
		}
		if now.After(c.NotAfter) {
			begin(c.NotAfter.Add(1))
		} else {
			end(c.NotAfter)
		}
	}
	return p
}

// reduced returns what callers read of an error of Verify, which itself holds certificates.
func reduced(err error) error {
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) {
		return x509.CertificateInvalidError{Reason: invalid.Reason}
	}
	return ErrUntrusted
}

// identityOf names a question about lists of certificates in their order.
func identityOf(question uint32, lists ...[]*x509.Certificate) identity {
	hash := sha256.New()
	number := func(n uint32) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], n)
		hash.Write(b[:])
	}
	number(question)
	for _, list := range lists {
		number(uint32(len(list)))
		for _, c := range list {
			number(uint32(len(c.Raw)))
			hash.Write(c.Raw)
		}
	}
	return identity(hash.Sum(nil))
}

// verifyChain is Certificate.Verify of the first certificate of a chain for one purpose. It remembers what it has found
// until a certificate begins or ceases to be valid. A failure takes longer than a success if many CAs have the name of the
// issuer, because Verify tries up to a hundred of them.
func verifyChain(now time.Time, chain, trusted []*x509.Certificate, purpose x509.ExtKeyUsage) error {
	id := identityOf(uint32(purpose), chain, trusted)
	if value, found := verified.Get(id); found {
		if j, ok := value.(judgment); ok && j.covers(now) {
			return j.err
		}
	}
	found, err := chain[0].Verify(x509.VerifyOptions{
		Roots: pool(trusted), Intermediates: pool(chain[1:]), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{purpose},
	})
	if err != nil {
		err = reduced(err)
		verified.Add(id, judgment{period: untilNextChange(now, chain, trusted), err: err})
		return err
	}
	verified.Add(id, judgment{period: periodOf(found[0])})
	return nil
}

// signedBy has no purpose; its results are apart from those of verifyChain.
const signedBy = 1 << 31

// isSigned is true if the parent has signed the child.
func isSigned(child, parent *x509.Certificate) bool {
	id := identityOf(signedBy, []*x509.Certificate{child}, []*x509.Certificate{parent})
	if value, found := verified.Get(id); found {
		if signed, ok := value.(bool); ok {
			return signed
		}
	}
	signed := child.CheckSignatureFrom(parent) == nil
	verified.Add(id, signed)
	return signed
}
