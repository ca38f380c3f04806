// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

// CertManager is what is known of who issues the certificates of a cluster with
// spec.TLS.certManager.
type CertManager struct {
	// Served is true if this Kubernetes has the API.
	Served bool
	// Err says why it could not be asked; what else stands here is worth nothing then.
	Err string
	// Requests in the order of the certificates.
	Requests []Request
}

// Request is a Certificate object, which asks for the certificate for one use.
type Request struct {
	Use   v1beta2.CertificateUse
	Name  string
	State ObjectState
	// Says is what cert-manager says of it.
	Says string
}

// RequestCertificate makes the Certificate object for a use, or makes it again what it
// shall be.
type RequestCertificate struct{ Use v1beta2.CertificateUse }

func (RequestCertificate) action() {}

// request returns what cert-manager is to be asked for now.
func (o *Observed) request(plan Plan) []Action {
	m := o.CertManager
	if m == nil || !m.Served || m.Err != "" || plan.Rule == "deleting" || plan.Rule == "paused" || o.size() == 0 {
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

// absent is true if it is known that there is nobody to issue anything.
func (m *CertManager) absent() bool { return m != nil && !m.Served && m.Err == "" }

func (m *CertManager) request(use v1beta2.CertificateUse) *Request {
	for i := range m.Requests {
		if m.Requests[i].Use == use {
			return &m.Requests[i]
		}
	}
	return nil
}

// reasonNoCertManager is that nobody can issue what is asked for.
const reasonNoCertManager = "CertManagerMissing"

// noCertManager says so.
const noCertManager = "spec.TLS.certManager needs the API cert-manager.io/v1, which this Kubernetes does not have"

// explain says why a certificate cannot be used, and what would help.
func (o *Observed) explain(c *Certificate) (reason, message, unblock string) {
	reason, message, unblock = c.reason(), c.Message, c.unblock()
	m := o.CertManager
	switch {
	case m == nil:
		return reason, message, unblock
	case m.Err != "":
		return reason, message + "; cert-manager cannot be asked for it: " + m.Err, "nothing, unless it lasts"
	case !m.Served && c.State == CertificateMissing:
		return reasonNoCertManager, noCertManager + "; " + message, "install cert-manager, which is noticed within a minute, or make secret " + c.Secret
	case !m.Served:
		return reason, message + "; " + noCertManager, "install cert-manager, or correct secret " + c.Secret
	}
	r := m.request(c.Use)
	switch {
	case r == nil:
		return reason, message, unblock
	case r.State == Foreign:
		return reason, message + "; Certificate " + r.Name + " belongs to somebody else", "delete Certificate " + r.Name + ", or correct it"
	case r.State == Current && r.Says != "":
		return reason, message + "; cert-manager says of Certificate " + r.Name + ": " + r.Says, "see kubectl describe certificate " + r.Name
	default:
		return reason, message + "; Certificate " + r.Name + " asks for it", "nothing, unless it lasts"
	}
}
