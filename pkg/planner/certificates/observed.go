// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Observed is what is known of the certificates of one cluster. The zero value is a cluster
// without TLS.
type Observed struct {
	// Now is the one time of this observation.
	Now time.Time

	// Certificates that the cluster needs, in a fixed order; none without TLS.
	Certificates []Certificate
	// Clients are the certificates of the clients that the cluster declares.
	Clients []Certificate
	// CA is set for a cluster whose certificates the controller issues.
	CA *CA
	// CertManager is set for a cluster whose certificates cert-manager issues.
	CertManager *CertManager

	// Trust names the set of CAs that members must trust; empty if that is not known.
	Trust string
	// Pods of the cluster that run or start. Pods that end, and those that the cluster does not
	// own, are left out.
	Pods []Pod
	// MembersVerified is true if every member was seen to show certificates of the present CA,
	// at both its listeners.
	MembersVerified bool
	// Linearizable is true if the member list was read through a quorum.
	Linearizable bool
	// CanAuthenticate is true if the controller has a certificate that members accept: its own,
	// or another certificate that the CA of the cluster has signed.
	CanAuthenticate bool

	// RotateCA and DropOldCA are the requests of a user for another CA, and for the end of the
	// trust in the CA before it; empty for none.
	RotateCA, DropOldCA string
	// RequestRounds is how often the request RotateCA was carried out in a row, and RenewalRounds how often
	// the present CA was replaced because it would expire. More than once is after an older Secret came back.
	RequestRounds, RenewalRounds int

	// Bootstrapped is true if the cluster has ever served.
	Bootstrapped bool
	// Hibernated is true for a desired size of 0, which needs no certificates.
	Hibernated bool
	// Paused is true if a user has paused the cluster, and Deleting if the cluster is being
	// deleted.
	Paused, Deleting bool
	// AddsMember is true if another member joins in the same step.
	AddsMember bool
}

// CA holds what is known of the CA that signs for a cluster whose certificates the
// controller issues, beyond its Certificate.
type CA struct {
	// Request is the last request for a new CA that was carried out.
	Request string
	// Spent is the last request for the end of the trust in an older CA that was carried out, or that was there before
	// the older CA was.
	Spent string
	// Overlap is true while an older CA is trusted too; Since says since when.
	Overlap bool
	Since   time.Time
	// CrossSigned is true if the older CA has signed the present one: then a client that trusts the
	// older one only takes what the present one signs.
	CrossSigned bool
	// Writer is the field manager that has written the certificate of the CA; empty if that is not known.
	Writer string
	// Kept is true if the Secret of the CA was lost and the controller still has its content in
	// memory.
	Kept bool
	// Lacks is true if the Secret of the CA does not list a CA that members trust and that has signed a
	// present certificate. A person or a program has put an older Secret back.
	Lacks bool
}

// Pod is what is known of the certificates of one pod.
type Pod struct {
	Name, UID string
	// Trust names the set of CAs that was trusted when the pod was created; empty if that is
	// not known.
	Trust string
	// Accepts is true if the CAs that its member read when it started verify the certificates
	// that the other members show now.
	Accepts bool
	// TrustsCA is true if the present CA is one of those that its member read when it started.
	TrustsCA bool
	// TrustsPrevious is true if one of them has signed the present CA.
	TrustsPrevious bool
	// Running is true while etcd runs in it, and HasPVC if its data outlives the pod.
	Running, HasPVC bool
	// Notified is true if the last certificates that the kubelet of the pod was notified of are
	// known, and Refreshed is true if these are the present ones.
	Notified, Refreshed bool
}

// FirstUnusable returns the first certificate that cannot be used, or nil. A certificate whose
// Secret is not owned by the cluster comes first.
func (o *Observed) FirstUnusable() *Certificate {
	if c := o.conflictingSecret(); c != nil {
		return c
	}
	return o.first(func(c *Certificate) bool { return c.State != Usable })
}

// FirstBlocking returns the certificate to name while one that is needed cannot be used, or nil.
// Needed are those that pods mount, and one that members accept from the controller. Without
// any other certificate the members are still kept as declared.
func (o *Observed) FirstBlocking() *Certificate {
	blocks := o.first(func(c *Certificate) bool {
		switch c.Use {
		case v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer:
			return c.State != Usable
		case v1beta2.CertificateUseOperator:
			return c.State != Usable && !o.CanAuthenticate
		case v1beta2.CertificateUseCA, v1beta2.CertificateUseClient:
		}
		return false
	})
	if blocks == nil {
		return nil
	}
	return o.FirstUnusable() // the CA comes first: nothing is issued without it
}

// HasUsableCA is true if the controller can sign certificates for the cluster.
func (o *Observed) HasUsableCA() bool {
	ca := o.certificateOfCA()
	return ca != nil && ca.State == Usable
}

// certificateOfCA returns the certificate of the CA, or nil if the controller issues none.
func (o *Observed) certificateOfCA() *Certificate {
	return o.ofUse(v1beta2.CertificateUseCA)
}

// conflictingSecret returns a certificate whose Secret exists and is not owned by the cluster, or nil.
func (o *Observed) conflictingSecret() *Certificate {
	return o.first(func(c *Certificate) bool { return c.State == NotOwned })
}

// ofUse returns the certificate for a use, or nil.
func (o *Observed) ofUse(use v1beta2.CertificateUse) *Certificate {
	return o.first(func(c *Certificate) bool { return c.Use == use })
}

// first returns the first certificate that is as asked for, or nil.
func (o *Observed) first(is func(*Certificate) bool) *Certificate {
	for i := range o.Certificates {
		if c := &o.Certificates[i]; is(c) {
			return c
		}
	}
	return nil
}
