// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"fmt"
	"os"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// passwordVariable is the environment variable with the password of an encrypted private key. Arguments would
// show the password in the list of processes.
const passwordVariable = "RELEASE_KEY_PASSWORD"

// readPrivateKey reads the key that signs a release. ECDSA and RSA keys sign the SHA-256 digest of a message, and
// Ed25519 keys the message, as cosign does.
func readPrivateKey(file string) (signature.SignerVerifier, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(content, cryptoutils.StaticPasswordFunc([]byte(os.Getenv(passwordVariable))))
	if err != nil {
		return nil, fmt.Errorf("read the private key %s: %w: make one with openssl genpkey, and set %s if it is encrypted", file, err, passwordVariable)
	}
	return signature.LoadSignerVerifier(private, crypto.SHA256)
}

// readPublicKey reads the key that verifies a release.
func readPublicKey(file string) (signature.Verifier, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("read the public key %s: %w: make it with openssl pkey -pubout", file, err)
	}
	return signature.LoadVerifier(public, crypto.SHA256)
}
