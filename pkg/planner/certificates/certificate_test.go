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

// TestRemedyOfMissingSecret: only pods that run have a certificate mounted, and only those of peers and servers.
func TestRemedyOfMissingSecret(t *testing.T) {
	const (
		create   = "Create Secret s in the namespace of the cluster."
		accepted = create + " Members that run accept only a certificate of a CA that they trust."
		mounted  = accepted + " Their pods still have the former one mounted until the Secret exists: copy it first."
	)
	noPods := func(o *Observed) { o.Pods = nil }
	for _, test := range []struct {
		name string
		use  v1beta2.CertificateUse
		edit edit
		want string
	}{
		{"peers, members run", v1beta2.CertificateUsePeer, func(*Observed) {}, mounted},
		{"servers, members run", v1beta2.CertificateUseServer, func(*Observed) {}, mounted},
		{"controller, members run", v1beta2.CertificateUseOperator, func(*Observed) {}, accepted},
		{"peers, no pod exists", v1beta2.CertificateUsePeer, noPods, create},
		{"peers, pods wait for the Secret", v1beta2.CertificateUsePeer, noneRuns, create},
		{"controller, no pod exists", v1beta2.CertificateUseOperator, noPods, create},
	} {
		if _, _, got := static(test.edit).Explain(&Certificate{Use: test.use, Secret: "s", State: Missing}); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestRemedyOfEndedCA: a new certificate of a CA that has ended would help nothing.
func TestRemedyOfEndedCA(t *testing.T) {
	withCA := certificate(0, func(c *Certificate) { c.State, c.EndsWithCA = Expired, true })
	for _, test := range []struct {
		name  string
		edits []edit
		want  string
	}{
		{"all members have PVCs", []edit{withCA}, renewCA + " If members do not respond after some minutes, delete all pods at once."},
		{"a member has no PVC", []edit{withCA, withoutPVC}, renewCA + " If members do not respond after some minutes, restart their containers in place."},
		{"it has ended itself", []edit{inState(0, Expired)}, "Put a new certificate into Secret s-Peer."},
	} {
		o := static(test.edits...)
		if _, _, got := o.Explain(&o.Certificates[0]); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestStates goes through the states of a certificate that nothing issues: what the status says,
// and what would help.
func TestStates(t *testing.T) {
	for _, test := range []struct {
		state  State
		usable corev1.ConditionStatus
		exists bool
		reason string
		remedy string
	}{
		{Unknown, corev1.ConditionUnknown, true, "SecretUnreadable", "No action needed"},
		{Missing, corev1.ConditionFalse, false, "SecretMissing", "Create Secret s-Peer in the namespace of the cluster. Members that run accept only a certificate of a CA that they trust. Their pods still have the former one mounted until the Secret exists: copy it first."},
		{Incomplete, corev1.ConditionFalse, true, "SecretIncomplete", "Correct Secret s-Peer."},
		{Unusable, corev1.ConditionFalse, true, "CertificateUnusable", "Correct Secret s-Peer."},
		{Expired, corev1.ConditionFalse, true, "CertificateExpired", "Put a new certificate into Secret s-Peer."},
		{NotYetValid, corev1.ConditionFalse, true, "CertificateNotYetValid", "No action needed"},
		{NotOwned, corev1.ConditionFalse, false, "NameConflict", "Delete Secret s-Peer, or give the cluster another name."},
		{Usable, corev1.ConditionTrue, true, "SecretUnreadable", "No action needed"},
	} {
		o := static(inState(0, test.state))
		c := &o.Certificates[0]
		reason, message, remedy := o.Explain(c)
		if reason != test.reason || reason != c.Reason() || message != "it is wrong" || !strings.HasPrefix(remedy, test.remedy) {
			t.Errorf("state %d: %s, %q, %q; want %s, %q", test.state, reason, message, remedy, test.reason, test.remedy)
		}
		if s := c.Status(); s.Usable != test.usable || s.Message != "it is wrong" {
			t.Errorf("state %d: the status says %+v, want usable %s", test.state, s, test.usable)
		}
		if c.MayExist() != test.exists {
			t.Errorf("state %d: MayExist is %t", test.state, c.MayExist())
		}
		if unusable := o.FirstUnusable(); (unusable == c) != (test.state != Usable) {
			t.Errorf("state %d: the first certificate that cannot be used is %+v", test.state, unusable)
		}
	}
}

func TestCertificateStatus(t *testing.T) {
	c := Certificate{
		Use: v1beta2.CertificateUseServer, Secret: "s", State: Usable, Issuer: "me", Serial: "1f",
		NotBefore: testNow.Add(time.Millisecond), NotAfter: testNow.Add(time.Hour),
	}
	s := c.Status()
	if s.Use != c.Use || s.SecretName != "s" || s.Issuer != "me" || s.SerialNumber != "1f" || !s.NotBefore.Time.Equal(testNow) ||
		!s.NotAfter.Time.Equal(c.NotAfter) || s.RenewalTime != nil {
		t.Errorf("the status says %+v", s)
	}
	c.Renewal = testNow
	if s := c.Status(); s.RenewalTime == nil || !s.RenewalTime.Time.Equal(testNow) {
		t.Errorf("the status says that it is renewed at %v", s.RenewalTime)
	}
}
