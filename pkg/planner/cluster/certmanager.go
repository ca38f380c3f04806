// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// CertManager holds what is known of cert-manager, which issues the certificates of a
// cluster with spec.TLS.certManager.
type CertManager struct {
	// Served is true if this Kubernetes has the API.
	Served bool
	// Err says why the API could not be read. The other fields mean nothing then.
	Err string
	// Requests in the order of the certificates.
	Requests []CertificateRequest
}

// CertificateRequest is a Certificate object, which asks for the certificate for one use.
type CertificateRequest struct {
	Use   v1beta2.CertificateUse
	Name  string
	State ObjectState
	// Message is what cert-manager says of it.
	Message string
}

// RequestCertificate creates the Certificate object for a use, or repairs it.
type RequestCertificate struct{ Use v1beta2.CertificateUse }

func (RequestCertificate) action() {}

// request returns the Certificate objects to create or to repair now.
func (o *Observed) request(plan Plan) []Action {
	m := o.CertManager
	if m == nil || !m.Served || m.Err != "" || plan.Rule == RuleDeleting || plan.Rule == RulePaused || o.size() == 0 {
		return nil
	}
	var actions []Action
	for i := range m.Requests {
		if r := &m.Requests[i]; r.State == Missing || r.State == Drifted {
			actions = append(actions, RequestCertificate{Use: r.Use})
		}
	}
	return actions
}

// absent is true if this Kubernetes is known to have no cert-manager.
func (m *CertManager) absent() bool { return m != nil && !m.Served && m.Err == "" }

func (m *CertManager) request(use v1beta2.CertificateUse) *CertificateRequest {
	for i := range m.Requests {
		if m.Requests[i].Use == use {
			return &m.Requests[i]
		}
	}
	return nil
}

// noCertManager says so.
const noCertManager = "spec.TLS.certManager needs the API cert-manager.io/v1, which this Kubernetes does not have"

// explain says why a certificate cannot be used, and what would help.
func (o *Observed) explain(c *Certificate) (reason Reason, message, remediation string) {
	reason, message, remediation = c.reason(), c.Message, c.remediation()
	m := o.CertManager
	switch {
	case m == nil:
		return reason, message, remediation
	case m.Err != "":
		return reason, message + "; the controller cannot read the objects of cert-manager: " + m.Err, noActionNeeded
	case !m.Served && c.State == CertificateMissing:
		return ReasonCertManagerMissing, noCertManager + "; " + message, "Install cert-manager, which the controller finds within a minute, or create Secret " + c.Secret + "."
	case !m.Served:
		return reason, message + "; " + noCertManager, "Install cert-manager, or correct Secret " + c.Secret + "."
	}
	r := m.request(c.Use)
	switch {
	case r == nil:
		return reason, message, remediation
	case r.State == NotOwned:
		return reason, message + "; Certificate " + r.Name + " is not owned by this cluster", "Delete Certificate " + r.Name + ", or correct it."
	case r.State == Current && r.Message != "":
		return reason, message + "; cert-manager reports for Certificate " + r.Name + ": " + r.Message, "See kubectl describe certificate " + r.Name + "."
	default:
		return reason, message + "; Certificate " + r.Name + " requests it", noActionNeeded
	}
}
