// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
)

// requested gives the cluster certificates that cert-manager issues, and changes
// something about that.
func requested(changes ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		o.CertManager = &certificates.CertManager{Served: true}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
			name := "c-" + strings.ToLower(string(use)) + "-tls"
			o.Certificates = append(o.Certificates, certificates.Certificate{
				Use: use, Secret: name, State: certificates.Usable, NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(3 * time.Hour),
			})
			o.CertManager.Requests = append(o.CertManager.Requests, certificates.Request{Use: use, Name: name, Exists: true, Owned: true})
		}
		for _, change := range changes {
			change(o)
		}
	}
}

func noSecret(i int) func(*Observed) {
	return func(o *Observed) {
		c := &o.Certificates[i]
		c.State, c.Message = certificates.Missing, "secret "+c.Secret+" does not exist"
	}
}

// requestState compares the Certificate object for a use with what it should be.
type requestState struct{ exists, owned, drifted bool }

var (
	requestMissing  = requestState{}
	requestCurrent  = requestState{exists: true, owned: true}
	requestDrifted  = requestState{exists: true, owned: true, drifted: true}
	requestNotOwned = requestState{exists: true}
)

func requestIs(i int, state requestState, says string) func(*Observed) {
	return func(o *Observed) {
		r := &o.CertManager.Requests[i]
		r.Exists, r.Owned, r.Drifted, r.Message = state.exists, state.owned, state.drifted, says
	}
}

func notServed(o *Observed) { o.CertManager = &certificates.CertManager{} }

func notAsked(o *Observed) {
	o.CertManager = &certificates.CertManager{Err: "no right to get certificates"}
}

func TestRequesting(t *testing.T) {
	checkDecisions(t, []decision{
		{"nothing is due", 3, "a b c", edits(requested()), "steady"},
		{"a new cluster asks for everything", 3, "", edits(unresponsive, requested(noSecret(0), noSecret(1), requestIs(0, requestMissing, ""), requestIs(1, requestMissing, ""))),
			"certificates: RequestCertificate Peer, RequestCertificate Server, wait SecretMissing"},
		{"a new cluster waits for the certificates that it has requested", 3, "", edits(unresponsive, requested(noSecret(1))), "certificates: wait SecretMissing"},
		{"a request that a user deleted or edited", 3, "a b c", edits(requested(requestIs(0, requestMissing, ""), requestIs(1, requestDrifted, ""))),
			"steady: RequestCertificate Peer, RequestCertificate Server"},
		{"nothing while it is paused", 3, "a b c", edits(requested(requestIs(0, requestMissing, "")), pausedSpec), "paused"},
		{"nothing while it sleeps", 0, "", edits(requested(requestIs(0, requestMissing, ""))), "hibernate"},
		{"cert-manager is missing", 3, "", edits(unresponsive, requested(noSecret(0), notServed)), "certificates: wait CertManagerMissing"},
		{"cert-manager cannot be reached", 3, "", edits(unresponsive, requested(noSecret(0), notAsked)), "certificates: wait SecretMissing"},
	})
}

// TestCertManagerInStatus: a certificate that cert-manager has not issued blocks, and the status
// says what cert-manager reports and what would help.
func TestCertManagerInStatus(t *testing.T) {
	status := statusOf(observed(t, 3, "a b c", requested(noSecret(0), requestIs(0, requestCurrent, "NoIssuer: there is none"))))
	c := find(status, v1beta2.ClusterConditionCertificatesValid)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != "SecretMissing" || !strings.Contains(c.Message, "NoIssuer: there is none") {
		t.Errorf("CertificatesValid is %+v", c)
	}
	if b := status.BlockedBy; b == nil || b.Reason != "SecretMissing" || b.Unblock != "See kubectl describe certificate c-peer-tls." {
		t.Errorf("blocked by %+v", b)
	}
	status = statusOf(observed(t, 3, "a b c", requested(notServed)))
	if c := find(status, v1beta2.ClusterConditionCertificatesValid); c.Status != corev1.ConditionTrue || c.Reason != "CertManagerMissing" || status.BlockedBy != nil {
		t.Errorf("without cert-manager CertificatesValid is %+v, blocked by %+v", c, status.BlockedBy)
	}
}
