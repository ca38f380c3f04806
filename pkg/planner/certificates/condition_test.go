// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestCondition(t *testing.T) {
	noAPI := func(o *Observed) { o.CertManager = &CertManager{} }
	unread := func(o *Observed) { o.CertManager = &CertManager{Err: "no right"} }
	rejects := func(o *Observed) { o.Pods[1].Accepts = false }
	soon := certificate(1, func(c *Certificate) {
		c.NotBefore, c.NotAfter = testNow.Add(-81*time.Hour), testNow.Add(20*time.Hour)
	})
	withCA := certificate(1, func(c *Certificate) { c.EndsWithCA = true })
	soonCA := certificate(0, func(c *Certificate) { c.NotBefore = testNow.Add(-81 * time.Hour) })
	for _, test := range []struct {
		name   string
		o      *Observed
		status corev1.ConditionStatus
		reason string
		says   string
	}{
		{"without TLS", &Observed{}, "", "", ""},
		{"all is well", static(), corev1.ConditionTrue, "AllUsable", ""},
		{"a Secret that a user must create", static(inState(0, Missing)), corev1.ConditionFalse, "SecretMissing", "it is wrong"},
		{"a certificate that has ended", static(inState(1, Expired)), corev1.ConditionFalse, "CertificateExpired", "it is wrong"},
		{"a certificate that is not known", static(inState(1, Unknown)), corev1.ConditionUnknown, "SecretUnreadable", "it is wrong"},
		{"a Secret that is not owned comes first", issued(inState(1, Missing), inState(2, NotOwned)), corev1.ConditionFalse, "NameConflict", "it is wrong"},
		{"what the controller issues in a moment is no fault", issued(inState(0, Missing)), corev1.ConditionUnknown, "Issuing", "Secret s-CA is being issued: it is wrong"},
		{"what cert-manager has not written", requested(request(0, taken)), corev1.ConditionTrue, "NameConflict", "nothing renews the certificate in it"},
		{"what cert-manager issues", requested(inState(0, Missing)), corev1.ConditionFalse, "SecretMissing", "Certificate s-Peer requests it"},
		{"cert-manager is not installed any more", requested(noAPI), corev1.ConditionTrue, "CertManagerMissing", "nothing renews the certificates that exist"},
		{"cert-manager does not respond", requested(unread), corev1.ConditionTrue, "AllUsable", ""},
		{"one fifth of its life is left", static(soon, certificate(1, func(c *Certificate) { c.NotBefore = testNow.Add(-80 * time.Hour) })), corev1.ConditionTrue, "AllUsable", ""},
		{"less than one fifth of its life is left", static(soon), corev1.ConditionTrue, "ExpiresSoon", "Secret s-Server is valid until 2026-01-02T23:04:05Z only"},
		{"a CA ends soon that users renew", static(soon, withCA), corev1.ConditionTrue, "ExpiresSoon", "only: a CA that verifies it ends then. Put the next certificate of that CA into each Secret that trusts it"},
		{"a CA ends soon, with cert-manager", requested(soon, withCA), corev1.ConditionTrue, "ExpiresSoon",
			"only: a CA that verifies it ends then, and cert-manager does not renew a Certificate when it renews the CA of its issuer. First see that the CA of the issuer is valid for longer and has kept its key: members reject at once what a CA with another key signs. Renew all Certificates of the cluster: cmctl renew s-Peer s-Server."},
		{"a CA ends soon while it is paused", static(soon, withCA, paused), corev1.ConditionTrue, "ExpiresSoon", "No member restarts while spec.paused is true."},
		{"a CA waits for a restart", issued(soonCA, overlap, trusts("before")), corev1.ConditionTrue, "ExpiresSoon", "when member b has restarted"},
		{"a CA waits for the end of an older CA", issued(soonCA, overlap), corev1.ConditionTrue, "ExpiresSoon", "when the CA before the present one is not trusted any more: the CA before the present one stays trusted until 2026-01-03T02:04:05Z"},

		{"a member rejects the certificates of a new CA", static(trusts("before"), rejects), corev1.ConditionFalse, "CANotTrusted", "member b does not trust"},
		{"a member accepts them", static(trusts("before")), corev1.ConditionTrue, "RestartPending", "member b trusts"},
		{"a member trusts what was trusted before", issued(trusts("before")), corev1.ConditionTrue, "RestartPending", "member b trusts"},
		{"members reject each other and restart together", issued(trusts("before"), rejects, notCrossSigned), corev1.ConditionFalse, "CANotTrusted", "All members restart together"},
		{"members without PVCs reject each other", issued(trusts("before"), rejects, notCrossSigned, withoutPVC), corev1.ConditionFalse, "CANotTrusted", "Restore Secret s-Peer"},
		{"a certificate is issued when all trust the next CA", issued(overlap, notCrossSigned, operator(func(c *Certificate) { lost(c); c.Use = v1beta2.CertificateUseClient }), trusts("before")), corev1.ConditionFalse, "TrustPending", "member b does not trust the present one"},
		{"a certificate waits for members that restart together", issued(overlap, notCrossSigned, operator(func(c *Certificate) { lost(c); c.Use = v1beta2.CertificateUseClient }), trusts("before"), rejects), corev1.ConditionFalse, "TrustPending", "member b does not trust the present one"},
		{"a certificate waits for members that do not restart", issued(overlap, notCrossSigned, operator(func(c *Certificate) { lost(c); c.Use = v1beta2.CertificateUseClient }), trusts("before"), rejects, withoutPVC), corev1.ConditionFalse, "CANotTrusted", "Restore Secret s-Peer"},
		{"the CA and the peers were lost, without a PVC", issued(inState(0, Missing), inState(1, Missing), notCrossSigned, allTrusted, withoutPVC), corev1.ConditionFalse, "PeerCertificateLost", "lost together"},
		{"an older CA was put back", issued(olderCA, overlap), corev1.ConditionFalse, "TrustPending", "an older CA was put back into Secret s-CA: member a"},
		{"an older CA was put back by a program", issued(olderCA, overlap, func(o *Observed) { o.CA.Writer = "argocd" }), corev1.ConditionFalse, "TrustPending", "into Secret s-CA, last written by argocd: member a"},
		{"the CA was lost while it is paused", issued(inState(0, Missing), paused), corev1.ConditionFalse, "SecretMissing", "Set spec.paused=false, or restore Secret s-CA"},
		{"a lost certificate is issued again while it is paused", issued(inState(1, Missing), paused), corev1.ConditionUnknown, "Issuing", "Secret s-Peer"},
		{"a lost certificate waits for trust and for the pause", issued(inState(1, Missing), olderCA, paused), corev1.ConditionFalse, "SecretMissing", "A pod that starts waits for each Secret that it mounts"},
		{"the first certificates wait for the end of the pause", issued(inState(0, Missing), paused, func(o *Observed) { o.Bootstrapped = false }), corev1.ConditionUnknown, "SecretMissing", "issues nothing for a cluster that has not served yet. Set spec.paused=false."},
		{"the CA was lost while it is hibernated", issued(inState(0, Missing), func(o *Observed) { o.Hibernated, o.Pods = true, nil }), corev1.ConditionFalse, "SecretMissing", "issues it when the cluster has members again"},
		{"members would restart together after the pause", issued(trusts("before"), rejects, notCrossSigned, paused), corev1.ConditionFalse, "CANotTrusted", "none restarts while spec.paused is true. Set spec.paused=false."},
		{"a member would restart after the pause", issued(trusts("before"), paused), corev1.ConditionTrue, "RestartPending", "No member restarts while spec.paused is true."},
		{"an older CA was put back while it is paused", issued(olderCA, overlap, paused), corev1.ConditionFalse, "TrustPending", "No member restarts while spec.paused is true."},
		{"a requested CA is put back each time", issued(rotationAsked, requestRounds(patientRotations), func(o *Observed) { o.CA.Writer = "argocd" }), corev1.ConditionFalse, "CAPutBack", "into Secret s-CA, last written by argocd. That CA signs"},
		{"a renewed CA is put back each time", issued(certificate(0, oldCA), renewalRounds(patientRotations)), corev1.ConditionFalse, "CAPutBack", "last written by another program"},
		{"a requested CA was put back once", issued(rotationCarried, rotationAsked, requestRounds(2)), corev1.ConditionTrue, "AllUsable", ""},
		{"while both CAs are trusted", issued(trusts("before"), overlap), corev1.ConditionTrue, "AllUsable", "the CA before the present one stays trusted until 2026-01-03T02:04:05Z, for clients"},
		{"while both are trusted, not cross-signed", issued(trusts("before"), overlap, notCrossSigned), corev1.ConditionFalse, "TrustPending", "member b does not trust"},
		{"a pod that does not say what it trusts", issued(trusts("")), corev1.ConditionTrue, "RestartPending", "member b trusts"},
		{"it is unknown what to trust", issued(trusts("before"), func(o *Observed) { o.Trust = "" }), corev1.ConditionTrue, "AllUsable", ""},
	} {
		c := test.o.Condition()
		if c.Type != v1beta2.ClusterConditionCertificatesValid || c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
			t.Errorf("%s: %s is %s (%s: %s), want %s (%s: %s)", test.name, c.Type, c.Status, c.Reason, c.Message, test.status, test.reason, test.says)
		}
	}
}

