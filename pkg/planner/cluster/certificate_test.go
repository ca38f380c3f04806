// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// certified gives the cluster certificates, the server's in this state.
func certified(state CertificateState) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{}}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer, v1beta2.CertificateUseOperator} {
			c := Certificate{
				Use: use, Secret: "s-" + string(use), State: CertificateUsable, Issuer: "me", Serial: "1f",
				NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour),
			}
			if use == v1beta2.CertificateUseServer && state != CertificateUsable {
				c.State, c.Message = state, "it is wrong"
			}
			o.Certificates = append(o.Certificates, c)
		}
	}
}

func TestRuleCertificates(t *testing.T) {
	checkDecisions(t, []decision{
		{"usable", 3, "a b c", edits(certified(CertificateUsable)), "steady"},
		{"a new cluster waits before it makes anything", 3, "", edits(silent, certified(CertificateMissing), func(o *Observed) { o.PeerService = PeerService{} }),
			"certificates: wait SecretMissing"},
		{"incomplete", 3, "", edits(silent, certified(CertificateIncomplete)), "certificates: wait SecretIncomplete"},
		{"unusable", 3, "", edits(silent, certified(CertificateUnusable)), "certificates: wait CertificateUnusable"},
		{"not yet valid", 3, "", edits(silent, certified(CertificateNotYetValid)), "certificates: wait CertificateNotYetValid"},
		{"a living cluster is left as it is", 3, "a b", edits(certified(CertificateExpired)), "certificates: wait CertificateExpired"},
		{"not known", 3, "a b", edits(certified(CertificateUnknown)), "certificates: wait SecretUnreadable"},
		{"going to sleep needs none", 0, "a:claim", edits(certified(CertificateMissing)), "hibernate: DeletePod a"},
	})
}

func TestCertificatesInStatus(t *testing.T) {
	for _, test := range []struct {
		state  CertificateState
		status corev1.ConditionStatus
		reason string
	}{
		{CertificateUsable, corev1.ConditionTrue, "AllUsable"},
		{CertificateMissing, corev1.ConditionFalse, "SecretMissing"},
		{CertificateExpired, corev1.ConditionFalse, "CertificateExpired"},
		{CertificateUnknown, corev1.ConditionUnknown, "SecretUnreadable"},
	} {
		o := observed(t, 3, "a b c", certified(test.state))
		status := Status(o, Decide(o))
		found := false
		for _, c := range status.Conditions {
			if c.Type != v1beta2.ClusterConditionCertificatesValid {
				continue
			}
			if found = true; c.Status != test.status || c.Reason != test.reason {
				t.Errorf("state %d: CertificatesValid is %s (%s), want %s (%s)", test.state, c.Status, c.Reason, test.status, test.reason)
			}
		}
		if !found || len(status.Certificates) != 3 {
			t.Fatalf("state %d: the status has condition %t and %d certificates", test.state, found, len(status.Certificates))
		}
		server := status.Certificates[1]
		if server.Usable != test.status || server.SecretName != "s-Server" || server.SerialNumber != "1f" ||
			!server.NotAfter.Time.Equal(testNow.Add(time.Hour)) || server.RenewalTime != nil {
			t.Errorf("state %d: the server's certificate is told as %+v", test.state, server)
		}
	}
}

func TestCertificateThatExpiresSoon(t *testing.T) {
	o := observed(t, 3, "a b c", certified(CertificateUsable), func(o *Observed) {
		o.Certificates[2].NotBefore, o.Certificates[2].NotAfter = testNow.Add(-90*time.Hour), testNow.Add(10*time.Hour)
	})
	c := certificatesValid(&o, Plan{})
	if c.Status != corev1.ConditionTrue || c.Reason != "ExpiresSoon" {
		t.Errorf("CertificatesValid is %s (%s: %s)", c.Status, c.Reason, c.Message)
	}
}

func TestNoCertificatesNoCondition(t *testing.T) {
	o := observed(t, 3, "a b c")
	for _, c := range Status(o, Decide(o)).Conditions {
		if c.Type == v1beta2.ClusterConditionCertificatesValid {
			t.Errorf("a cluster without certificates has condition %+v", c)
		}
	}
}

