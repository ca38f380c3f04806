// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// certified gives the cluster certificates, the server's in this state.
func certified(state certificates.State) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{}}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer, v1beta2.CertificateUseOperator} {
			c := certificates.Certificate{
				Use: use, Secret: "s-" + string(use), State: certificates.Usable, Issuer: "me", Serial: "1f",
				NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour),
			}
			if use == v1beta2.CertificateUseServer && state != certificates.Usable {
				c.State, c.Message = state, "it is wrong"
			}
			o.Certificates = append(o.Certificates, c)
		}
	}
}

func TestRuleCertificates(t *testing.T) {
	checkDecisions(t, []decision{
		{"usable", 3, "a b c", edits(certified(certificates.Usable)), "steady"},
		{"a new cluster waits before it makes anything", 3, "", edits(unresponsive, certified(certificates.Missing), func(o *Observed) { o.PeerService = Missing }),
			"certificates: wait SecretMissing"},
		{"incomplete", 3, "", edits(unresponsive, certified(certificates.Incomplete)), "certificates: wait SecretIncomplete"},
		{"unusable", 3, "", edits(unresponsive, certified(certificates.Unusable)), "certificates: wait CertificateUnusable"},
		{"not yet valid", 3, "", edits(unresponsive, certified(certificates.NotYetValid)), "certificates: wait CertificateNotYetValid"},
		{"a living cluster is left as it is", 3, "a b", edits(certified(certificates.Expired)), "certificates: wait CertificateExpired"},
		{"not known", 3, "a b", edits(certified(certificates.Unknown)), "certificates: wait SecretUnreadable"},
		{"going to sleep needs none", 0, "a:claim", edits(certified(certificates.Missing)), "hibernate: DeletePod a"},
	})
}

// TestCertificatesInStatus: a cluster with certificates has a condition about them, and each of
// them in the status.
func TestCertificatesInStatus(t *testing.T) {
	for _, test := range []struct {
		edits  []func(*Observed)
		status corev1.ConditionStatus
		reason string
	}{
		{edits(certified(certificates.Usable)), corev1.ConditionTrue, "AllUsable"},
		{edits(certified(certificates.Missing)), corev1.ConditionFalse, "SecretMissing"},
		{edits(certified(certificates.Unknown)), corev1.ConditionUnknown, "SecretUnreadable"},
		{edits(certified(certificates.Missing), pausedSpec), corev1.ConditionFalse, "SecretMissing"},
	} {
		status := statusOf(observed(t, 3, "a b c", test.edits...))
		if c := find(status, v1beta2.ClusterConditionCertificatesValid); c == nil || c.Status != test.status || c.Reason != test.reason {
			t.Errorf("CertificatesValid is %+v, want %s (%s)", c, test.status, test.reason)
		}
		if len(status.Certificates) != 3 || status.Certificates[1].Usable != test.status || status.Certificates[1].SecretName != "s-Server" {
			t.Errorf("%s: the status lists %+v", test.reason, status.Certificates)
		}
	}
}

func TestNoCertificatesNoCondition(t *testing.T) {
	if c := find(statusOf(observed(t, 3, "a b c")), v1beta2.ClusterConditionCertificatesValid); c != nil {
		t.Errorf("a cluster without certificates has condition %+v", c)
	}
}

