// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Authority is what is known of the authority that signs for a cluster whose
// certificates are issued here, besides what its Certificate says.
type Authority struct {
	// Request is the last request for another authority that was met.
	Request string
	// Overlap is true while an older authority is trusted besides, since Since.
	Overlap bool
	Since   time.Time
	// Vouched is true if the older one vouched for the present one: then who trusts the
	// older one only takes what the present one signs.
	Vouched bool
}

// Issued is what is known of a certificate that was issued here, besides what its
// Certificate says.
type Issued struct {
	// Signed is true if the present authority signed it.
	Signed bool
	// Trusts is true if it comes with exactly the authorities that shall be trusted.
	Trusts bool
	// Names is true if it is good for everything that it shall be good for.
	Names bool
}

// IssueAuthority makes an authority. If Request is not empty it is what asked for it.
// If Renew is true it takes over from the present one, which stays trusted.
type IssueAuthority struct {
	Request string
	Renew   bool
}

// DropAuthority ends the trust in every authority but the present one.
type DropAuthority struct{}

// IssueCertificate issues the certificate for one use. If Keep is true it is not signed
// anew, and only the authorities that come with it change.
type IssueCertificate struct {
	Use  v1beta2.CertificateUse
	Keep bool
}

// RefreshPod makes the kubelet look for the present content of the volumes of a pod.
type RefreshPod struct{ Name, UID string }

func (IssueAuthority) action()   {}
func (DropAuthority) action()    {}
func (IssueCertificate) action() {}
func (RefreshPod) action()       {}

// clientGrace is how long an old authority stays trusted after every member has a
// certificate of the new one, for the clients: they do not tell what they hold.
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

// issue returns what is to be issued now: for a cluster that does not sleep, with an
// authority of its own. The certificates that run out are issued again long before.
func (o *Observed) issue(plan Plan) []Action {
	authority := o.certificate(v1beta2.CertificateUseAuthority)
	if authority == nil || plan.Rule == "deleting" || o.size() == 0 || o.takenSecret() != nil {
		return nil
	}
	if plan.Rule == "paused" {
		return o.renewWhilePaused(authority)
	}
	switch {
	case authority.State == CertificateUnknown || authority.State == CertificateNotYetValid:
		return nil
	case authority.State != CertificateUsable:
		return []Action{IssueAuthority{Request: o.rotation()}}
	case !o.Authority.Overlap && o.allTrust() && (o.rotationAsked() || !o.Now.Before(authority.Renewal)):
		return []Action{IssueAuthority{Request: o.rotation(), Renew: true}}
	}
	if actions := o.issueLeaves(); len(actions) > 0 {
		return actions
	}
	if o.Authority.Overlap {
		return o.endOverlap()
	}
	return nil
}

// renewWhilePaused renews what runs out. A pause must not end the service of members that
// run, and nothing restarts for it: etcd reads a new certificate by itself, and the CA that
// is replaced has cross-signed its successor. Everything else waits for the end of the pause.
func (o *Observed) renewWhilePaused(authority *Certificate) []Action {
	if !o.bootstrapped() || authority.State != CertificateUsable {
		return nil
	}
	if !o.Authority.Overlap && o.allTrust() && !o.Now.Before(authority.Renewal) {
		return []Action{IssueAuthority{Request: o.Authority.Request, Renew: true}}
	}
	var actions []Action
	for i := range o.Certificates {
		c := &o.Certificates[i]
		runsOut := c.State == CertificateExpired || c.State == CertificateUsable && !o.Now.Before(c.Renewal)
		if c.Use != v1beta2.CertificateUseAuthority && runsOut && (c.Issued.Signed || o.accepted()) {
			actions = append(actions, IssueCertificate{Use: c.Use})
		}
	}
	return actions
}

// rotation is what the user asks for with an annotation.
func (o *Observed) rotation() string {
	return o.Cluster.Annotations[resources.AnnotationRotateAuthority]
}

// rotationAsked is true of a request that was not met yet. That one is there no more, as
// after the API was brought back from before it, asks for nothing.
func (o *Observed) rotationAsked() bool {
	return o.rotation() != "" && o.rotation() != o.Authority.Request
}

func (o *Observed) issueLeaves() []Action {
	var actions []Action
	for i := range o.Certificates {
		c := &o.Certificates[i]
		if c.Use == v1beta2.CertificateUseAuthority || c.State == CertificateUnknown {
			continue
		}
		due := c.absent() || c.State == CertificateExpired || !o.Now.Before(c.Renewal) || !c.Issued.Names
		switch {
		case due, !c.Issued.Signed && o.accepted():
			actions = append(actions, IssueCertificate{Use: c.Use})
		case !c.Issued.Trusts:
			// Everybody who sees the certificate takes it as it is, and not yet one that the
			// present authority signs.
			actions = append(actions, IssueCertificate{Use: c.Use, Keep: !c.Issued.Signed})
		}
	}
	return actions
}

// accepted is true if every member takes what the present authority signs: because the
// one before vouched for it, or because each has started since it is trusted.
func (o *Observed) accepted() bool {
	return o.Authority.Vouched || o.allTrust()
}

// allTrust is true if every pod was started with the authorities of now.
func (o *Observed) allTrust() bool {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && p.Trust != o.Trust {
			return false
		}
	}
	return true
}

// endOverlap drops the old authority once nobody shows anything that it signed: no
// member on the wire, and no client for as long as clients are given.
func (o *Observed) endOverlap() []Action {
	if !o.Etcd.Linearizable || o.Authority.Since.IsZero() {
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
	dropped := o.Cluster.Annotations[resources.AnnotationDropAuthority]
	released := dropped != "" && (dropped == o.Authority.Request || dropped == o.rotation())
	if !released && o.Now.Sub(o.Authority.Since) < clientGrace {
		return nil
	}
	return []Action{DropAuthority{}}
}

// refresh makes the kubelets look at once when somebody else has issued something anew.
// By themselves they look every minute or so.
func (o *Observed) refresh(plan Plan) []Action {
	if o.Authority != nil || o.Trust == "" || plan.Rule == "deleting" || plan.Rule == "paused" || o.unusable() != nil || o.stranger() != nil {
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

// allShow is true if every member was seen to show certificates of the present
// authority, at both its listeners.
func (o *Observed) allShow() bool {
	for i := range o.Etcd.Members {
		if !o.Etcd.Members[i].Shows {
			return false
		}
	}
	return len(o.Etcd.Members) > 0
}

// takenSecret returns a certificate whose secret belongs to somebody else, or nil.
func (o *Observed) takenSecret() *Certificate {
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.State == CertificateForeign {
			return c
		}
	}
	return nil
}

// distrusts is true for a pod that must start again because the authorities that are to
// be trusted have changed: etcd reads its own certificate for each connection, and whom
// it trusts only when it starts. While an older one that vouched for the present one is
// trusted besides, nothing hangs on it yet: one restart, after it was dropped, does.
func (o *Observed) distrusts(p *Pod) bool {
	if p.Trust == "" || o.Trust == "" || p.Trust == o.Trust {
		return false
	}
	if o.Authority == nil {
		return o.stranger() == nil
	}
	return !o.Authority.Overlap || !o.Authority.Vouched
}

// stranger returns a pod that is not known to take the certificates that others show
// now, or nil. Somebody has put them there before their authority was trusted: a member
// that restarts now is refused by it, so nobody restarts.
func (o *Observed) stranger() *Pod {
	if o.Authority != nil || o.Trust == "" {
		return nil
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && p.Trust != "" && p.Trust != o.Trust && !p.Accepts {
			return p
		}
	}
	return nil
}
