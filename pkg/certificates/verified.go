// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"time"

	"k8s.io/utils/lru"
)

// maxVerified bounds what is remembered. A cluster needs about ten results of 200 bytes.
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

// verifyChain is Certificate.Verify of the first certificate of a chain for one purpose. It
// remembers success until a certificate of the chain is no longer valid.
func verifyChain(now time.Time, chain, trusted []*x509.Certificate, purpose x509.ExtKeyUsage) error {
	id := identityOf(uint32(purpose), chain, trusted)
	if value, found := verified.Get(id); found {
		if p, ok := value.(period); ok && p.covers(now) {
			return nil
		}
	}
	found, err := chain[0].Verify(x509.VerifyOptions{
		Roots: pool(trusted), Intermediates: pool(chain[1:]), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{purpose},
	})
	if err == nil {
		verified.Add(id, periodOf(found[0]))
	}
	return err
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
