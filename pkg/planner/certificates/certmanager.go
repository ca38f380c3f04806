// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// CertManager holds what is known of cert-manager, which issues the certificates of a
// cluster with spec.TLS.certManager.
type CertManager struct {
	// Served is true if this Kubernetes has the API.
	Served bool
	// Err says why the API could not be read. The other fields mean nothing then.
	Err string
	// Requests in the order of the certificates.
	Requests []Request
}

// Request is a Certificate object, which asks cert-manager for the certificate for one use.
type Request struct {
	Use  v1beta2.CertificateUse
	Name string
	// Exists is true if an object of that name exists. Owned is true if the cluster owns it, and
	// Drifted if a field differs from what it should be.
	Exists, Owned, Drifted bool
	// SecretTaken is true if no object of that name exists, and a Secret of that name does that
	// cert-manager has not written. It would replace the content of that Secret.
	SecretTaken bool
	// Message is what cert-manager says of it; empty if that is ready.
	Message string
}

// IsCurrent is true if the object is as it should be.
func (r *Request) IsCurrent() bool { return r.Exists && r.Owned && !r.Drifted }

// requests returns the uses whose Certificate objects are to be created or repaired now.
func (o *Observed) requests() []v1beta2.CertificateUse {
	m := o.CertManager
	if m == nil || !m.Served || m.Err != "" || o.Deleting || o.Paused || o.Hibernated {
		return nil
	}
	var uses []v1beta2.CertificateUse
	for i := range m.Requests {
		if r := &m.Requests[i]; !r.Exists && !r.SecretTaken || r.Owned && r.Drifted {
			uses = append(uses, r.Use)
		}
	}
	return uses
}

// taken returns the first request whose Secret is not one of cert-manager, or nil.
func (m *CertManager) taken() *Request {
	if m == nil {
		return nil
	}
	if i := slices.IndexFunc(m.Requests, func(r Request) bool { return r.SecretTaken }); i >= 0 {
		return &m.Requests[i]
	}
	return nil
}

// explainTaken says why the controller does not ask cert-manager to write a Secret.
func (r *Request) explainTaken() (message, remediation string) {
	return "Secret " + r.Name + " exists, and cert-manager has not written it, so the controller does not create Certificate " + r.Name +
		", which would replace the content of that Secret", "Delete Secret " + r.Name + " if nothing else needs it, or give the cluster another name."
}

// isAbsent is true if this Kubernetes is known to have no cert-manager.
func (m *CertManager) isAbsent() bool { return m != nil && !m.Served && m.Err == "" }

// request returns the one for a use, or nil.
func (m *CertManager) request(use v1beta2.CertificateUse) *Request {
	for i := range m.Requests {
		if m.Requests[i].Use == use {
			return &m.Requests[i]
		}
	}
	return nil
}

// noCertManager says so.
const noCertManager = "spec.TLS.certManager needs the API cert-manager.io/v1, which this Kubernetes does not have"

// Explain says why a certificate cannot be used, and what would help.
func (o *Observed) Explain(c *Certificate) (reason, message, remediation string) {
	reason, message, remediation = c.Reason(), c.Message, o.remediation(c)
	m := o.CertManager
	switch {
	case o.CA != nil:
		return o.explainIssued(c)
	case m == nil:
		return reason, message, remediation
	case m.Err != "":
		return reason, message + "; the controller cannot read the objects of cert-manager: " + m.Err, diagnosis.NoActionYet
	case !m.Served && c.State == Missing:
		return ReasonCertManagerMissing, noCertManager + "; " + message, "Install cert-manager, which the controller finds within a minute, or create Secret " + c.Secret + "."
	case !m.Served:
		return reason, message + "; " + noCertManager, "Install cert-manager, or correct Secret " + c.Secret + "."
	}
	r := m.request(c.Use)
	switch {
	case r == nil:
		return reason, message, remediation
	case r.SecretTaken:
		why, remedy := r.explainTaken()
		return ReasonNameConflict, message + "; " + why, remedy
	case r.Exists && !r.Owned:
		return reason, message + "; Certificate " + r.Name + " is not owned by this cluster", "Delete Certificate " + r.Name + ", or correct it."
	case r.IsCurrent() && r.Message != "":
		return reason, message + "; cert-manager reports for Certificate " + r.Name + ": " + r.Message, "See kubectl describe certificate " + r.Name + "."
	case r.IsCurrent() && c.OtherCA:
		why, remedy := o.explainOtherCA()
		return reason, message + "; " + why + " " + remedy, remedy
	case r.IsCurrent() && c.State == Expired:
		why, remedy := o.explainExpired(c, r)
		return reason, message + "; " + why + " " + remedy, remedy
	case r.IsCurrent() && (c.State == Incomplete || c.State == Unusable):
		return reason, message + "; for cert-manager Certificate " + r.Name + " is ready",
			"The issuer of Certificate " + r.Name + " must keep common names and wildcards, and must provide ca.crt. See kubectl describe certificate " + r.Name + "."
	case o.Paused && !r.IsCurrent():
		return reason, message + "; while spec.paused is true the controller does not write Certificate " + r.Name + ", which requests it. " + endPause, endPause
	default:
		return reason, message + "; Certificate " + r.Name + " requests it", diagnosis.NoActionYet
	}
}

// explainExpired says why a certificate has ended for which a request exists that is as it should be, and what helps.
func (o *Observed) explainExpired(c *Certificate, r *Request) (why, remedy string) {
	if !c.EndsWithCA {
		return "cert-manager has not renewed Certificate " + r.Name + ".", "See whether cert-manager runs, then renew it: cmctl renew " + r.Name + "."
	}
	return "a CA that verifies it has ended, and " + renewsLater + ".", "Renew the CA of the issuer if that has ended, too. " + strings.TrimSpace(o.renewAll()+" "+o.restartForCA())
}

// renewsLater says why a certificate may end with a CA of before. The issuer signs what outlives its CA, and the Secret of
// a certificate gets the next certificate of the CA only with the next renewal.
const renewsLater = "cert-manager does not renew a Certificate when it renews the CA of its issuer"

// renewAll is the command that has cert-manager issue all certificates of the cluster again.
func (o *Observed) renewAll() string {
	names := make([]string, 0, len(o.CertManager.Requests))
	for i := range o.CertManager.Requests {
		names = append(names, o.CertManager.Requests[i].Name)
	}
	return "Renew all Certificates of the cluster: cmctl renew " + strings.Join(names, " ") + "."
}

// explainOtherCA says what has happened to a certificate whose CA the other Secrets do not have, and what helps. etcd reads
// its trusted CAs only when it starts. So members that run reject what the CA of today signs.
func (o *Observed) explainOtherCA() (why, remedy string) {
	remedy = o.renewAll()
	switch {
	case slices.ContainsFunc(o.Pods, func(p Pod) bool { return !p.HasPVC }):
		// Members without PVCs cannot restart together.
		remedy = "Give the CA of the issuer its former key again. " + remedy
	case len(o.Pods) > 0:
		remedy += " Then delete all pods at once, because members that run do not trust that CA. All data is on PVCs."
	}
	return "the Secrets of the cluster have CAs with different keys: the CA of the issuer has another key, and cert-manager has not issued every certificate since then.", remedy
}
