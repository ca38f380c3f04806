// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func renewNow(c *Certificate)     { c.Renewal = testNow }
func endsWithCA(c *Certificate)   { c.Renewal = time.Time{} }
func otherSANs(c *Certificate)    { c.Issued.SANsMatch = false }
func otherBundle(c *Certificate)  { c.Issued.BundleMatches = false }
func unsigned(c *Certificate)     { c.Issued.Signed, c.Issued.BundleMatches = false, false }
func signedBefore(c *Certificate) { c.Issued.Signed = false }
func overlap(o *Observed)         { o.CA.Overlap = true }
func notCrossSigned(o *Observed)  { o.CA.CrossSigned = false }
func longAgo(o *Observed)         { o.CA.Since = testNow.Add(-clientGrace) }
func paused(o *Observed)          { o.Paused = true }
func rotationAsked(o *Observed)   { o.RotateCA = "1" }
func rotationCarried(o *Observed) { o.CA.Request = "1" }
func oldCA(c *Certificate)        { c.Renewal, c.NotAfter = testNow, testNow.Add(50*time.Hour) }
func requestRounds(n int) edit    { return func(o *Observed) { o.RequestRounds = n } }
func renewalRounds(n int) edit    { return func(o *Observed) { o.RenewalRounds = n } }
func notRefreshed(o *Observed)    { o.Pods[1].Refreshed = false }

func unused(o *Observed)  { o.Bootstrapped, o.Pods = false, nil }
func kept(o *Observed)    { o.CA.Kept = true }
func lost(c *Certificate) { c.State, c.Issued = Missing, Issued{} }
func noneRuns(o *Observed) {
	for i := range o.Pods {
		o.Pods[i].Running = false
	}
}

// client adds the certificate of a client.
func client(change func(*Certificate)) edit {
	return func(o *Observed) {
		c := Certificate{Use: v1beta2.CertificateUseClient, State: Usable, Issued: Issued{Signed: true, BundleMatches: true, SANsMatch: true}}
		change(&c)
		o.Clients = append(o.Clients, c)
	}
}

// operator adds the certificate of the controller.
func operator(change func(*Certificate)) edit {
	return func(o *Observed) {
		c := Certificate{Use: v1beta2.CertificateUseOperator, State: Usable, Renewal: testNow.Add(time.Hour), Issued: Issued{Signed: true, BundleMatches: true, SANsMatch: true}}
		change(&c)
		o.Certificates = append(o.Certificates, c)
	}
}

