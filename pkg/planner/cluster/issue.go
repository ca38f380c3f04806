// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// CA holds what is known of the CA that signs for a cluster whose certificates the
// controller issues, beyond its Certificate.
type CA struct {
	// Request is the last request for a new CA that was carried out.
	Request string
	// Overlap is true while an older CA is trusted too; Since says since when.
	Overlap bool
	Since   time.Time
	// CrossSigned is true if the older CA has signed the present one: then a client that trusts the
	// older one only takes what the present one signs.
	CrossSigned bool
}

// Issued holds what is known of a certificate that the controller issued, beyond its
// Certificate.
type Issued struct {
	// Signed is true if the present CA signed it.
	Signed bool
	// BundleMatches is true if it comes with exactly the CAs that are to be trusted.
	BundleMatches bool
	// SANsMatch is true if its common name and subject alternative names are the declared ones.
	SANsMatch bool
}

// IssueCA creates a CA. Request is the rotation request that it meets, if any.
type IssueCA struct {
	Request string
	Mode    CAIssue
}

// CAIssue says what happens to the CA before.
type CAIssue string

// Values of CAIssue.
const (
	// CAFirst: no usable CA exists.
	CAFirst CAIssue = "First"
	// CASuccessor: the new CA takes over from the present one, which stays trusted.
	CASuccessor CAIssue = "Successor"
)

// DropOldCAs ends the trust in every CA but the present one.
type DropOldCAs struct{}

// IssueCertificate issues the certificate for one use.
type IssueCertificate struct {
	Use    v1beta2.CertificateUse
	Change CertificateChange
}

// CertificateChange says what of a certificate is new.
type CertificateChange string

// Values of CertificateChange.
const (
	// ChangeAll: the certificate is signed again.
	ChangeAll CertificateChange = "All"
	// ChangeBundle: the certificate stays, and only what stands beside it changes.
	ChangeBundle CertificateChange = "Bundle"
)

// RefreshPod makes the kubelet look for the present content of the volumes of a pod.
type RefreshPod struct{ Name, UID string }

func (IssueCA) action()          {}
func (DropOldCAs) action()       {}
func (IssueCertificate) action() {}
func (RefreshPod) action()       {}

// clientGrace is how long an old CA stays trusted after every member has a certificate of
// the new one. Clients need that time: the controller does not see what they hold.
const clientGrace = 24 * time.Hour

// certificate returns the one for a use, or nil.
func (o *Observed) certificate(use v1beta2.CertificateUse) *Certificate {
	for i := range o.Certificates {
		if o.Certificates[i].Use == use {
			return &o.Certificates[i]
		}
	}
	return nil
}

// absent is true if there is nothing that could be used, ever.
func (c *Certificate) absent() bool {
	return c.State == CertificateMissing || c.State == CertificateIncomplete || c.State == CertificateUnusable
}

// issue returns the certificates to issue now, for a cluster that is not hibernated and
// has its own CA. Certificates are issued again long before they expire.
func (o *Observed) issue(plan Plan) []Action {
	ca := o.certificate(v1beta2.CertificateUseCA)
	if ca == nil || plan.Rule == RuleDeleting || o.size() == 0 || o.conflictingSecret() != nil {
		return nil
	}
	if plan.Rule == RulePaused {
		return o.renewWhilePaused(ca)
	}
	switch {
	case ca.State == CertificateUnknown || ca.State == CertificateNotYetValid:
		return nil
	case ca.State != CertificateUsable:
		return []Action{IssueCA{Request: o.rotation(), Mode: CAFirst}}
	case !o.CA.Overlap && o.allTrust() && (o.rotationAsked() || !o.Now.Before(ca.Renewal)):
		return []Action{IssueCA{Request: o.rotation(), Mode: CASuccessor}}
	}
	if actions := o.issueLeaves(); len(actions) > 0 {
		return actions
	}
	// A pod that is admitted now may present the certificate that was mounted when it was
	// prepared, until its kubelet looks at the Secret again.
	if o.CA.Overlap && !addsMember(plan) {
		return o.endOverlap()
	}
	return nil
}

// addsMember is true for a plan by which another member joins.
func addsMember(plan Plan) bool {
	return slices.ContainsFunc(plan.Actions, func(a Action) bool {
		_, adds := a.(AddMember)
		return adds
	})
}

// renewWhilePaused renews certificates that expire. A pause must not end the service of
// members that run. Nothing restarts for a renewal: etcd reads a new certificate by itself,
// and the CA that is replaced has cross-signed its successor. Everything else waits for the
// end of the pause.
func (o *Observed) renewWhilePaused(ca *Certificate) []Action {
	if !o.bootstrapped() || ca.State != CertificateUsable {
		return nil
	}
	if !o.CA.Overlap && o.allTrust() && !o.Now.Before(ca.Renewal) {
		return []Action{IssueCA{Request: o.CA.Request, Mode: CASuccessor}}
	}
	var actions []Action
	for i := range o.Certificates {
		c := &o.Certificates[i]
		if c.Use != v1beta2.CertificateUseCA && o.runsOut(c) {
			actions = append(actions, IssueCertificate{Use: c.Use, Change: ChangeAll})
		}
	}
	return actions
}

