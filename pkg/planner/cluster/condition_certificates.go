// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// certificatesValid is about clusters with certificates only.
func certificatesValid(o *Observed, _ Plan) v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionCertificatesValid
	if len(o.Certificates) == 0 {
		return v1beta2.ClusterCondition{Type: t}
	}
	if c := o.unusable(); c != nil {
		if len(o.issue(Plan{})) > 0 {
			return is(t, corev1.ConditionUnknown, ReasonIssuing, "the certificate in Secret "+c.Secret+" is being issued: "+c.Message)
		}
		status := corev1.ConditionFalse
		if c.State == CertificateUnknown {
			status = corev1.ConditionUnknown
		}
		reason, message, _ := o.explain(c)
		return is(t, status, reason, message)
	}
	if p := o.untrusting(); p != nil {
		return is(t, corev1.ConditionFalse, ReasonCANotTrusted,
			"member "+p.Name+" does not trust the CA that signed the present certificates, and rejects them at its next connection. Put the former certificates back, with both CAs in the bundle, until no restart is pending. Or, if the members have PVCs, delete all pods so that they start with the new certificates only.")
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Owned && !p.gone() && o.distrusts(p) {
			return is(t, corev1.ConditionTrue, ReasonRestartPending,
				"member "+p.Name+" trusts the CAs that it read when it started. It restarts when that is safe, and then trusts the present ones.")
		}
	}
	if o.CertManager.absent() {
		return is(t, corev1.ConditionTrue, ReasonCertManagerMissing, noCertManager+"; nothing renews the certificates that exist")
	}
	for i := range o.Certificates {
		if c := &o.Certificates[i]; c.soon(o.Now) {
			return is(t, corev1.ConditionTrue, ReasonExpiresSoon,
				"the certificate in Secret "+c.Secret+" is valid until "+c.NotAfter.UTC().Format(time.RFC3339)+" only")
		}
	}
	return is(t, corev1.ConditionTrue, ReasonAllUsable, "")
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
			CertificateNotOwned:
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

// soonFraction: a certificate expires soon when one soonFraction-th of its life is left.
// A certificate that is renewed in time, after two thirds, never comes that far.
const soonFraction = 5
