// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// CertificateState is whether a certificate can be used now.
type CertificateState int

// Values of CertificateState.
const (
	// CertificateUnknown: its secret could not be read.
	CertificateUnknown CertificateState = iota
	// CertificateMissing: there is no such secret.
	CertificateMissing
	// CertificateIncomplete: the secret lacks an entry.
	CertificateIncomplete
	// CertificateUnusable: the secret holds something that cannot be used.
	CertificateUnusable
	// CertificateExpired and CertificateNotYetValid: it is good at another time.
	CertificateExpired
	CertificateNotYetValid
	// CertificateNotOwned: the controller issues it, and a Secret of that name exists that is
	// not owned by the cluster.
	CertificateNotOwned
	// CertificateUsable: it is good now.
	CertificateUsable
)

// Certificate is what is known of one certificate and its secret. Nothing here is
// secret.
type Certificate struct {
	Use    v1beta2.CertificateUse
	Secret string
	State  CertificateState
	// Message says for a reader why it cannot be used.
	Message string
	// What the certificate says; empty if there is none that can be read.
	Issuer, Serial      string
	NotBefore, NotAfter time.Time
	// Renewal is when the controller renews it; zero if it does not.
	Renewal time.Time
	Issued  Issued
}

// reason is the State in one word.
func (c *Certificate) reason() Reason {
	switch c.State {
	case CertificateMissing:
		return ReasonSecretMissing
	case CertificateIncomplete:
		return ReasonSecretIncomplete
	case CertificateUnusable:
		return ReasonCertificateUnusable
	case CertificateExpired:
		return ReasonCertificateExpired
	case CertificateNotYetValid:
		return ReasonCertificateNotYetValid
	case CertificateNotOwned:
		return ReasonNameConflict
	case CertificateUsable, CertificateUnknown:
	}
	return ReasonSecretUnreadable
}

// remediation says what would make the certificate usable.
func (c *Certificate) remediation() string {
	switch c.State {
	case CertificateMissing:
		return "Create Secret " + c.Secret + " in the namespace of the cluster."
	case CertificateIncomplete, CertificateUnusable:
		return "Correct Secret " + c.Secret + "."
	case CertificateExpired:
		return "Put a new certificate into Secret " + c.Secret + "."
	case CertificateNotOwned:
		return "Delete Secret " + c.Secret + ", or give the cluster another name."
	case CertificateNotYetValid, CertificateUsable, CertificateUnknown:
	}
	return noActionNeeded
}

// unusable returns the first certificate that cannot be used, or nil. A certificate whose
// Secret is not owned by the cluster comes first.
func (o *Observed) unusable() *Certificate {
	if c := o.conflictingSecret(); c != nil {
		return c
	}
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.State != CertificateUsable {
			return c
		}
	}
	return nil
}

// soon is true for a certificate that should have been renewed.
func (c *Certificate) soon(now time.Time) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return c.NotAfter.Sub(now) < life/soonFraction
}