// TestOverlapWait: a message of CertificatesValid while every certificate can be used is about an older CA.
func TestOverlapWait(t *testing.T) {
	const stays = "the CA before the present one stays trusted "
	const seen = "until every member was seen to show a certificate of the present one"
	const day = stays + "until 2026-01-03T02:04:05Z, for clients that have not read their new certificate, and " + seen
	for _, test := range []struct {
		name  string
		edits []edit
		want  string
	}{
		{"only the present CA is trusted", []edit{func(o *Observed) { o.CA.Overlap = false }}, ""},
		{"clients have a day", nil, day},
		{"a client has a certificate of the old CA", []edit{client(func(c *Certificate) { c.Secret = "s-app"; unsigned(c) })}, stays + "until Secret s-app of spec.clients has a certificate of the present one"},
		{"a member was not seen yet", []edit{func(o *Observed) { o.MembersVerified = false }}, day},
		{"a kubelet was not notified yet", []edit{notRefreshed}, day},
		{"clients had a day, and a member was not seen", []edit{func(o *Observed) { o.CA.Since, o.MembersVerified = o.Now.Add(-clientGrace), false }}, stays + seen},
		{"it is paused", []edit{paused}, stays + "while spec.paused is true. Set spec.paused=false."},
		{"it is hibernated", []edit{func(o *Observed) { o.Hibernated, o.Pods = true, nil }}, stays + "until the cluster has members again"},
	} {
		c := issued(append([]edit{overlap}, test.edits...)...).Condition()
		if c.Reason != ReasonAllUsable || c.Message != test.want {
			t.Errorf("%s: %s: %q, want %q", test.name, c.Reason, c.Message, test.want)
		}
	}
	if c := static().Condition(); c.Message != "" {
		t.Errorf("certificates of another issuer: %q", c.Message)
	}
}

