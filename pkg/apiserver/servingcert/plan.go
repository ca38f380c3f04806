// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
)

// Periods of the certificates. The manager replaces a CA in three steps, so that clients always
// trust the certificate of the server. It adds the new CA to the bundle. Later the new CA signs
// the leaf. Later the manager removes the old CA.
const (
	caLifetime      = 10 * 365 * 24 * time.Hour
	caRenewBefore   = 2 * 365 * 24 * time.Hour
	leafLifetime    = 90 * 24 * time.Hour
	leafRenewBefore = 30 * 24 * time.Hour
	// settleTime is the time between two steps, in which all clients and replicas see the first
	// one. The kube-apiserver needs seconds for it, other replicas a sync period.
	settleTime = time.Hour
)

// Step is the next change that a bundle needs.
type Step string

// The steps, in the order of the life of a bundle.
const (
	// StepNone changes nothing.
	StepNone Step = "None"
	// StepCreate issues a CA and a leaf.
	StepCreate Step = "Create"
	// StepAddCA adds a new CA before the one that expires soon.
	StepAddCA Step = "AddCA"
	// StepIssueLeaf issues a new leaf with the newest CA.
	StepIssueLeaf Step = "IssueLeaf"
	// StepDropOldCAs removes all CAs but the newest.
	StepDropOldCAs Step = "DropOldCAs"
)

// plan returns the step that is due, for a leaf with all the names. It is a pure function. A nil
// bundle is one that does not exist or cannot be used.
func plan(now time.Time, have *bundle, names []string) Step {
	if have == nil || now.After(have.cas[0].NotAfter) {
		return StepCreate
	}
	newest := have.cas[0]
	// A clock that was ahead by more than a day has issued what is not valid yet. Clients that verify it reject it until
	// then, also after that clock was corrected.
	if now.Before(newest.NotBefore) || now.After(newest.NotAfter.Add(-caRenewBefore)) {
		return StepAddCA
	}

	if !hasNames(have.leaf, names) || !isValid(now, have.leaf) || !isTrusted(now, have.leaf, have.cas) {
		return StepIssueLeaf
	}
	settled := now.After(issuedAt(newest).Add(settleTime))
	signedByNewest := have.leaf.CheckSignatureFrom(newest) == nil
	due := !signedByNewest || now.After(have.leaf.NotAfter.Add(-leafRenewBefore))
	if due && settled {
		return StepIssueLeaf
	}

	if len(have.cas) > 1 && signedByNewest && now.After(issuedAt(have.leaf).Add(settleTime)) {
		return StepDropOldCAs
	}
	return StepNone
}

func issuedAt(certificate *x509.Certificate) time.Time {
	return certificates.IssuedAt(certificate.NotBefore)
}

func isValid(now time.Time, certificate *x509.Certificate) bool {
	return !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter)
}

func hasNames(leaf *x509.Certificate, names []string) bool {
	for _, name := range names {
		if !slices.Contains(leaf.DNSNames, name) {
			return false
		}
	}
	return true
}

func isTrusted(now time.Time, leaf *x509.Certificate, cas []*x509.Certificate) bool {
	return slices.ContainsFunc(cas, func(ca *x509.Certificate) bool {
		return isValid(now, ca) && leaf.CheckSignatureFrom(ca) == nil
	})
}
