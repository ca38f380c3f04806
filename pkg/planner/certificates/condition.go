// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Condition computes the condition CertificatesValid. A cluster without certificates has none:
// its Status is empty then.
func (o *Observed) Condition() v1beta2.ClusterCondition {
	const t = v1beta2.ClusterConditionCertificatesValid
	if len(o.Certificates) == 0 {
		return v1beta2.ClusterCondition{Type: t}
	}
	if c := o.FirstUnusable(); c != nil {
		if o.isIssuingFor(c) {
			return is(t, corev1.ConditionUnknown, ReasonIssuing, "the certificate in Secret "+c.Secret+" is being issued: "+c.Message)
		}
		status := corev1.ConditionFalse
		if c.State == Unknown || o.CA != nil && o.Paused && !o.Bootstrapped {
			// A cluster that was created paused has lost nothing.
			status = corev1.ConditionUnknown
		}
		reason, message, _ := o.Explain(c)
		return is(t, status, reason, message)
	}
	if p := o.untrusting(); p != nil {
		return is(t, corev1.ConditionFalse, ReasonCANotTrusted, o.notTrusted(p))
	}
	if p := o.rejecting(); p != nil {
		return is(t, corev1.ConditionFalse, ReasonTrustPending, o.trustPending(p))
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; o.Distrusts(p.Trust) {
			return is(t, corev1.ConditionTrue, ReasonRestartPending,
				"member "+p.Name+" trusts the CAs that it read when it started. It restarts when that is safe, and then trusts the present ones."+o.restartsAfterPause())
		}
	}
	if ca := o.certificateOfCA(); ca != nil && o.comesBack(ca) {
		return is(t, corev1.ConditionFalse, ReasonCAPutBack, o.putBackAgain())
	}
	if o.CertManager.isAbsent() {
		return is(t, corev1.ConditionTrue, ReasonCertManagerMissing, noCertManager+"; nothing renews the certificates that exist")
	}
	if r := o.CertManager.taken(); r != nil {
		why, remedy := r.explainTaken()
		return is(t, corev1.ConditionTrue, ReasonNameConflict, why+"; nothing renews the certificate in it. "+remedy)
	}
	if c := o.first(func(c *Certificate) bool { return c.expiresSoon(o.Now) }); c != nil {
		return is(t, corev1.ConditionTrue, ReasonExpiresSoon,
			"the certificate in Secret "+c.Secret+" is valid until "+c.NotAfter.UTC().Format(time.RFC3339)+" only"+o.awaitedByNextCA(c)+o.endsWithCA(c))
	}
	return is(t, corev1.ConditionTrue, ReasonAllUsable, o.overlapWait())
}

// rejecting returns a pod whose member rejects what the CA of the cluster signs, or nil.
func (o *Observed) rejecting() *Pod {
	if !o.HasUsableCA() || o.isAccepted() {
		return nil
	}
	return o.awaitsCA()
}

// awaitedByNextCA says what must happen before another CA takes over from a CA that expires; empty for
// other certificates.
func (o *Observed) awaitedByNextCA(c *Certificate) string {
	switch i := o.firstOtherTrust(); {
	case c.Use != v1beta2.CertificateUseCA:
		return ""
	case i >= 0:
		return ". The next CA takes over when member " + o.Pods[i].Name + " has restarted"
	case o.CA.Overlap:
		return ". The next CA takes over when the CA before the present one is not trusted any more: " + o.overlapWait()
	default:
		return ""
	}
}

// endsWithCA says what keeps a certificate from ending with a CA, before its own end; empty if it does not. A renewal
// before the issuer has the next certificate of its CA would change nothing.
func (o *Observed) endsWithCA(c *Certificate) string {
	const ends = ": a CA that verifies it ends then"
	switch {
	case !c.EndsWithCA || o.CA != nil:
		return ""
	case o.CertManager != nil:
		return ends + ", and " + renewsLater + ". First see that the CA of the issuer is valid for longer and has kept its key: " +
			"members reject at once what a CA with another key signs. " + o.renewAll() + o.restartsAfterPause()
	default:
		return ends + ". " + renewCA + o.restartsAfterPause()
	}
}

func (o *Observed) notTrusted(p *Pod) string { return rejects(p) + ". " + o.regainTrust() }

func rejects(p *Pod) string {
	return "member " + p.Name + " does not trust the CA that signed the present certificates, and rejects them at its next connection"
}

// regainTrust says what lets members trust each other again.
func (o *Observed) regainTrust() string {
	switch {
	case o.CA == nil:
		return "Put the former certificates back, with both CAs in the bundle, until no restart is pending. Or, if the members have PVCs, delete all pods so that they start with the new certificates only."
	case len(o.RestartTogether()) > 0 && o.Paused:
		return "All members must restart together, and none restarts while spec.paused is true. " + endPause + " All data is on PVCs, and the outage lasts seconds."
	case len(o.RestartTogether()) > 0:
		return "All members restart together, which is an outage of seconds; all data is on PVCs."
	default:
		return "Members without PVCs do not restart together. " + o.restorePeer()
	}
}

// restorePeer says what helps where no certificate is left that members accept from each other. One that
// they accept is enough: the next CA takes over while that is in use. A backup of the data needs one that
// they accept from a client.
func (o *Observed) restorePeer() string {
	remedy := "Restore Secret " + o.ofUse(v1beta2.CertificateUsePeer).Secret + " from a backup of Secrets that was made after the last rotation of the CA. Without one, "
	if o.CanAuthenticate {
		return remedy + "back up the cluster and restore it into a new cluster."
	}
	return remedy + "restore the last backup of the cluster into a new cluster: members accept no client that could back up what was written since."
}

func (o *Observed) trustPending(p *Pod) string {
	by := ""
	if o.CA.Writer != "" {
		by = ", last written by " + o.CA.Writer
	}
	return "the CA before the present one was lost with its key, or an older CA was put back into Secret " + o.certificateOfCA().Secret + by +
		": member " + p.Name + " does not trust the present one before it restarts." + o.restartsAfterPause()
}

// putBackAgain says which program puts an older CA back each time, and what ends that.
func (o *Observed) putBackAgain() string {
	writer, secret := o.CA.Writer, o.certificateOfCA().Secret
	if writer == "" {
		writer = "another program"
	}
	return "after each of the last rotations an older CA came back into Secret " + secret + ", last written by " + writer +
		". That CA signs, and none replaces it, because members would restart again. Exclude Secret " + secret + " from what " + writer +
		" writes, then request another rotation with `kubectl etcd rotate-ca`."
}

// restartsAfterPause says that a pause keeps members from restarting; empty without a pause.
func (o *Observed) restartsAfterPause() string {
	if !o.Paused {
		return ""
	}
	return " No member restarts while spec.paused is true. " + endPause
}

func is(t v1beta2.ClusterConditionType, status corev1.ConditionStatus, reason, message string) v1beta2.ClusterCondition {
	return v1beta2.ClusterCondition{Type: t, Status: status, Reason: reason, Message: message}
}