// issuedHere gives the cluster an authority of its own, and changes something about it.
func issuedHere(changes ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		o.Trust = "now"
		o.Authority = &Authority{Vouched: true, Since: testNow.Add(-time.Hour)}
		o.Cluster.Annotations = map[string]string{}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUseAuthority, v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
			o.Certificates = append(o.Certificates, Certificate{
				Use: use, Secret: "s-" + string(use), State: CertificateUsable,
				NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(3 * time.Hour), Renewal: testNow.Add(time.Hour),
				Issued: Issued{Signed: true, Trusts: true, Names: true},
			})
		}
		for i := range o.Pods {
			o.Pods[i].Trust, o.Pods[i].Refreshed = "now", true
		}
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].Shows = true
		}
		for _, change := range changes {
			change(o)
		}
	}
}

func TestIssuing(t *testing.T) {
	leaf := func(change func(*Certificate)) func(*Observed) {
		return func(o *Observed) { change(&o.Certificates[1]) }
	}
	missing := func(i int) func(*Observed) {
		return func(o *Observed) {
			o.Certificates[i].State, o.Certificates[i].Message = CertificateMissing, "it does not exist"
		}
	}
	overlap := func(o *Observed) { o.Authority.Overlap = true }
	unvouched := func(o *Observed) { o.Authority.Vouched = false }
	unsigned := leaf(func(c *Certificate) { c.Issued.Signed, c.Issued.Trusts = false, false })
	asks := func(name, value string) func(*Observed) {
		return func(o *Observed) { o.Cluster.Annotations["etcd.database.coreos.com/"+name] = value }
	}
	otherTrust := func(o *Observed) { o.Pods[0].Trust = "before" }
	volumes := func(o *Observed) {
		persist(o)
		for i := range o.Pods {
			o.Claims = append(o.Claims, Claim{Name: o.Pods[i].Name, UID: "u", Owned: true})
		}
	}
	longAgo := func(o *Observed) { o.Authority.Since = testNow.Add(-25 * time.Hour) }
	hidden := func(o *Observed) { o.Etcd.Members[2].Shows = false }
	checkDecisions(t, []decision{
		{"nothing is due", 3, "a b c", edits(issuedHere()), "steady"},
		{"a new cluster", 3, "", edits(silent, issuedHere(missing(0), missing(1), missing(2))), "certificates: IssueAuthority"},
		{"then what it signs", 3, "", edits(silent, issuedHere(missing(1), missing(2))),
			"certificates: IssueCertificate Peer, IssueCertificate Server"},
		{"a certificate that somebody deleted", 3, "a b c", edits(issuedHere(missing(2))), "certificates: IssueCertificate Server"},
		{"renewal goes along with what else is done", 3, "a b c", edits(issuedHere(leaf(func(c *Certificate) { c.Renewal = testNow }))),
			"steady: IssueCertificate Peer"},
		{"not good for all names", 3, "a b c", edits(issuedHere(leaf(func(c *Certificate) { c.Issued.Names = false }))), "steady: IssueCertificate Peer"},
		{"nothing while it sleeps", 0, "", edits(issuedHere(missing(1))), "hibernate"},
		{"nothing new while it is paused", 3, "a b c", edits(issuedHere(missing(1)), pausedSpec), "paused"},
		{"what runs out is renewed while it is paused", 3, "a b c", edits(issuedHere(leaf(func(c *Certificate) { c.Renewal = testNow })), pausedSpec),
			"paused: IssueCertificate Peer"},
		{"what has run out is renewed while it is paused", 3, "a b c", edits(issuedHere(leaf(func(c *Certificate) { c.State = CertificateExpired })), pausedSpec),
			"paused: IssueCertificate Peer"},
		{"so is the authority", 3, "a b c", edits(issuedHere(func(o *Observed) { o.Certificates[0].Renewal = testNow }), pausedSpec), "paused: RenewAuthority"},
		{"no rotation while it is paused", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1")), pausedSpec), "paused"},
		{"no old authority is dropped while it is paused", 3, "a b c", edits(issuedHere(overlap, longAgo), pausedSpec), "paused"},
		{"not before it has served", 3, "", edits(silent, issuedHere(leaf(func(c *Certificate) { c.Renewal = testNow })), pausedSpec), "paused"},
		{"somebody else's secret", 3, "a b c", edits(issuedHere(leaf(func(c *Certificate) { c.State, c.Message = CertificateForeign, "theirs" }))),
			"certificates: wait NameTaken"},
		{"not known", 3, "a b c", edits(issuedHere(func(o *Observed) { o.Certificates[0].State, o.Certificates[0].Message = CertificateUnknown, "?" })),
			"certificates: wait SecretUnreadable"},

		{"another authority is asked for", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1"))), "steady: RenewAuthority 1"},
		{"not by a request that is there no more", 3, "a b c", edits(issuedHere(func(o *Observed) { o.Authority.Request = "1" })), "steady"},
		{"once", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1"), func(o *Observed) { o.Authority.Request = "1" })), "steady"},
		{"its time has come", 3, "a b c", edits(issuedHere(func(o *Observed) { o.Certificates[0].Renewal = testNow })), "steady: RenewAuthority"},
		{"not before all trust the one of now", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1"), otherTrust, overlap)), "steady"},
		{"vouched for: signed at once", 3, "a b c", edits(issuedHere(overlap, unsigned, otherTrust)), "steady: IssueCertificate Peer"},
		{"not vouched for: trusted first", 3, "a b c", edits(issuedHere(overlap, unvouched, unsigned)), "steady: IssueCertificate Peer"},
		{"the kubelets are told", 3, "a b c", edits(issuedHere(overlap, func(o *Observed) { o.Pods[1].Refreshed = false })), "steady: RefreshPod b"},
		{"clients have a day", 3, "a b c", edits(issuedHere(overlap)), "steady"},
		{"and not longer", 3, "a b c", edits(issuedHere(overlap, longAgo)), "steady: DropAuthority"},
		{"unless nobody needs it", 3, "a b c", edits(issuedHere(overlap, asks("rotate-ca", "1"), asks("drop-old-ca", "1"))), "steady: DropAuthority"},
		{"a member shows what the old one signed", 3, "a b c", edits(issuedHere(overlap, longAgo, hidden)), "steady"},
		{"nobody could be asked", 3, "a b c", edits(issuedHere(overlap, longAgo), noQuorum), "quorum: wait EtcdUnreachable"},
		{"no restart while both are trusted", 3, "a b c", edits(issuedHere(overlap, otherTrust, volumes)), "steady"},
		{"a restart when only the new one is", 3, "a b:leads c", edits(issuedHere(otherTrust, volumes)), "rollout: RecreatePod a " + testVersion},
		{"one at a time", 3, "a b:leads c:sick", edits(issuedHere(otherTrust, volumes)), "rollout: wait WaitingForMember"},
		{"without a volume another one joins", 3, "a b c", edits(issuedHere(otherTrust)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"and a restart where nobody vouched", 3, "a b:leads c", edits(issuedHere(overlap, unvouched, otherTrust, volumes)), "rollout: RecreatePod a " + testVersion},
		{"what is to be trusted is not known", 3, "a b c", edits(issuedHere(otherTrust, volumes, func(o *Observed) { o.Trust = "" })), "steady"},
	})
}

// Members of a cluster with certificates of somebody else's restart for the same reason.
func TestStaticAuthorityIsReplaced(t *testing.T) {
	static := func(trust string) func(*Observed) {
		return func(o *Observed) {
			o.Trust = "now"
			o.Certificates = []Certificate{{Use: v1beta2.CertificateUsePeer, Secret: "s", State: CertificateUsable, NotBefore: testNow, NotAfter: testNow.Add(time.Hour)}}
			for i := range o.Pods {
				o.Pods[i].Trust = "now"
			}
			o.Pods[2].Trust, o.Pods[2].Accepts = trust, true
		}
	}
	refuses := func(o *Observed) { o.Pods[2].Accepts = false }
	refreshed := func(is bool) func(*Observed) {
		return func(o *Observed) {
			for i := range o.Pods {
				o.Pods[i].Certificates, o.Pods[i].Refreshed = "some", is
			}
		}
	}
	checkDecisions(t, []decision{
		{"another one is trusted besides", 3, "a:claim b:claim c:claim", edits(static("before")), "rollout: RecreatePod c " + testVersion},
		{"certificates of another one before it was trusted", 3, "a:claim b:claim c:claim", edits(static("before"), refuses), "steady"},
		{"nobody else restarts into that either", 3, "a:claim b:claim c:claim", edits(static("before"), refuses, func(o *Observed) {
			o.Pods[0].Trust, o.Pods[0].Accepts = "before", true
		}), "steady"},
		{"a pod of an earlier release does not say", 3, "a:claim b:claim c:claim", edits(static("")), "steady"},
		{"the same as ever", 3, "a:claim b:claim c:claim", edits(static("now")), "steady"},
		{"a certificate was renewed", 3, "a:claim b:claim c:claim", edits(static("now"), refreshed(false)), "steady: RefreshPod a, RefreshPod b, RefreshPod c"},
		{"the kubelets know", 3, "a:claim b:claim c:claim", edits(static("now"), refreshed(true)), "steady"},
		{"not one that cannot be used", 3, "a:claim b:claim c:claim", edits(static("now"), refreshed(false), func(o *Observed) {
			o.Certificates[0].State, o.Certificates[0].Message = CertificateExpired, "it has ended"
		}), "certificates: wait CertificateExpired"},
	})
}

// TestCertificateThatIsJustIssued: what the controller makes itself in a moment is no
// fault, and no warning.
func TestCertificateThatIsJustIssued(t *testing.T) {
	missing := func(o *Observed) {
		o.Certificates[0].State, o.Certificates[0].Message = CertificateMissing, "it does not exist"
	}
	o := observed(t, 3, "a b c", issuedHere(missing))
	if c := certificatesValid(&o, Plan{}); c.Status != corev1.ConditionUnknown || c.Reason != "Issuing" {
		t.Errorf("CertificatesValid is %+v", c)
	}
	o = observed(t, 3, "a b c", certified(CertificateMissing)) // somebody else's to make
	if c := certificatesValid(&o, Plan{}); c.Status != corev1.ConditionFalse || c.Reason != "SecretMissing" {
		t.Errorf("CertificatesValid is %+v", c)
	}
}

func TestAuthorityThatNobodyTrusts(t *testing.T) {
	o := observed(t, 3, "a b c", func(o *Observed) {
		o.Trust = "now"
		o.Certificates = []Certificate{{Use: v1beta2.CertificateUsePeer, State: CertificateUsable, NotBefore: testNow, NotAfter: testNow.Add(time.Hour)}}
		o.Pods[1].Trust = "before"
	})
	if c := certificatesValid(&o, Plan{}); c.Status != corev1.ConditionFalse || c.Reason != "AuthorityNotTrusted" || !strings.Contains(c.Message, "member b") {
		t.Errorf("CertificatesValid is %+v", c)
	}
	o.Pods[1].Accepts = true
	if c := certificatesValid(&o, Plan{}); c.Status != corev1.ConditionTrue || c.Reason != "RestartPending" {
		t.Errorf("CertificatesValid is %+v", c)
	}
}

func TestMembersThatTrustWhatWasTrustedBefore(t *testing.T) {
	before := func(o *Observed) { o.Pods[1].Trust = "before" }
	for name, test := range map[string]struct {
		changes []func(*Observed)
		want    string
	}{
		"none":               {nil, "AllUsable"},
		"one":                {[]func(*Observed){before}, "RestartPending"},
		"while both do":      {[]func(*Observed){before, func(o *Observed) { o.Authority.Overlap = true }}, "AllUsable"},
		"nobody vouched":     {[]func(*Observed){before, func(o *Observed) { o.Authority.Overlap, o.Authority.Vouched = true, false }}, "RestartPending"},
		"pod of no known":    {[]func(*Observed){func(o *Observed) { o.Pods[1].Trust = "" }}, "AllUsable"},
		"its pod goes":       {[]func(*Observed){before, func(o *Observed) { o.Pods[1].Terminating = true }}, "AllUsable"},
		"authorities of now": {[]func(*Observed){before, func(o *Observed) { o.Trust = "" }}, "AllUsable"},
	} {
		o := observed(t, 3, "a b c", issuedHere(test.changes...))
		if c := certificatesValid(&o, Plan{}); c.Status != corev1.ConditionTrue || c.Reason != test.want {
			t.Errorf("%s: CertificatesValid is %s (%s: %s), want %s", name, c.Status, c.Reason, c.Message, test.want)
		}
	}
}
