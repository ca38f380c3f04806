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
		{"and waits for it", 3, "", edits(unresponsive, requested(noSecret(1))), "certificates: wait SecretMissing"},
		{"a request that a user deleted or edited", 3, "a b c", edits(requested(requestIs(0, requestMissing, ""), requestIs(1, requestDrifted, ""))),
			"steady: RequestCertificate Peer, RequestCertificate Server"},
		{"a request that is not owned", 3, "a b c", edits(requested(requestIs(0, requestNotOwned, ""))), "steady"},
		{"nothing while it is paused", 3, "a b c", edits(requested(requestIs(0, requestMissing, "")), pausedSpec), "paused"},
		{"nothing while it sleeps", 0, "", edits(requested(requestIs(0, requestMissing, ""))), "hibernate"},
		{"cert-manager is missing", 3, "", edits(unresponsive, requested(noSecret(0), notServed)), "certificates: wait CertManagerMissing"},
		{"cert-manager is missing, and the secrets exist", 3, "a b c", edits(requested(notServed)), "steady"},
		{"cert-manager cannot be reached", 3, "", edits(unresponsive, requested(noSecret(0), notAsked)), "certificates: wait SecretMissing"},
	})
}

func TestCertManagerInStatus(t *testing.T) {
	for _, test := range []struct {
		name        string
		changes     []func(*Observed)
		status      corev1.ConditionStatus
		reason      string
		says        string
		remediation string
	}{
		{"all is well", nil, corev1.ConditionTrue, "AllUsable", "", ""},
		{"not asked for yet", edits(noSecret(0), requestIs(0, requestMissing, "")), corev1.ConditionFalse, "SecretMissing", "Certificate c-peer-tls requests it", ""},
		{"it says why", edits(noSecret(0), requestIs(0, requestCurrent, "NoIssuer: there is none")), corev1.ConditionFalse, "SecretMissing",
			"cert-manager reports for Certificate c-peer-tls: NoIssuer: there is none", "kubectl describe certificate c-peer-tls"},
		{"a request that is not owned", edits(noSecret(0), requestIs(0, requestNotOwned, "")), corev1.ConditionFalse, "SecretMissing", "is not owned by this cluster", "Delete Certificate c-peer-tls"},
		{"no such API", edits(noSecret(0), notServed), corev1.ConditionFalse, "CertManagerMissing", "cert-manager.io/v1", "Install cert-manager"},
		{"no such API any more", edits(notServed), corev1.ConditionTrue, "CertManagerMissing", "nothing renews", ""},
		{"no such API, and a certificate has ended", edits(notServed, func(o *Observed) { o.Certificates[0].State = certificates.Expired }),
			corev1.ConditionFalse, "CertificateExpired", "cert-manager.io/v1", "Install cert-manager"},
		{"no right", edits(noSecret(0), notAsked), corev1.ConditionFalse, "SecretMissing", "no right to get certificates", "No action needed"},
	} {
		o := observed(t, 3, "a b c", requested(test.changes...))
		status := Status(o, Decide(o))
		for _, c := range status.Conditions {
			if c.Type == v1beta2.ClusterConditionCertificatesValid && (c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says)) {
				t.Errorf("%s: CertificatesValid is %s (%s: %s), want %s (%s: %s)", test.name, c.Status, c.Reason, c.Message, test.status, test.reason, test.says)
			}
		}
		if b := status.BlockedBy; (b != nil) != (test.status == corev1.ConditionFalse) || (b != nil && !strings.Contains(b.Unblock, test.remediation)) {
			t.Errorf("%s: blocked by %+v, want %q", test.name, b, test.remediation)
		}
	}
}
