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

// period is the time in which a judgment stays the same.
type period struct{ from, until time.Time }

func (p period) covers(now time.Time) bool { return !now.Before(p.from) && !now.After(p.until) }

// judgment is what Verify has found, for as long as it stays so. The error is nil or one of those that reduced returns.
type judgment struct {
	period

	// end is when the last chain ends or has ended; zero if no end is known.
	end time.Time
	err error
}

// endOf returns when the first certificate ends of the chain that ends last. One chain is enough to be accepted: a
// bundle may hold several certificates of one CA, or several CAs that have signed the same certificate.
func endOf(chains [][]*x509.Certificate) time.Time {
	var last time.Time
	for _, chain := range chains {
		first := chain[0].NotAfter
		for _, c := range chain[1:] {
			if c.NotAfter.Before(first) {
				first = c.NotAfter
			}
		}
		if first.After(last) {
			last = first
		}
	}
	return last
}

// endBefore returns when the last certificate of the CA ended that Verify has found to be over; zero if it has found
// anything else. Without it, the end of a certificate would seem to be later again after its CA has ended.
func endBefore(now time.Time, err error, lists ...[]*x509.Certificate) time.Time {
	var last time.Time
	invalid := x509.CertificateInvalidError{}
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return last
	}
	over := nameOf(invalid.Cert)
	for _, c := range slices.Concat(lists...) {
		if now.After(c.NotAfter) && c.NotAfter.After(last) && nameOf(c) == over {
			last = c.NotAfter
		}
	}
	return last
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
func verifyChain(now time.Time, chain, trusted []*x509.Certificate, purpose x509.ExtKeyUsage) judgment {
	id := identityOf(uint32(purpose), chain, trusted)
	if value, found := verified.Get(id); found {
		if j, ok := value.(judgment); ok && j.covers(now) {
			return j
		}
	}
	found, err := chain[0].Verify(x509.VerifyOptions{
		Roots: pool(trusted), Intermediates: pool(chain[1:]), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{purpose},
	})
	j := judgment{period: untilNextChange(now, chain, trusted), end: endOf(found)}
	if err != nil {
		j.end, j.err = endBefore(now, err, chain, trusted), reduced(err)
	}
	verified.Add(id, j)
	return j
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
