// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// edit changes something about a cluster.
type edit func(*Observed)

// observed returns a bootstrapped cluster with pods a, b and c that trust the present CAs, and
// with usable certificates for these uses.
func observed(uses []v1beta2.CertificateUse, edits ...edit) *Observed {
	o := &Observed{Now: testNow, Trust: "now", Bootstrapped: true, Linearizable: true, MembersVerified: true, CanAuthenticate: true}
	for _, use := range uses {
		o.Certificates = append(o.Certificates, Certificate{
			Use: use, Secret: "s-" + string(use), State: Usable, NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(3 * time.Hour),
		})
	}
	for _, name := range []string{"a", "b", "c"} {
		o.Pods = append(o.Pods, Pod{Name: name, UID: "pod-" + name, Trust: "now", Accepts: true, TrustsCA: true, TrustsPrevious: true, Running: true, HasPVC: true, Notified: true, Refreshed: true})
	}
	for _, e := range edits {
		e(o)
	}
	return o
}

// issued returns a cluster whose certificates the controller issues.
func issued(edits ...edit) *Observed {
	own := func(o *Observed) {
		o.CA = &CA{CrossSigned: true, Since: testNow.Add(-time.Hour)}
		for i := range o.Certificates {
			o.Certificates[i].Renewal, o.Certificates[i].Issued = testNow.Add(time.Hour), Issued{Signed: true, BundleMatches: true, SANsMatch: true}
		}
	}
	return observed([]v1beta2.CertificateUse{v1beta2.CertificateUseCA, v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer}, append([]edit{own}, edits...)...)
}

// static returns a cluster whose certificates a user or another program issues.
func static(edits ...edit) *Observed {
	return observed([]v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer}, edits...)
}

// requested returns a cluster whose certificates cert-manager issues.
func requested(edits ...edit) *Observed {
	requests := func(o *Observed) {
		o.CertManager = &CertManager{Served: true}
		for _, c := range o.Certificates {
			o.CertManager.Requests = append(o.CertManager.Requests, Request{Use: c.Use, Name: c.Secret, Exists: true, Owned: true})
		}
	}
	return static(append([]edit{requests}, edits...)...)
}

// certificate changes what is known of one certificate.
func certificate(i int, change func(*Certificate)) edit {
	return func(o *Observed) { change(&o.Certificates[i]) }
}

// inState says that a certificate cannot be used.
func inState(i int, s State) edit {
	return certificate(i, func(c *Certificate) { c.State, c.Message = s, "it is wrong" })
}

// trusts has pod b trust these CAs.
func trusts(names string) edit {
	return func(o *Observed) { o.Pods[1].Trust, o.Pods[1].TrustsCA = names, false }
}

// allTrusted has every pod trust the CAs of before, as after the Secret of the CA was lost.
func allTrusted(o *Observed) {
	for i := range o.Pods {
		o.Pods[i].Trust, o.Pods[i].TrustsCA = "before", false
	}
}

// olderCA is after the Secret of an older CA was put back: no member trusts it, nor the one that has
// cross-signed it.
func olderCA(o *Observed) {
	for i := range o.Pods {
		o.Pods[i].TrustsCA, o.Pods[i].TrustsPrevious = false, false
	}
}

// lacking has the CA's Secret not list what members need.
func lacking(o *Observed) { o.CA.Lacks = true }

// withoutPVC has pod c keep its data in the pod.
func withoutPVC(o *Observed) { o.Pods[2].HasPVC = false }

// describe writes steps on one line.
func describe(s Steps) string {
	var parts []string
	if s.IssueCA != nil {
		parts = append(parts, strings.TrimSpace(string(s.IssueCA.Mode)+" CA "+s.IssueCA.Request))
	}
	for _, c := range s.Issue {
		parts = append(parts, "issue "+string(c.Use)+" "+string(c.Change))
	}
	if s.DropOldCAs {
		parts = append(parts, "drop old CAs")
	}
	for _, use := range s.Request {
		parts = append(parts, "request "+string(use))
	}
	for _, p := range s.Refresh {
		parts = append(parts, "refresh "+p.UID)
	}
	return strings.Join(parts, ", ")
}
