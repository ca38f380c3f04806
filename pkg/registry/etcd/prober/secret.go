// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNoCertificate means that the members of a cluster with TLS cannot be probed, because the
// client certificate for them could not be read.
var ErrNoCertificate = errors.New("the certificates for talking to the members could not be read")

// MissingRightError means that the API server has no right to read the Secret with the client
// certificate of a cluster. Each namespace, or the installation as a whole, grants it.
type MissingRightError struct {
	Namespace, Secret string
	Err               error
}

// Error implements error.
func (e *MissingRightError) Error() string {
	return fmt.Sprintf("the API server has no right to read Secret %s, which spec.TLS of the cluster needs; grant it with: %s: %v",
		e.Secret, e.Remedy(), e.Err)
}

// Unwrap returns what the kube-apiserver said.
func (e *MissingRightError) Unwrap() error { return e.Err }

// Remedy returns a command that grants the right in the namespace.
func (e *MissingRightError) Remedy() string {
	return fmt.Sprintf("kubectl -n %s create rolebinding etcd-operator-apiserver:read-tls "+
		"--clusterrole=etcd-operator-apiserver:read-tls --serviceaccount=etcd-operator-system:etcd-operator-apiserver", e.Namespace)
}

// secretError says what to do about a Secret that could not be read.
func secretError(namespace, name string, err error) error {
	if apierrors.IsForbidden(err) {
		return &MissingRightError{Namespace: namespace, Secret: name, Err: err}
	}
	return err
}
