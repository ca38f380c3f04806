// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// CertificateState is whether a certificate can be used now.
type CertificateState int

// Values of CertificateState.
const (
	// CertificateUnknown: its secret could not be read.
	CertificateUnknown CertificateState = iota
	// CertificateMissing: there is no such secret.
	CertificateMissing
	// CertificateIncomplete: the secret lacks an entry.
	CertificateIncomplete
	// CertificateUnusable: the secret holds something that cannot be used.
	CertificateUnusable
	// CertificateExpired and CertificateNotYetValid: it is good at another time.
	CertificateExpired
	CertificateNotYetValid
	// CertificateForeign: it shall be issued here, and a secret of that name belongs to
	// somebody else.
	CertificateForeign
	// CertificateUsable: it is good now.
	CertificateUsable
)

// Certificate is what is known of one certificate and its secret. Nothing here is
// secret.
type Certificate struct {
	Use    v1beta2.CertificateUse
	Secret string
	State  CertificateState
	// Message says for a reader why it cannot be used.
	Message string
	// What the certificate says; empty if there is none that can be read.
	Issuer, Serial      string
	NotBefore, NotAfter time.Time
	// Renewal is when the controller renews it; zero if somebody else does.
	Renewal time.Time
	Issued  Issued
}

// reason is the State in one word.
func (c *Certificate) reason() string {
	switch c.State {
	case CertificateMissing:
		return "SecretMissing"
	case CertificateIncomplete:
		return "SecretIncomplete"
	case CertificateUnusable:
		return "CertificateUnusable"
	case CertificateExpired:
		return "CertificateExpired"
	case CertificateNotYetValid:
		return "CertificateNotYetValid"
	case CertificateForeign:
		return "NameTaken"
	case CertificateUsable:
		return "Usable"
	case CertificateUnknown:
	}
	return "SecretUnreadable"
}

// unblock says what would make it usable.
func (c *Certificate) unblock() string {
	switch c.State {
	case CertificateMissing:
		return "make secret " + c.Secret + " in the namespace of the cluster"
	case CertificateIncomplete, CertificateUnusable:
		return "correct secret " + c.Secret
	case CertificateExpired:
		return "put a new certificate into secret " + c.Secret
	case CertificateForeign:
		return "delete secret " + c.Secret + ", or give the cluster another name"
	case CertificateNotYetValid, CertificateUsable, CertificateUnknown:
	}
	return "nothing, unless it lasts"
}

// unusable returns the first certificate that cannot be used, or nil; one whose secret
// is somebody else's before all.
func (o *Observed) unusable() *Certificate {
	if c := o.takenSecret(); c != nil {
		return c
	}
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.State != CertificateUsable {
			return c
		}
	}
	return nil
}

// ruleCertificates waits while a certificate cannot be used: a member that is made
// now could not speak to the others, and to run without encryption would be worse
// than not to run. Members that run are left as they are. Going to sleep needs none.
func ruleCertificates(o *Observed) (Plan, bool) {
	c := o.unusable()
	if c == nil || o.size() == 0 {
		return Plan{}, false
	}
	if len(o.issue(Plan{})) > 0 {
		return Plan{RequeueAfter: recheckIssued}, true
	}
	reason, message, unblock := o.explain(c)
	after := recheckWaiting
	if o.CertManager != nil && o.CertManager.Served {
		after = recheckQuorum // nothing tells when it has issued them
	}
	return wait(after, reason, message, unblock), true
}

// soonFraction of its life is what a certificate has left when it is said to expire
// soon. Who renews in time, after two thirds, never comes that far.
const soonFraction = 5

// soon is true for a certificate that should have been renewed.
func (c *Certificate) soon(now time.Time) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return c.NotAfter.Sub(now) < life/soonFraction
}

// certificatesValid is about clusters with certificates only.
func certificatesValid(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionCertificatesValid
	if len(o.Certificates) == 0 {
		return v1beta2.ClusterCondition{Type: t}
	}
	if c := o.unusable(); c != nil {
		if len(o.issue(Plan{})) > 0 {
			return is(t, corev1.ConditionUnknown, "Issuing", "the certificate in secret "+c.Secret+" is just issued: "+c.Message)
		}
		status := corev1.ConditionFalse
		if c.State == CertificateUnknown {
			status = corev1.ConditionUnknown
		}
		reason, message, _ := o.explain(c)
		return is(t, status, reason, message)
	}
	if p := o.stranger(); p != nil {
		return is(t, corev1.ConditionFalse, "AuthorityNotTrusted",
			"member "+p.Name+" is not known to trust who has signed the certificates of now, and refuses them at its next connection: put those of before back, beside both authorities, until no restart is pending; or delete all pods, if they have volumes, to start with the new ones only")
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && o.distrusts(p) {
			return is(t, corev1.ConditionTrue, "RestartPending",
				"member "+p.Name+" goes by the authorities that were trusted when it started; it restarts when that is safe, and reads those of now")
		}
	}
	if o.CertManager.absent() {
		return is(t, corev1.ConditionTrue, reasonNoCertManager, noCertManager+"; nobody renews what is there")
	}
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.soon(o.Now) {
			return is(t, corev1.ConditionTrue, "ExpiresSoon",
				"the certificate in secret "+c.Secret+" is valid until "+c.NotAfter.UTC().Format(time.RFC3339)+" only")
		}
	}
	return is(t, corev1.ConditionTrue, "AllUsable", "")
}

func certificateStatuses(o *Observed) []v1beta2.CertificateStatus {
	var list []v1beta2.CertificateStatus
	for i := range o.Certificates {
		c := &o.Certificates[i]
		s := v1beta2.CertificateStatus{
			Use:          c.Use,
			SecretName:   c.Secret,
			Issuer:       c.Issuer,
			SerialNumber: c.Serial,
			NotBefore:    seconds(c.NotBefore),
			NotAfter:     seconds(c.NotAfter),
			RenewalTime:  seconds(c.Renewal),
			Usable:       corev1.ConditionFalse,
			Message:      c.Message,
		}
		switch c.State {
		case CertificateUsable:
			s.Usable = corev1.ConditionTrue
		case CertificateUnknown:
			s.Usable = corev1.ConditionUnknown
		case CertificateMissing, CertificateIncomplete, CertificateUnusable, CertificateExpired, CertificateNotYetValid,
			CertificateForeign:
		}
		list = append(list, s)
	}
	return list
}

// seconds cuts a time to what the API keeps of it; nil for none.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	cut := metav1.NewTime(t.Truncate(time.Second))
	return &cut
}
