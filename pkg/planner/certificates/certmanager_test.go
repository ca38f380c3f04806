// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"testing"
)

// request changes what is known of the Certificate object for a use.
func request(i int, change func(*Request)) edit {
	return func(o *Observed) { change(&o.CertManager.Requests[i]) }
}

func deleted(r *Request)    { r.Exists, r.Owned = false, false }
func edited(r *Request)     { r.Drifted = true }
func theirs(r *Request)     { r.Owned = false }
func taken(r *Request)      { deleted(r); r.SecretTaken = true }
func notServed(o *Observed) { o.CertManager = &CertManager{} }
func notAsked(o *Observed) {
	o.CertManager = &CertManager{Served: true, Err: "no right to get certificates", Requests: []Request{{}}}
}

func TestRequests(t *testing.T) {
	for _, test := range []struct {
		name  string
		edits []edit
		want  string
	}{
		{"nothing is due", nil, ""},
		{"a new cluster asks for everything", []edit{inState(0, Missing), inState(1, Missing), request(0, deleted), request(1, deleted)}, "request Peer, request Server"},
		{"requests that a user deleted or edited", []edit{request(0, deleted), request(1, edited)}, "request Peer, request Server"},
		{"a request that is not owned", []edit{request(0, theirs)}, ""},
		{"a request that is not owned and differs", []edit{request(0, theirs), request(0, edited)}, ""},
		{"a Secret that cert-manager has not written", []edit{request(0, taken), request(1, deleted)}, "request Server"},
		{"nothing while it is paused", []edit{request(0, deleted), paused}, ""},
		{"nothing while it is hibernated", []edit{request(0, deleted), func(o *Observed) { o.Hibernated = true }}, ""},
		{"nothing while it is deleted", []edit{request(0, deleted), func(o *Observed) { o.Deleting = true }}, ""},
		{"cert-manager is missing", []edit{notServed}, ""},
		{"cert-manager does not respond", []edit{notAsked}, ""},
	} {
		if got := describe(requested(test.edits...).Decide()); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestRequestIsCurrent(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Request)
		want   bool
	}{
		"as it should be": {func(*Request) {}, true},
		"deleted":         {deleted, false},
		"edited":          {edited, false},
		"not owned":       {theirs, false},
	} {
		if got := requested(request(0, test.change)).CertManager.Requests[0].IsCurrent(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestExplainCertManager(t *testing.T) {
	says := func(r *Request) { r.Message = "NoIssuer: there is none" }
	otherCA := certificate(0, func(c *Certificate) { c.OtherCA = true })
	withCA := certificate(0, func(c *Certificate) { c.EndsWithCA = true })
	noPods := func(o *Observed) { o.Pods = nil }
	const (
		ended = "it is wrong; a CA that verifies it has ended, and cert-manager does not renew a Certificate when it renews the CA of its issuer. "
		next  = "Renew the CA of the issuer if that has ended, too. Renew all Certificates of the cluster: cmctl renew s-Peer s-Server."
		pods  = next + " If members do not respond after some minutes, delete all pods at once. All data is on PVCs."
		place = next + " If members do not respond after some minutes, restart their containers in place. Delete no pod without a PVC: its data would go with it."
		keys  = "it is wrong; the Secrets of the cluster have CAs with different keys: the CA of the issuer has another key, and cert-manager has not issued every certificate since then. "
		renew = "Renew all Certificates of the cluster: cmctl renew s-Peer s-Server."
		again = renew + " Then delete all pods at once, because members that run do not trust that CA. All data is on PVCs."
		back  = "Give the CA of the issuer its former key again. " + renew
	)
	for _, test := range []struct {
		name    string
		state   State
		edits   []edit
		reason  string
		message string
		remedy  string
	}{
		{"not asked for yet", Missing, []edit{request(0, deleted)}, "SecretMissing", "it is wrong; Certificate s-Peer requests it", "No action needed"},
		{"not asked for before the end of the pause", Missing, []edit{request(0, deleted), paused}, "SecretMissing", "it is wrong; while spec.paused is true the controller does not write Certificate s-Peer, which requests it. Set spec.paused=false.", "Set spec.paused=false."},
		{"it is late", Missing, nil, "SecretMissing", "it is wrong; Certificate s-Peer requests it", "No action needed"},
		{"it says why", Missing, []edit{request(0, says)}, "SecretMissing",
			"it is wrong; cert-manager reports for Certificate s-Peer: NoIssuer: there is none", "See kubectl describe certificate s-Peer."},
		{"what it says of a request that was edited is old", Missing, []edit{request(0, says), request(0, edited)}, "SecretMissing",
			"it is wrong; Certificate s-Peer requests it", "No action needed"},
		{"another CA: renewed with pods on PVCs", Unusable, []edit{otherCA}, "CertificateUnusable", keys + again, again},
		{"another CA: renewed with a pod without a PVC", Unusable, []edit{otherCA, withoutPVC}, "CertificateUnusable", keys + back, back},
		{"another CA: renewed without pods", Unusable, []edit{otherCA, noPods}, "CertificateUnusable", keys + renew, renew},
		{"another CA: cert-manager reports a fault", Unusable, []edit{otherCA, request(0, says)}, "CertificateUnusable",
			"it is wrong; cert-manager reports for Certificate s-Peer: NoIssuer: there is none", "See kubectl describe certificate s-Peer."},
		{"another CA: a request that was edited is repaired first", Unusable, []edit{otherCA, request(0, edited)}, "CertificateUnusable",
			"it is wrong; Certificate s-Peer requests it", "No action needed"},
		{"it was not renewed", Expired, nil, "CertificateExpired", "it is wrong; cert-manager has not renewed Certificate s-Peer. See whether cert-manager runs, then renew it: cmctl renew s-Peer.",
			"See whether cert-manager runs, then renew it: cmctl renew s-Peer."},
		{"its CA has ended, with pods on PVCs", Expired, []edit{withCA}, "CertificateExpired", ended + pods, pods},
		{"its CA has ended, with a pod without a PVC", Expired, []edit{withCA, withoutPVC}, "CertificateExpired", ended + place, place},
		{"its CA has ended, without pods", Expired, []edit{withCA, noPods}, "CertificateExpired", ended + next, next},
		{"its CA has ended, and cert-manager reports a fault", Expired, []edit{withCA, request(0, says)}, "CertificateExpired",
			"it is wrong; cert-manager reports for Certificate s-Peer: NoIssuer: there is none", "See kubectl describe certificate s-Peer."},
		{"the issuer does not keep names", Unusable, nil, "CertificateUnusable", "it is wrong; for cert-manager Certificate s-Peer is ready",
			"The issuer of Certificate s-Peer must keep common names and wildcards"},
		{"a request that is not owned", Missing, []edit{request(0, theirs), request(0, says)}, "SecretMissing",
			"it is wrong; Certificate s-Peer is not owned by this cluster", "Delete Certificate s-Peer, or correct it."},
		{"a Secret that cert-manager has not written", Unusable, []edit{request(0, taken)}, "NameConflict",
			"it is wrong; Secret s-Peer exists, and cert-manager has not written it, so the controller does not create Certificate s-Peer, which would replace the content of that Secret",
			"Delete Secret s-Peer if nothing else needs it"},
		{"no request for this use", Missing, []edit{func(o *Observed) { o.CertManager.Requests = o.CertManager.Requests[1:] }}, "SecretMissing",
			"it is wrong", "Create Secret s-Peer in the namespace of the cluster. Members that run accept only a certificate of a CA that they trust. Their pods still have the former one mounted until the Secret exists: copy it first."},
		{"no such API", Missing, []edit{notServed}, "CertManagerMissing", noCertManager + "; it is wrong",
			"Install cert-manager, which the controller finds within a minute, or create Secret s-Peer."},
		{"no such API, and the certificate has ended", Expired, []edit{notServed}, "CertificateExpired", "it is wrong; " + noCertManager,
			"Install cert-manager, or correct Secret s-Peer."},
		{"no right", Missing, []edit{notAsked}, "SecretMissing",
			"it is wrong; the controller cannot read the objects of cert-manager: no right to get certificates", "No action needed"},
	} {
		o := requested(append(test.edits, inState(0, test.state))...)
		reason, message, remedy := o.Explain(&o.Certificates[0])
		if reason != test.reason || message != test.message || !strings.HasPrefix(remedy, test.remedy) {
			t.Errorf("%s: %s, %q, %q; want %s, %q, %q", test.name, reason, message, remedy, test.reason, test.message, test.remedy)
		}
	}
}