func TestIssue(t *testing.T) {
	for _, test := range []struct {
		name string
		o    *Observed
		want string
	}{
		{"nothing is due", issued(), ""},
		{"without TLS", &Observed{}, ""},
		{"a CA comes before what it signs", issued(inState(0, Missing), inState(1, Missing), inState(2, Missing)), "First CA"},
		{"a CA that cannot be used", issued(inState(0, Unusable)), "First CA"},
		{"a CA that has expired meets a request", issued(inState(0, Expired), rotationAsked), "First CA 1"},
		{"a CA that is not known", issued(inState(0, Unknown), inState(1, Missing)), ""},
		{"a CA that is valid later", issued(inState(0, NotYetValid), inState(1, Missing)), ""},
		{"a CA that is valid later, and no member was started", issued(inState(0, NotYetValid), inState(1, NotYetValid), unused), "Again CA"},
		{"a CA that is valid later, and a bootstrap member runs", issued(inState(0, NotYetValid), inState(1, NotYetValid), func(o *Observed) { o.Bootstrapped = false }), ""},
		{"a CA that is valid later, and members have served", issued(inState(0, NotYetValid), inState(1, NotYetValid), func(o *Observed) { o.Pods = nil }), ""},
		{"a CA that is valid later while it is paused", issued(inState(0, NotYetValid), unused, paused), ""},
		{"a CA whose Secret is not owned", issued(inState(0, NotOwned), inState(1, Missing)), ""},
		{"the certificates of a new cluster are issued after its CA", issued(inState(1, Missing), inState(2, Missing)), "issue Peer All, issue Server All"},
		{"a certificate that a user deleted", issued(inState(2, Missing)), "issue Server All"},
		{"a Secret without an entry", issued(inState(2, Incomplete)), "issue Server All"},
		{"a certificate that a user damaged", issued(inState(2, Unusable)), "issue Server All"},
		{"a certificate that has expired", issued(inState(2, Expired)), "issue Server All"},
		{"a certificate that is not known", issued(inState(1, Unknown), certificate(1, renewNow)), ""},
		{"a Secret that is not owned holds up no other certificate", issued(inState(1, NotOwned), inState(2, Missing)), "issue Server All"},
		{"a certificate is due for renewal", issued(certificate(1, renewNow)), "issue Peer All"},
		{"a certificate ends with its CA", issued(overlap, certificate(1, endsWithCA)), ""},
		{"a certificate ends with its CA while it is paused", issued(overlap, certificate(1, endsWithCA), paused), ""},
		{"a certificate is not good for all names", issued(certificate(1, otherSANs)), "issue Peer All"},
		{"a certificate lacks a CA in its bundle", issued(certificate(1, otherBundle)), "issue Peer All"},
		{"nothing while it is hibernated", issued(inState(1, Missing), func(o *Observed) { o.Hibernated = true }), ""},
		{"nothing while it is deleted", issued(inState(1, Missing), func(o *Observed) { o.Deleting = true }), ""},

		{"a lost certificate is issued again while it is paused", issued(inState(1, Missing), inState(2, Unusable), paused), "issue Peer All, issue Server All"},
		{"a lost certificate that members would reject is not issued while it is paused", issued(inState(1, Missing), notCrossSigned, trusts("before"), paused), ""},
		{"the CA is kept in memory while it is paused", issued(inState(0, Missing), inState(1, Missing), kept, paused), "Kept CA"},
		{"an older CA was put back while it is paused", issued(olderCA, lacking, inState(1, Expired), paused), "Returned CA"},
		{"an older CA is no base for the next one while it is paused", issued(olderCA, certificate(0, renewNow), paused), ""},
		{"what runs out is renewed while it is paused", issued(certificate(1, renewNow), paused), "issue Peer All"},
		{"what has run out is renewed while it is paused", issued(inState(1, Expired), paused), "issue Peer All"},
		{"a certificate of the CA before is renewed while it is paused, if all accept that", issued(certificate(1, unsigned), certificate(1, renewNow), paused), "issue Peer All"},
		{"what is not accepted is not issued while it is paused", issued(certificate(1, unsigned), certificate(1, renewNow), notCrossSigned, trusts("before"), paused), ""},
		{"names change after the pause", issued(certificate(1, otherSANs), certificate(2, otherBundle), paused), ""},
		{"the CA that expires is renewed while it is paused", issued(certificate(0, renewNow), rotationCarried, rotationAsked, paused), "Successor CA 1"},
		{"that renewal meets no request", issued(certificate(0, renewNow), rotationAsked, paused), "Successor CA"},
		{"of two trusted CAs none is renewed while it is paused", issued(certificate(0, renewNow), overlap, paused), ""},
		{"no rotation while it is paused", issued(rotationAsked, paused), ""},
		{"no old CA is dropped while it is paused", issued(overlap, longAgo, paused), ""},
		{"no first CA while it is paused", issued(inState(0, Missing), paused), ""},
		{"not before it has served", issued(certificate(1, renewNow), paused, func(o *Observed) { o.Bootstrapped = false }), ""},

		{"a new CA is requested", issued(rotationAsked), "Successor CA 1"},
		{"a request that was carried out and taken back has no effect", issued(rotationCarried), ""},
		{"a request is carried out once", issued(rotationAsked, rotationCarried), ""},
		{"a request is carried out again after an older CA was put back", issued(rotationAsked, requestRounds(patientRotations-1)), "Successor CA 1"},
		{"not when an older CA was put back each time", issued(rotationAsked, requestRounds(patientRotations)), ""},
		{"not for its age either", issued(rotationAsked, requestRounds(patientRotations), certificate(0, oldCA)), ""},
		{"a renewed CA was put back", issued(certificate(0, renewNow), renewalRounds(patientRotations-1)), "Successor CA"},
		{"a renewed CA was put back each time", issued(certificate(0, oldCA), renewalRounds(patientRotations)), ""},
		{"a renewed CA was put back each time, and the cluster is paused", issued(certificate(0, oldCA), renewalRounds(patientRotations), paused), ""},
		{"a renewed CA was put back each time, and it expires soon", issued(certificate(0, oldCA), certificate(0, func(c *Certificate) { c.NotBefore = testNow.Add(-300 * time.Hour) }), renewalRounds(patientRotations)), "Successor CA"},
		{"the CA is due for renewal", issued(certificate(0, renewNow)), "Successor CA"},
		{"no new CA before all members trust the present CA", issued(rotationAsked, trusts("before")), ""},
		{"no new CA while an older one is trusted", issued(rotationAsked, overlap), ""},

		{"an older CA was put back: what members need is listed first", issued(olderCA, lacking, rotationAsked, certificate(1, unsigned), certificate(2, unsigned)), "Returned CA"},
		{"an older CA that all members trust was put back", issued(lacking, certificate(1, unsigned)), "Returned CA"},
		{"an older CA was put back, and the certificate of the peers is lost", issued(olderCA, lacking, inState(1, Missing), withoutPVC), "Returned CA"},
		{"an older CA was put back: it is distributed", issued(olderCA, overlap, certificate(1, unsigned), certificate(2, signedBefore)), "issue Peer Bundle"},
		{"an older CA was put back: members without PVCs are not cut off", issued(olderCA, overlap, inState(1, Missing), withoutPVC), ""},
		{"an older CA was put back: it cross-signs no other CA", issued(olderCA, rotationAsked), ""},
		{"an older CA was put back and all members trust it", issued(overlap, notCrossSigned, certificate(1, signedBefore)), "issue Peer All"},

		{"cross-signed: the certificate is issued at once", issued(overlap, certificate(1, unsigned), trusts("before")), "issue Peer All"},
		{"not cross-signed and not trusted: the CA is distributed first", issued(overlap, notCrossSigned, certificate(1, unsigned), trusts("before")), "issue Peer Bundle"},
		{"not cross-signed and in no Secret: the CA is distributed first", issued(overlap, notCrossSigned, certificate(1, unsigned), certificate(2, unsigned), allTrusted), "issue Peer Bundle, issue Server Bundle"},
		{"not cross-signed and in one Secret: the CA is distributed first", issued(overlap, notCrossSigned, certificate(1, signedBefore), certificate(2, unsigned), allTrusted), "issue Server Bundle"},
		{"not cross-signed and in one Secret: no client is ahead", issued(overlap, notCrossSigned, certificate(2, unsigned), operator(signedBefore), allTrusted), "issue Server Bundle"},
		{"not cross-signed and trusted: the certificate is issued", issued(overlap, notCrossSigned, certificate(1, signedBefore)), "issue Peer All"},
		{"the CA is kept in memory", issued(inState(0, Missing), inState(1, Missing), kept), "Kept CA"},
		{"a damaged CA is kept in memory", issued(inState(0, Unusable), kept, rotationAsked), "Kept CA"},
		{"a CA that has expired is not kept", issued(inState(0, Expired), kept), "First CA"},
		{"the CA was lost alone", issued(inState(0, Missing), allTrusted), "First CA"},
		{"the CA and the peers were lost, on PVCs", issued(inState(0, Missing), inState(1, Missing), allTrusted), "First CA"},
		{"the CA and the peers were lost, without a PVC", issued(inState(0, Missing), inState(1, Missing), notCrossSigned, allTrusted, withoutPVC), ""},
		{"the CA and the peers were lost while no member runs", issued(inState(0, Missing), inState(1, Missing), notCrossSigned, allTrusted, withoutPVC, noneRuns), "First CA"},
		{"the next CA: that of peers is issued, on PVCs", issued(overlap, notCrossSigned, inState(1, Missing), allTrusted), "issue Peer Lost"},
		{"the next CA: that of peers is not issued, without a PVC", issued(overlap, notCrossSigned, inState(1, Missing), allTrusted, withoutPVC), ""},
		{"the next CA: that of servers waits with that of peers", issued(overlap, notCrossSigned, inState(1, Missing), inState(2, Missing), allTrusted, withoutPVC), ""},
		{"the next CA: that of servers is mounted", issued(overlap, notCrossSigned, inState(2, Missing), allTrusted, withoutPVC), "issue Server Lost"},
		{"the next CA: the controller has another certificate", issued(overlap, notCrossSigned, operator(lost), allTrusted), "issue Operator StandIn"},
		{"the CA and the peers were lost, without a PVC: the controller has another certificate", issued(inState(0, Missing), inState(1, Missing), operator(lost), notCrossSigned, allTrusted, withoutPVC), "issue Operator StandIn"},
		{"the CA and the peers were lost, without a PVC: no member would accept another", issued(inState(0, Missing), inState(1, Missing), operator(lost), notCrossSigned, allTrusted, withoutPVC, func(o *Observed) { o.CanAuthenticate = false }), ""},
		{"the next CA: the controller has no other certificate", issued(overlap, notCrossSigned, operator(lost), allTrusted, func(o *Observed) { o.CanAuthenticate = false }), "issue Operator Lost"},
		{"the next CA is trusted: that of the controller is issued", issued(overlap, notCrossSigned, operator(lost)), "issue Operator All"},
		{"the next CA is trusted: that of the peers is issued, without a PVC", issued(overlap, notCrossSigned, inState(1, Missing), withoutPVC), "issue Peer All"},
		{"names change when all members trust the next CA", issued(overlap, notCrossSigned, certificate(1, signedBefore), certificate(1, otherSANs), allTrusted), ""},
		{"the bundle has the CA that is not yet trusted", issued(overlap, notCrossSigned, certificate(1, signedBefore), trusts("before")), ""},
		{"a renewal waits until the CA is trusted", issued(overlap, notCrossSigned, certificate(1, signedBefore), certificate(1, renewNow), trusts("before")), ""},
		{"a renewal does not wait for ever", issued(overlap, notCrossSigned, certificate(1, signedBefore), inState(1, Expired), trusts("before")), "issue Peer Lost"},
	} {
		if got := describe(test.o.Decide()); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if got := test.o.IsIssuing(); got != (test.want != "") {
			t.Errorf("%s: IsIssuing is %t", test.name, got)
		}
	}
}

