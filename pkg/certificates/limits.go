// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// A tenant writes what is read here, and programs read it that all tenants share. The bounds keep the time and the memory
// for one Secret small. Without them, one signature of an RSA key of two million bits takes minutes.
const (
	// maxBytes is how much of a Secret is read. A bundle of all public CAs has 220 KiB, and some users put it into a Secret
	// together with a CA of their own. Certificates of one cluster have 10 KiB.
	maxBytes = 256 << 10
	// maxCertificates is how many certificates an entry may hold. A bundle of all public CAs has about 150.
	maxCertificates = 256
	// maxRSABits is what crypto/tls accepts of the other side (CVE-2023-29409). So no connection works with a larger key.
	// There is no bound for signatures: one that does not have the length of its key is rejected before the computation.
	maxRSABits = 8192
	// maxKeyBytes is how large a private key may be. One of RSA with 8192 bits has 4.7 KiB. It is checked by its size,
	// because crypto/x509 computes with all numbers of a key before it returns the key.
	maxKeyBytes = 8 << 10
)

// requireBytes returns an error if this is more than is read.
func requireBytes(n int) error {
	if n > maxBytes {
		return fmt.Errorf("%d bytes, and at most %d are read", n, maxBytes)
	}
	return nil
}

// requireSmall returns an error if signatures of the key of a certificate take long to verify. The keys of all other
// algorithms have a fixed size, or crypto/x509 does not verify their signatures.
func requireSmall(c *x509.Certificate) error {
	if key, is := c.PublicKey.(*rsa.PublicKey); is && key.N.BitLen() > maxRSABits {
		return fmt.Errorf("it holds a certificate with an RSA key of %d bits, and at most %d are accepted", key.N.BitLen(), maxRSABits)
	}
	return nil
}

var errKeySize = errors.New("the private key is too large")

// keyPair is tls.X509KeyPair for a certificate that parseAll has read, and a key that nothing has read yet.
func keyPair(certificate, key []byte) (tls.Certificate, error) {
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") && len(block.Bytes) > maxKeyBytes {
			return tls.Certificate{}, errKeySize
		}
	}
	return tls.X509KeyPair(certificate, key)
}