// runsOut is true for a certificate that has expired, or is to be renewed, if what replaces it
// is accepted.
func (o *Observed) runsOut(c *Certificate) bool {
	runsOut := c.State == CertificateExpired || c.State == CertificateUsable && !o.Now.Before(c.Renewal)
	return runsOut && (c.Issued.Signed || o.accepted())
}

// rotation is what the user asks for with an annotation.
func (o *Observed) rotation() string {
	return o.Cluster.Annotations[resources.AnnotationRotateCA]
}

// rotationAsked is true for a request for a new CA that was not carried out yet. A request
// that no longer exists has no effect, as after the state of the API was rolled back.
func (o *Observed) rotationAsked() bool {
	return o.rotation() != "" && o.rotation() != o.CA.Request
}

func (o *Observed) issueLeaves() []Action {
	var actions []Action
	for i := range o.Certificates {
		c := &o.Certificates[i]
		if c.Use == v1beta2.CertificateUseCA || c.State == CertificateUnknown {
			continue
		}
		if change, due := o.leafChange(c); due {
			actions = append(actions, IssueCertificate{Use: c.Use, Change: change})
		}
	}
	return actions
}

// leafChange returns what of a certificate that is not a CA is to be issued now.
func (o *Observed) leafChange(c *Certificate) (CertificateChange, bool) {
	due := c.absent() || c.State == CertificateExpired || !o.Now.Before(c.Renewal) || !c.Issued.SANsMatch
	switch {
	case due, !c.Issued.Signed && o.accepted():
		return ChangeAll, true
	case !c.Issued.BundleMatches && !c.Issued.Signed:
		// Every client and member accepts the certificate as it is, and not yet a
		// certificate that the present CA signs.
		return ChangeBundle, true
	default:
		return ChangeAll, !c.Issued.BundleMatches
	}
}

// accepted is true if every member accepts what the present CA signs: because the CA before
// it cross-signed it, or because each member has started since it is trusted.
func (o *Observed) accepted() bool {
	return o.CA.CrossSigned || o.allTrust()
}

// allTrust is true if every pod was started with the present set of trusted CAs.
func (o *Observed) allTrust() bool {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && p.Trust != o.Trust {
			return false
		}
	}
	return true
}

// endOverlap drops the old CA once nothing presents a certificate that it signed: no
// member on the wire, and no client for as long as clients are given.
func (o *Observed) endOverlap() []Action {
	if !o.Etcd.Linearizable || o.CA.Since.IsZero() || !o.clientsFollow() {
		return nil
	}
	var refresh []Action
	for i := range o.Pods {
		p := &o.Pods[i]
		if !p.Owned || p.gone() {
			continue
		}
		if !p.Refreshed {
			refresh = append(refresh, RefreshPod{Name: p.Name, UID: p.UID})
		}
	}
	if len(refresh) > 0 {
		return refresh
	}
	if !o.allShow() {
		return nil
	}
	dropped := o.Cluster.Annotations[resources.AnnotationDropOldCA]
	released := dropped != "" && (dropped == o.CA.Request || dropped == o.rotation())
	if !released && o.Now.Sub(o.CA.Since) < clientGrace {
		return nil
	}
	return []Action{DropOldCAs{}}
}

// refresh makes the kubelets look at once when certificates of another issuer were renewed.
// By themselves they look every minute or so.
func (o *Observed) refresh(plan Plan) []Action {
	if o.CA != nil || o.Trust == "" || plan.Rule == RuleDeleting || plan.Rule == RulePaused || o.unusable() != nil || o.untrusting() != nil {
		return nil
	}
	var actions []Action
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && p.Certificates != "" && !p.Refreshed {
			actions = append(actions, RefreshPod{Name: p.Name, UID: p.UID})
		}
	}
	return actions
}

// allShow is true if every member was seen to show certificates of the present CA, at both
// its listeners.
func (o *Observed) allShow() bool {
	for i := range o.Etcd.Members {
		if !o.Etcd.Members[i].CertificateVerified {
			return false
		}
	}
	return len(o.Etcd.Members) > 0
}

// conflictingSecret returns a certificate whose Secret exists and is not owned by the cluster, or nil.
func (o *Observed) conflictingSecret() *Certificate {
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.State == CertificateNotOwned {
			return c
		}
	}
	return nil
}

// distrusts is true for a pod that must start again because the set of trusted CAs has
// changed. etcd reads its own certificate for each connection, and its trusted CAs only
// when it starts. While an older CA is still trusted that cross-signed the present one, no
// restart is needed yet: one restart follows after the older CA was dropped.
//
// A pod that does not say what it trusts starts again only where the certificates are issued
// here. There it would keep every later CA from being issued.
func (o *Observed) distrusts(p *Pod) bool {
	if o.Trust == "" || p.Trust == o.Trust {
		return false
	}
	if o.CA == nil {
		return p.Trust != "" && o.untrusting() == nil
	}
	return !o.CA.Overlap || !o.CA.CrossSigned
}

// untrusting returns a pod that is not known to accept the present certificates, or nil.
// These were put in place before their CA was trusted. That pod rejects a member that
// restarts now, so no member restarts.
func (o *Observed) untrusting() *Pod {
	if o.CA != nil || o.Trust == "" {
		return nil
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && p.Trust != "" && p.Trust != o.Trust && !p.Accepts {
			return p
		}
	}
	return nil
}
