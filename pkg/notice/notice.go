// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	// Path is where a launcher takes a Notice, as JSON in a POST.
	Path = "/initial-cluster"
	// MaxBytes bounds a request. A hundred members need a tenth of it.
	MaxBytes = 256 << 10
	// KeyFile is beside the file of the initial cluster in the volume of a prepared pod. It holds
	// the key whose notices the launcher believes.
	KeyFile = "key"
	// UIDFile is beside it and holds the UID of the pod.
	UIDFile = "uid"
)

// Errors of Verify. The launcher then waits for the kubelet.
var (
	// ErrNoKey means that the pod names no key, or none that can be read.
	ErrNoKey = errors.New("the pod names no key of a controller")
	// ErrForged means that the signature is not one of this key for this pod.
	ErrForged = errors.New("the notice is not signed by the controller that made this pod")
	// ErrEmpty means that the notice names no initial cluster.
	ErrEmpty = errors.New("the notice names no initial cluster")
)

// Notice tells a launcher that its member was added.
type Notice struct {
	// InitialCluster lists all members, as etcd reads it.
	InitialCluster string `json:"initialCluster"`
	// Signature is one over the UID of the pod and the initial cluster.
	Signature []byte `json:"signature"`
}

// Sign returns the notice for the pod with a UID.
func Sign(key ed25519.PrivateKey, uid, initialCluster string) Notice {
	return Notice{InitialCluster: initialCluster, Signature: ed25519.Sign(key, signed(uid, initialCluster))}
}

// Verify returns nil if the notice was signed with the key for the pod with this UID. Errors:
// ErrNoKey, ErrForged, ErrEmpty.
func (n *Notice) Verify(key, uid string) error {
	public, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	if err != nil || len(public) != ed25519.PublicKeySize {
		return ErrNoKey
	}
	if !ed25519.Verify(public, signed(strings.TrimSpace(uid), n.InitialCluster), n.Signature) {
		return ErrForged
	}
	if n.InitialCluster == "" {
		return ErrEmpty
	}
	return nil
}

// Encode returns a public key as the annotation of a pod.
func Encode(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// signed is what a signature is over. A UID has no line break, so no two pairs are one text.
func signed(uid, initialCluster string) []byte {
	return fmt.Appendf(nil, "etcd-operator: the member was added\n%s\n%s", uid, initialCluster)
}