func TestEndOfOverlap(t *testing.T) {
	for _, test := range []struct {
		name  string
		edits []edit
		want  string
	}{
		{"clients have a day", []edit{func(o *Observed) { o.CA.Since = testNow.Add(time.Second - clientGrace) }}, ""},
		{"after a day the old CA is dropped", nil, "drop old CAs"},
		{"not while a certificate of it is left", []edit{certificate(1, unsigned)}, "issue Peer All"},
		{"not while a member trusts only the old CA, and shows a certificate of the new one", []edit{notCrossSigned, allTrusted}, ""},
		{"not while a member joins", []edit{func(o *Observed) { o.AddsMember = true }}, ""},
		{"not without a quorum", []edit{func(o *Observed) { o.Linearizable = false }}, ""},
		{"not while it is unknown when the new CA took over", []edit{func(o *Observed) { o.CA.Since = time.Time{} }}, ""},
		{"not while a member shows a certificate of it", []edit{func(o *Observed) { o.MembersVerified = false }}, ""},
		{"the kubelets are notified first", []edit{notRefreshed}, "refresh pod-b"},
		{"a kubelet that was notified of nothing known", []edit{notRefreshed, func(o *Observed) { o.Pods[1].Notified = false }}, "refresh pod-b"},
		{"a client has a certificate of the new CA", []edit{client(func(*Certificate) {})}, "drop old CAs"},
		{"a client has a certificate of the old CA", []edit{client(unsigned)}, ""},
		{"a client may have a certificate of the old CA", []edit{client(func(c *Certificate) { *c = Certificate{State: Unknown} })}, ""},
		{"a client has none yet", []edit{client(func(c *Certificate) { *c = Certificate{State: Missing} })}, "drop old CAs"},
		{"a Secret of a client that is not owned", []edit{client(func(c *Certificate) { *c = Certificate{State: NotOwned} })}, "drop old CAs"},
	} {
		o := issued(append([]edit{overlap, longAgo}, test.edits...)...)
		if got := describe(o.Decide()); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if got := o.IsIssuing(); got != (test.want != "") {
			t.Errorf("%s: IsIssuing is %t", test.name, got)
		}
	}
}

