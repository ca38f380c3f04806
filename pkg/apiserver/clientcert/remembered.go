// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"crypto/sha256"
	"crypto/x509"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// maxRemembered is how many certificates are remembered. One takes less than a kilobyte.
	maxRemembered = 1024
	// maxAge is how long something is remembered. It bounds only what the other limits do not
	// see, such as the end of the validity of a CA.
	maxAge = time.Minute
)

// digest identifies the certificates that a client presented.
type digest [sha256.Size]byte

func digestOf(presented []*x509.Certificate) digest {
	if len(presented) == 1 {
		return sha256.Sum256(presented[0].Raw)
	}
	hash := sha256.New()
	for _, certificate := range presented {
		hash.Write(certificate.Raw)
	}
	return digest(hash.Sum(nil))
}

// remembered maps the certificates that clients presented to values that are valid for some time.
type remembered[T any] struct {
	entries *lru.Cache
	clock   clock.PassiveClock
}

type entry[T any] struct {
	value T
	until time.Time
}

func newRemembered[T any](c clock.PassiveClock) remembered[T] {
	return remembered[T]{entries: lru.New(maxRemembered), clock: c}
}

func (r remembered[T]) get(key digest) (T, bool) {
	if found, ok := r.entries.Get(key); ok {
		if e, ok := found.(entry[T]); ok && r.clock.Now().Before(e.until) {
			return e.value, true
		}
	}
	var none T
	return none, false
}

// put remembers the value until the first of the certificates expires, at most for maxAge.
func (r remembered[T]) put(key digest, value T, certificates []*x509.Certificate) {
	until := r.clock.Now().Add(maxAge)
	for _, certificate := range certificates {
		if certificate.NotAfter.Before(until) {
			until = certificate.NotAfter
		}
	}
	r.entries.Add(key, entry[T]{value: value, until: until})
}