// TestRemedyOfCAThatIsValidLater: a wait for a time names it, and what else ends the wait.
func TestRemedyOfCAThatIsValidLater(t *testing.T) {
	later := certificate(0, func(c *Certificate) { c.State, c.NotBefore = NotYetValid, testNow.Add(50*time.Hour) })
	const wait = "Correct the clock if it is behind, or wait until 2026-01-04T05:04:05Z."
	for _, test := range []struct {
		name  string
		edits []edit
		want  string
	}{
		{"all members have PVCs", nil, wait + " Or delete the Secrets s-CA, s-Peer, s-Server together"},
		{"a member has no PVC", []edit{withoutPVC}, wait},
		{"a bootstrap member was started", []edit{func(o *Observed) { o.Bootstrapped, o.Pods = false, o.Pods[:1] }}, wait + " Or delete pod a, which no client has written to"},
		{"it is paused", []edit{paused}, wait},
	} {
		o := issued(append(test.edits, later)...)
		reason, message, remedy := o.Explain(&o.Certificates[0])
		if reason != ReasonCertificateNotYetValid || !strings.HasPrefix(remedy, test.want) || test.want == wait && remedy != wait || !strings.HasSuffix(message, remedy) {
			t.Errorf("%s: %s, %q, %q; want %q", test.name, reason, message, remedy, test.want)
		}
	}
}

// TestRemedyOfLostPeerCertificate: the Secret of the peers is enough, and nothing backs a cluster up that accepts
// no client.
func TestRemedyOfLostPeerCertificate(t *testing.T) {
	for can, want := range map[bool]string{true: "back up the cluster", false: "restore the last backup"} {
		o := issued(inState(0, Missing), inState(1, Missing), notCrossSigned, allTrusted, withoutPVC)
		o.CanAuthenticate = can
		reason, _, remedy := o.Explain(&o.Certificates[0])
		if reason != ReasonPeerCertificateLost || !strings.HasPrefix(remedy, "Restore Secret s-Peer from") || !strings.Contains(remedy, want) {
			t.Errorf("members accept the controller %t: %s, %q; want %q", can, reason, remedy, want)
		}
		if got := describe(issued(inState(0, Missing), notCrossSigned, allTrusted, withoutPVC).Decide()); got != "First CA" {
			t.Errorf("after the Secret of the peers was restored: %q", got)
		}
	}
}