// TestDropOldCA: a user ends the trust in the old CA before a day has passed, with the name of
// the request that brought the new CA.
func TestDropOldCA(t *testing.T) {
	for _, test := range []struct {
		name                         string
		drop, rotate, carried, spent string
		want                         string
	}{
		{"not asked for", "", "", "", "", ""},
		{"with the request that is still there", "1", "1", "", "", "drop old CAs"},
		{"with the request that was carried out", "1", "", "1", "", "drop old CAs"},
		{"with the serial number of the CA", "5e", "1", "1", "", "drop old CAs"},
		{"with another request", "1", "2", "3", "", ""},
		{"with the serial number of another CA", "5f", "1", "1", "", ""},
		{"with a request that was there before the old CA was", "1", "1", "1", "1", ""},
		{"with a request for which the wait before this CA was ended", "2", "2", "2", "1", "drop old CAs"},
		{"with a request from before an older CA was put back", "2", "2", "1", "2", ""},
		{"with a serial number from before an older CA was put back", "5e", "", "1", "5e", ""},
	} {
		o := issued(overlap, certificate(0, func(c *Certificate) { c.Serial = "5e" }))
		o.DropOldCA, o.RotateCA, o.CA.Request, o.CA.Spent = test.drop, test.rotate, test.carried, test.spent
		if got := describe(o.Decide()); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestRefresh: kubelets look at once for what another issuer has renewed.
func TestRefresh(t *testing.T) {
	stale := func(o *Observed) { o.Pods[0].Refreshed, o.Pods[2].Refreshed = false, false }
	for _, test := range []struct {
		name string
		o    *Observed
		want string
	}{
		{"the kubelets know", static(), ""},
		{"a certificate was renewed", static(stale), "refresh pod-a, refresh pod-c"},
		{"a kubelet that was notified of nothing known", static(stale, func(o *Observed) { o.Pods[0].Notified = false }), "refresh pod-c"},
		{"certificates of the controller's own CA", issued(stale), ""},
		{"not one that cannot be used", static(stale, inState(0, Expired)), ""},
		{"not one that a member rejects", static(stale, trusts("before"), func(o *Observed) { o.Pods[1].Accepts = false }), ""},
		{"not while it is unknown what to trust", static(stale, func(o *Observed) { o.Trust = "" }), ""},
		{"not while it is paused", static(stale, paused), ""},
		{"not while it is deleted", static(stale, func(o *Observed) { o.Deleting = true }), ""},
	} {
		if got := describe(test.o.Decide()); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestLeafChange is about the certificate of a client, which is no certificate of the cluster.
func TestLeafChange(t *testing.T) {
	for _, test := range []struct {
		name   string
		o      *Observed
		c      Certificate
		change Change
		due    bool
	}{
		{"it does not exist", issued(), Certificate{State: Missing}, ChangeAll, true},
		{"it does not exist, and the cluster is paused", issued(paused), Certificate{State: Missing}, ChangeAll, true},
		{"it has expired, and the cluster is paused", issued(paused), Certificate{State: Expired}, ChangeAll, true},
		{"it does not exist, and its CA is not trusted yet", issued(overlap, notCrossSigned, trusts("before")), Certificate{Use: v1beta2.CertificateUseClient, State: Missing}, ChangeLost, false},
		{"its CA is not trusted yet", issued(overlap, notCrossSigned, trusts("before")),
			Certificate{State: Usable, Renewal: testNow.Add(time.Hour), Issued: Issued{SANsMatch: true}}, ChangeBundle, true},
	} {
		if change, due := test.o.LeafChange(&test.c); due != test.due || change != test.change {
			t.Errorf("%s: %s, %t; want %s, %t", test.name, change, due, test.change, test.due)
		}
	}
}

func TestHasUsableCA(t *testing.T) {
	for name, test := range map[string]struct {
		o    *Observed
		want bool
	}{
		"its own":         {issued(), true},
		"its own is lost": {issued(inState(0, Missing)), false},
		"another issuer":  {static(), false},
	} {
		if got := test.o.HasUsableCA(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
