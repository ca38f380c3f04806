// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"slices"
	"time"
)

// Periods of the certificates. An authority is replaced in three steps, so that at
// no moment a client meets a certificate that it does not trust yet: the new one
// joins the bundle, later it signs the leaf, later the old one leaves.
const (
	authorityLifetime    = 10 * 365 * 24 * time.Hour
	authorityRenewBefore = 2 * 365 * 24 * time.Hour
	leafLifetime         = 90 * 24 * time.Hour
	leafRenewBefore      = 30 * 24 * time.Hour
	// settleTime is how long a step waits until everybody must have seen the one
	// before. The kube-apiserver needs seconds, other replicas a sync period.
	settleTime = time.Hour
	// backdate lets a certificate be used at once where clocks differ.
	backdate = 5 * time.Minute
)

// Step is the next change that a bundle needs.
type Step string

// Steps, in the order in which a bundle's life goes through them.
const (
	// StepNone leaves the bundle as it is.
	StepNone Step = "None"
	// StepCreate makes an authority and a leaf from nothing.
	StepCreate Step = "Create"
	// StepAddAuthority puts a new authority in front of the one that ends soon.
	StepAddAuthority Step = "AddAuthority"
	// StepIssueLeaf signs a new leaf with the newest authority.
	StepIssueLeaf Step = "IssueLeaf"
	// StepDropAuthorities leaves only the newest authority.
	StepDropAuthorities Step = "DropAuthorities"
)

// plan returns the step that the bundle needs now, for a leaf that is valid for all
// the names. It is a pure function; a nil bundle is one that cannot be used.
func plan(now time.Time, have *bundle, names []string) Step {
	if have == nil || now.After(have.authorities[0].NotAfter) {
		return StepCreate
	}
	newest := have.authorities[0]
	if now.After(newest.NotAfter.Add(-authorityRenewBefore)) {
		return StepAddAuthority
	}

	if !covers(have.leaf, names) || now.After(have.leaf.NotAfter) || !trusted(have.leaf, have.authorities) {
		return StepIssueLeaf
	}
	settled := now.After(issuedAt(newest).Add(settleTime))
	signedByNewest := have.leaf.CheckSignatureFrom(newest) == nil
	due := !signedByNewest || now.After(have.leaf.NotAfter.Add(-leafRenewBefore))
	if due && settled {
		return StepIssueLeaf
	}

	if len(have.authorities) > 1 && signedByNewest && now.After(issuedAt(have.leaf).Add(settleTime)) {
		return StepDropAuthorities
	}
	return StepNone
}

func issuedAt(certificate *x509.Certificate) time.Time {
	return certificate.NotBefore.Add(backdate)
}

func covers(leaf *x509.Certificate, names []string) bool {
	for _, name := range names {
		if !slices.Contains(leaf.DNSNames, name) {
			return false
		}
	}
	return true
}

func trusted(leaf *x509.Certificate, authorities []*x509.Certificate) bool {
	return slices.ContainsFunc(authorities, func(authority *x509.Certificate) bool {
		return leaf.CheckSignatureFrom(authority) == nil
	})
}