// TestCertificateFacts: package certificates hears of the pods that run or start, and of the
// clients that are declared.
func TestCertificateFacts(t *testing.T) {
	o := observed(t, 3, "a b:terminating c:theirs d:finished", issuedHere(), withClients("x", "y"), removedClient(0), func(o *Observed) {
		o.Pods[0].Trust, o.Pods[0].Accepts, o.Pods[0].Certificates, o.Pods[0].Refreshed = "before", true, "some", false
		o.Etcd.Members[2].CertificateVerified = false
		o.Cluster.Annotations[resources.AnnotationRotateCA], o.Cluster.Annotations[resources.AnnotationDropOldCA] = "1", "2"
		o.Record.Rotation = resources.RotationRecord{}.Next("1").Next("1")
	})
	got := certificateInput(&o)
	want := &certificates.Observed{
		Now: testNow, Certificates: o.Certificates, Clients: []certificates.Certificate{o.Clients[1].Certificate}, CA: o.CA, Trust: "now",
		Pods:         []certificates.Pod{{Name: "a", UID: "pod-a", Trust: "before", Accepts: true, TrustsCA: true, TrustsPrevious: true, Running: true, Notified: true}},
		Linearizable: true, RotateCA: "1", RequestRounds: 2, DropOldCA: "2", Bootstrapped: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a cluster with pods that end:\n%s", diff)
	}

	o = observed(t, 0, "", unresponsive, requested(), pausedSpec, deleting)
	if diff := cmp.Diff(&certificates.Observed{
		Now: testNow, Certificates: o.Certificates, CertManager: o.CertManager, Hibernated: true, Paused: true, Deleting: true,
	}, certificateInput(&o)); diff != "" {
		t.Errorf("a cluster that never started:\n%s", diff)
	}
}

// issuedHere gives the cluster its own CA, and changes something about it.
func issuedHere(changes ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		o.Trust = "now"
		o.CA = &certificates.CA{CrossSigned: true, Since: testNow.Add(-time.Hour)}
		o.Cluster.Annotations = map[string]string{}
		for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUseCA, v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
			o.Certificates = append(o.Certificates, certificates.Certificate{
				Use: use, Secret: "s-" + string(use), State: certificates.Usable,
				NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(3 * time.Hour), Renewal: testNow.Add(time.Hour),
				Issued: certificates.Issued{Signed: true, BundleMatches: true, SANsMatch: true},
			})
		}
		for i := range o.Pods {
			o.Pods[i].Trust, o.Pods[i].Refreshed, o.Pods[i].Accepts, o.Pods[i].TrustsCA = "now", true, true, true
			o.Pods[i].TrustsPrevious = true
		}
		for i := range o.Etcd.Members {
			o.Etcd.Members[i].CertificateVerified = true
		}
		for _, change := range changes {
			change(o)
		}
	}
}

func TestIssuing(t *testing.T) {
	leaf := func(change func(*certificates.Certificate)) func(*Observed) {
		return func(o *Observed) { change(&o.Certificates[1]) }
	}
	missing := func(i int) func(*Observed) {
		return func(o *Observed) {
			o.Certificates[i].State, o.Certificates[i].Message = certificates.Missing, "it does not exist"
		}
	}
	overlap := func(o *Observed) { o.CA.Overlap = true }
	notCrossSigned := func(o *Observed) { o.CA.CrossSigned = false }
	asks := func(name, value string) func(*Observed) {
		return func(o *Observed) { o.Cluster.Annotations["etcd.database.coreos.com/"+name] = value }
	}
	rejects := func(o *Observed) {
		o.CA.CrossSigned = false
		for i := range o.Pods {
			o.Pods[i].Trust, o.Pods[i].Accepts, o.Pods[i].TrustsCA = "before", false, false
		}
	}
	otherTrust := func(o *Observed) { o.Pods[0].Trust = "before" }
	otherCA := func(o *Observed) { o.Pods[0].TrustsCA, o.Pods[0].TrustsPrevious = false, false }
	noTrust := func(o *Observed) { o.Pods[0].Trust = "" }
	volumes := func(o *Observed) {
		persist(o)
		for i := range o.Pods {
			o.PVCs = append(o.PVCs, PVC{Name: o.Pods[i].Name, UID: "u", Owned: true})
		}
	}
	longAgo := func(o *Observed) { o.CA.Since = testNow.Add(-25 * time.Hour) }
	hidden := func(o *Observed) { o.Etcd.Members[2].CertificateVerified = false }
	checkDecisions(t, []decision{
		{"nothing is due", 3, "a b c", edits(issuedHere()), "steady"},
		{"a new cluster", 3, "", edits(unresponsive, issuedHere(missing(0), missing(1), missing(2))), "certificates: IssueCA"},
		{"the certificates of a new cluster are issued after its CA", 3, "", edits(unresponsive, issuedHere(missing(1), missing(2))),
			"certificates: IssueCertificate Peer, IssueCertificate Server"},
		{"renewal goes along with what else is done", 3, "a b c", edits(issuedHere(leaf(func(c *certificates.Certificate) { c.Renewal = testNow }))),
			"steady: IssueCertificate Peer"},
		{"nothing while it sleeps", 0, "", edits(issuedHere(missing(1))), "hibernate"},
		{"a lost certificate is issued again while it is paused", 3, "a b c", edits(issuedHere(missing(1)), pausedSpec), "paused: IssueCertificate Peer"},
		{"no certificate for a bootstrap while it is paused", 3, "", edits(unresponsive, issuedHere(missing(1)), pausedSpec), "paused"},
		{"an older CA was put back", 3, "a:claim b:leads,claim c:claim", edits(issuedHere(otherCA, func(o *Observed) { o.CA.Lacks = true })), "steady: CompleteCA"},
		{"an older CA was put back, and is distributed", 3, "a:claim b:leads,claim c:claim", edits(issuedHere(overlap, otherCA, otherTrust)), "rollout: RecreatePod a " + testVersion},
		{"what runs out is renewed while it is paused", 3, "a b c", edits(issuedHere(leaf(func(c *certificates.Certificate) { c.Renewal = testNow })), pausedSpec),
			"paused: IssueCertificate Peer"},
		{"not before it has served", 3, "", edits(unresponsive, issuedHere(leaf(func(c *certificates.Certificate) { c.Renewal = testNow })), pausedSpec), "paused"},
		{"a Secret that is not owned", 3, "a b c", edits(issuedHere(leaf(func(c *certificates.Certificate) { c.State, c.Message = certificates.NotOwned, "theirs" }))),
			"certificates: wait NameConflict"},
		{"a CA that is not known keeps nothing from being repaired", 3, "a b", edits(issuedHere(func(o *Observed) { o.Certificates[0].State, o.Certificates[0].Message = certificates.Unknown, "?" })),
			"scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a certificate of clients that is not owned keeps nothing from being repaired", 3, "a b", edits(issuedHere(func(o *Observed) {
			o.Certificates = append(o.Certificates, certificates.Certificate{Use: v1beta2.CertificateUseClient, State: certificates.NotOwned, Message: "theirs"})
		})), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"the CA was lost, and members reject each other", 3, "a:claim b:claim,leads c:claim", edits(issuedHere(rejects)),
			"restart-together: DeletePod a, DeletePod b, DeletePod c"},
		{"the CA was lost while a recovery member of a restore is hidden", 3, "a:claim b:claim,leads c:claim",
			edits(issuedHere(func(o *Observed) { o.CA.CrossSigned = false }), recorded(v1beta2.RecoveryPhaseFilling, restores), recoveryPod(0, func(m *RecoveryMember) {
				m.HasPVC, m.Pod.Trust, m.Pod.Running = true, "before", true
			})), "restart-together: DeletePod seed"},
		{"the CA was lost, and members that reject each other have no PVC", 3, "a b:leads c", edits(issuedHere(rejects)), "steady"},
		{"the CA was lost, and members that reject each other have no quorum", 3, "a:claim b:claim c:claim", edits(noQuorum, issuedHere(rejects)),
			"restart-together: DeletePod a, DeletePod b, DeletePod c"},
		{"the CA was lost, and one restarted already", 3, "a:claim b:claim c:claim", edits(noQuorum, issuedHere(rejects, func(o *Observed) {
			o.Pods[0].Trust, o.Pods[0].Accepts, o.Pods[0].TrustsCA = "now", true, true
		})), "restart-together: DeletePod b, DeletePod c"},
		{"no pod is prepared while a certificate is not known", 3, "a b", edits(unprepared, issuedHere(leaf(func(c *certificates.Certificate) { c.State, c.Message = certificates.Unknown, "?" }))),
			"certificates: wait SecretUnreadable"},

		{"a new CA is requested", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1"))), "steady: RenewCA 1"},
		{"no new CA before all members trust the present CA", 3, "a b c", edits(issuedHere(asks("rotate-ca", "1"), otherTrust, overlap)), "steady"},
		{"the kubelets are notified", 3, "a b c", edits(issuedHere(overlap, func(o *Observed) { o.Pods[1].Refreshed = false })), "steady: RefreshPod b"},
		{"after a day the old CA is dropped", 3, "a b c", edits(issuedHere(overlap, longAgo)), "steady: DropOldCAs"},
		{"the old CA is not dropped while a member joins, whose pod may present what it signed", 3, "a b", edits(issuedHere(overlap, longAgo)),
			"scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
		{"a user requests to drop the old CA earlier", 3, "a b c", edits(issuedHere(overlap, asks("rotate-ca", "1"), asks("drop-old-ca", "1"))), "steady: DropOldCAs for the next"},
		{"a member shows a certificate of the old CA", 3, "a b c", edits(issuedHere(overlap, longAgo, hidden)), "steady"},
		{"no member could be reached", 3, "a b c", edits(issuedHere(overlap, longAgo), noQuorum), "quorum: wait EtcdUnreachable"},
		{"no restart while both are trusted", 3, "a b c", edits(issuedHere(overlap, otherTrust, volumes)), "steady"},
		{"a restart when only the new one is", 3, "a b:leads c", edits(issuedHere(otherTrust, volumes)), "rollout: RecreatePod a " + testVersion},
		{"a restart of a member that does not say what it trusts", 3, "a b:leads c", edits(issuedHere(noTrust, volumes)), "rollout: RecreatePod a " + testVersion},
		{"one at a time", 3, "a b:leads c:sick", edits(issuedHere(otherTrust, volumes)), "rollout: wait WaitingForMember"},
		{"without a PVC a new member joins", 3, "a b c", edits(issuedHere(otherTrust)), "scale-up: AddLearner c-new, AdmitPod c-new[a b c c-new]"},
		{"a restart where the CA is not cross-signed", 3, "a b:leads c", edits(issuedHere(overlap, notCrossSigned, otherTrust, volumes)), "rollout: RecreatePod a " + testVersion},
		{"the set of trusted CAs is unknown", 3, "a b c", edits(issuedHere(otherTrust, volumes, func(o *Observed) { o.Trust = "" })), "steady"},
	})
}

// TestStaticCAIsReplaced: members of a cluster with certificates that a user issues restart
// for the same reason.
func TestStaticCAIsReplaced(t *testing.T) {
	static := func(trust string) func(*Observed) {
		return func(o *Observed) {
			o.Trust = "now"
			o.Certificates = []certificates.Certificate{{Use: v1beta2.CertificateUsePeer, Secret: "s", State: certificates.Usable, NotBefore: testNow, NotAfter: testNow.Add(time.Hour)}}
			for i := range o.Pods {
				o.Pods[i].Trust = "now"
			}
			o.Pods[2].Trust, o.Pods[2].Accepts = trust, true
		}
	}
	rejects := func(o *Observed) { o.Pods[2].Accepts = false }
	refreshed := func(is bool) func(*Observed) {
		return func(o *Observed) {
			for i := range o.Pods {
				o.Pods[i].Certificates, o.Pods[i].Refreshed = "some", is
			}
		}
	}
	checkDecisions(t, []decision{
		{"a second CA is trusted", 3, "a:claim b:claim c:claim", edits(static("before")), "rollout: RecreatePod c " + testVersion},
		{"certificates of a CA before it was trusted", 3, "a:claim b:claim c:claim", edits(static("before"), rejects), "steady"},
		{"no other member restarts then either", 3, "a:claim b:claim c:claim", edits(static("before"), rejects, func(o *Observed) {
			o.Pods[0].Trust, o.Pods[0].Accepts = "before", true
		}), "steady"},
		{"no member accepts the next certificate of the controller: one restarts to trust its CA", 3, "a:claim,unknown b:claim,unknown c:claim,unknown", edits(static("before"), unreadSince(unresponsiveFor), func(o *Observed) {
			for i := range o.Pods {
				o.Pods[i].Trust, o.Pods[i].Accepts = "before", true // as the others show it
			}
		}), "repair: RecreatePod a " + testVersion + " unresponsive"},
		{"a pod of an earlier release does not say", 3, "a:claim b:claim c:claim", edits(static("")), "steady"},
		{"the same as ever", 3, "a:claim b:claim c:claim", edits(static("now")), "steady"},
		{"a certificate was renewed", 3, "a:claim b:claim c:claim", edits(static("now"), refreshed(false)), "steady: RefreshPod a, RefreshPod b, RefreshPod c"},
	})
}

// TestRestartsWaitForTrust: a member that serves is neither restarted nor replaced, whatever is declared, while another
// member rejects the certificates that it would show after that. Members that do not serve are repaired all the same.
func TestRestartsWaitForTrust(t *testing.T) {
	const newer = "3.6.12"
	distrusting := func(names ...string) func(*Observed) {
		return func(o *Observed) {
			o.Trust = "now"
			o.Certificates = []certificates.Certificate{{Use: v1beta2.CertificateUsePeer, Secret: "s", State: certificates.Usable, NotBefore: testNow, NotAfter: testNow.Add(time.Hour)}}
			for i := range o.Pods {
				o.Pods[i].Trust, o.Pods[i].Accepts = "now", true
				if slices.Contains(names, o.Pods[i].Name) {
					o.Pods[i].Trust, o.Pods[i].Accepts = "before", false
				}
			}
		}
	}
	withoutPVCs := func(o *Observed) {
		o.CA.CrossSigned = false
		for i := range o.Pods {
			o.Pods[i].Trust, o.Pods[i].Accepts, o.Pods[i].TrustsCA = "before", false, false
		}
	}
	unserved := func(o *Observed) {
		o.Cluster.Status.Conditions = append(o.Cluster.Status.Conditions, v1beta2.ClusterCondition{
			Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, Message: doNotServe + "a", LastUpdateTime: o.Now.Add(-unresponsiveFor).Format(time.RFC3339),
		})
	}
	checkDecisions(t, []decision{
		{"a newer version", 3, "a:claim b:claim,leads c:claim", edits(distrusting("b", "c"), wants(newer)), "rollout: wait CANotTrusted"},
		{"a newer version when all trust each other", 3, "a:claim b:claim,leads c:claim", edits(distrusting(), wants(newer)), "rollout: UpgradePod a " + newer},
		{"a changed template", 3, "a:claim,stale b:claim,leads c:claim", edits(distrusting("c")), "rollout: wait CANotTrusted"},
		{"a requested restart", 3, "a:claim,unasked b:claim,leads c:claim", edits(distrusting("c"), asks), "rollout: wait CANotTrusted"},
		{"a requested replacement", 3, "a:claim b:claim,leads c:claim", edits(distrusting("c"), replaceAsked("a")), "rollout: wait CANotTrusted"},
		{"a replacement whose successor votes", 3, "a:claim b:claim,leads c:claim d:claim", edits(distrusting("c"), replaceAsked("a")), "scale-down: LabelPod a leaving"},
		{"members without PVCs of a lost CA", 3, "a:stale b:leads c", edits(issuedHere(withoutPVCs)), "rollout: wait CANotTrusted"},
		{"the only one that rejects the others trusts them after the restart", 3, "a:claim b:claim,leads c:claim,stale", edits(distrusting("c")), "rollout: RecreatePod c " + testVersion},
		{"that one goes before those that it would reject", 3, "a:claim,stale b:claim,leads c:claim,stale", edits(distrusting("c")), "rollout: RecreatePod c " + testVersion},
		{"one that has not served for long", 3, "a:claim,stale,sick b:claim,leads c:claim", edits(distrusting("c"), unserved), "repair: RecreatePod a " + testVersion},
		{"one whose response is late", 3, "a:claim,stale,sick b:claim,leads c:claim", edits(distrusting("c")), "rollout: wait CANotTrusted"},
		{"one that does not run", 3, "a:claim,stale,down b:claim,leads c:claim", edits(distrusting("c")), "repair: RecreatePod a " + testVersion + " idle"},
		{"one without a pod", 3, "a:claim,nopod b:claim,leads c:claim", edits(distrusting("c")), "recreate-pods: CreatePod a[a b c]"},
		{"one that is missing", 3, "a:claim b:claim,leads", edits(distrusting("b")), "scale-up: AddLearner c-new, AdmitPod c-new[a b c-new]"},
	})
	o := observed(t, 3, "a:claim,stale b:claim,leads c:claim", distrusting("c"))
	if w := Decide(o).Wait; w == nil || !strings.HasPrefix(w.Message, "member a is neither restarted nor replaced while it serves: member c does not trust the CA") || !strings.HasPrefix(w.Remedy, "Put the former certificates back") {
		t.Errorf("it waits for %+v", w)
	}
}

// TestLostCertificateInStatus: "being issued" is only what the controller issues now. During a pause it issues no CA
// that members do not know, so the status says what is lost, and what ends that.
func TestLostCertificateInStatus(t *testing.T) {
	missing := func(i int) func(*Observed) {
		return func(o *Observed) {
			o.Certificates[i].State, o.Certificates[i].Message = certificates.Missing, "it does not exist"
		}
	}
	const lost = "it does not exist; while spec.paused is true"
	for _, test := range []struct {
		name   string
		edits  []func(*Observed)
		status corev1.ConditionStatus
		reason string
		says   string
	}{
		{"it is issued at once", edits(issuedHere(missing(1))), corev1.ConditionUnknown, "Issuing", "s-Peer is being issued"},
		{"it is issued although the cluster is paused", edits(issuedHere(missing(1)), pausedSpec), corev1.ConditionUnknown, "Issuing", "s-Peer is being issued"},
		{"the cluster is going away", edits(issuedHere(missing(1)), deleting), corev1.ConditionUnknown, "Issuing", "s-Peer"},
		{"the CA is issued at once", edits(issuedHere(missing(0))), corev1.ConditionUnknown, "Issuing", "s-CA is being issued"},
		{"the CA is not issued while the cluster is paused", edits(issuedHere(missing(0)), pausedSpec), corev1.ConditionFalse, "SecretMissing", lost},
		{"what ends that", edits(issuedHere(missing(0)), pausedSpec), corev1.ConditionFalse, "SecretMissing", "Set spec.paused=false, or restore Secret s-CA"},
	} {
		o := observed(t, 3, "a b c", test.edits...)
		if c := find(statusOf(o), v1beta2.ClusterConditionCertificatesValid); c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
			t.Errorf("%s: CertificatesValid is %+v, want %s (%s: %s)", test.name, c, test.status, test.reason, test.says)
		}
	}
}

// TestHiddenMemberVerifiesCertificates: a recovery member that no client has seen counts among those that must accept
// what a new CA signs. Once it is published, the cluster lists it.
func TestHiddenMemberVerifiesCertificates(t *testing.T) {
	t.Parallel()
	hidden := &Pod{Name: "r", Owned: true, Running: true}
	o := &Observed{Cluster: &v1beta2.EtcdCluster{}, RecoveryMember: RecoveryMember{Pod: hidden, HasPVC: true}}
	if pods := certificateInput(o).Pods; len(pods) != 1 || pods[0].Name != "r" || !pods[0].HasPVC {
		t.Errorf("hidden: %+v", pods)
	}
	o.Pods = []Pod{*hidden}
	if pods := certificateInput(o).Pods; len(pods) != 1 {
		t.Errorf("published: %+v", pods)
	}
}
