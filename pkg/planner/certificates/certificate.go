// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// State is whether a certificate can be used now.
type State int

// Values of State.
const (
	// Unknown: its Secret could not be read.
	Unknown State = iota
	// Missing: there is no such Secret.
	Missing
	// Incomplete: the Secret lacks an entry.
	Incomplete
	// Unusable: the Secret holds something that cannot be used.
	Unusable
	// Expired and NotYetValid: it is good at another time.
	Expired
	NotYetValid
	// NotOwned: the controller issues it, and a Secret of that name exists that is not owned
	// by the cluster.
	NotOwned
	// Usable: it is good now.
	Usable
)

// Certificate is what is known of one certificate and its Secret. Nothing here is
// secret.
type Certificate struct {
	Use    v1beta2.CertificateUse
	Secret string
	State  State
	// Message says for a reader why it cannot be used.
	Message string
	// OtherCA is true if only its CA is wrong: a program that trusts the CAs of its own Secret would accept it.
	OtherCA bool
	// What the certificate says; empty if there is none that can be read.
	Issuer, Serial      string
	NotBefore, NotAfter time.Time
	// EndsWithCA is true if NotAfter is the end of a CA that verifies it. It ends later itself.
	EndsWithCA bool
	// Renewal is when the controller renews it; zero if it does not, or only with the next CA.
	Renewal time.Time
	Issued  Issued
}

// Issued holds what is known of a certificate that the controller issued, beyond its
// Certificate.
type Issued struct {
	// Signed is true if the present CA signed it.
	Signed bool
	// BundleMatches is true if it comes with exactly the CAs that are to be trusted.
	BundleMatches bool
	// SANsMatch is true if its common name and subject alternative names are the declared ones.
	SANsMatch bool
}

// MayExist is true if the cluster has a Secret for the certificate, or may have one that could
// not be read.
func (c *Certificate) MayExist() bool {
	return c.State != Missing && c.State != NotOwned
}

// isAbsent is true if there is nothing that could be used, ever.
func (c *Certificate) isAbsent() bool {
	return c.State == Missing || c.State == Incomplete || c.State == Unusable
}

// isLost is true if nothing in the Secret can be used any more.
func (c *Certificate) isLost() bool { return c.isAbsent() || c.State == Expired }

// isDue is true for a certificate that the controller is to renew by now.
func (c *Certificate) isDue(now time.Time) bool { return !c.Renewal.IsZero() && !now.Before(c.Renewal) }

// soonFraction: a certificate expires soon when one soonFraction-th of its life is left.
// A certificate that is renewed in time, after two thirds, never comes that far.
const soonFraction = 5

// expiresSoon is true for a certificate that should have been renewed.
func (c *Certificate) expiresSoon(now time.Time) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return c.NotAfter.Sub(now) < life/soonFraction
}

// Reason is the State in one word.
func (c *Certificate) Reason() string {
	switch c.State {
	case Missing:
		return ReasonSecretMissing
	case Incomplete:
		return ReasonSecretIncomplete
	case Unusable:
		return ReasonCertificateUnusable
	case Expired:
		return ReasonCertificateExpired
	case NotYetValid:
		return ReasonCertificateNotYetValid
	case NotOwned:
		return ReasonNameConflict
	case Usable, Unknown:
	}
	return ReasonSecretUnreadable
}

// remediation says what would make a certificate usable.
func (o *Observed) remediation(c *Certificate) string {
	switch c.State {
	case Missing:
		return "Create Secret " + c.Secret + " in the namespace of the cluster." + o.withRunning(c)
	case Incomplete, Unusable:
		return "Correct Secret " + c.Secret + "."
	case Expired:
		if c.EndsWithCA && o.CA == nil {
			return renewCA + " " + o.restartForCA()
		}
		return "Put a new certificate into Secret " + c.Secret + "."
	case NotOwned:
		return "Delete Secret " + c.Secret + ", or give the cluster another name."
	case NotYetValid, Usable, Unknown:
	}
	return diagnosis.NoActionYet
}

// withRunning says what else to heed about a Secret that is missing while members run; empty while none runs. Pods mount
// the certificates of peers and servers only.
func (o *Observed) withRunning(c *Certificate) string {
	const accepted = " Members that run accept only a certificate of a CA that they trust."
	switch {
	case !slices.ContainsFunc(o.Pods, func(p Pod) bool { return p.Running }):
		return ""
	case c.Use == v1beta2.CertificateUsePeer || c.Use == v1beta2.CertificateUseServer:
		return accepted + " Their pods still have the former one mounted until the Secret exists: copy it first."
	default:
		return accepted
	}
}

// renewCA is what a user does about a CA in Secrets that only users write.
const renewCA = "Put the next certificate of that CA into each Secret that trusts it or has it in a chain. Before a CA with another key signs for the cluster, all members must trust it."

// restartForCA says how members come to trust a CA after the CA has ended that they know. etcd reads its trusted CAs only
// when it starts, and members that reject each other are no quorum, in which one could replace another. Members that have
// restarted before that end need nothing.
func (o *Observed) restartForCA() string {
	switch {
	case slices.ContainsFunc(o.Pods, func(p Pod) bool { return !p.HasPVC }):
		return "If members do not respond after some minutes, restart their containers in place. Delete no pod without a PVC: its data would go with it."
	case len(o.Pods) > 0:
		return "If members do not respond after some minutes, delete all pods at once. All data is on PVCs."
	default:
		return ""
	}
}

// explainIssued is Explain for a certificate that the controller issues.
func (o *Observed) explainIssued(c *Certificate) (reason, message, remediation string) {
	if o.isCutOff() && (c.isLost() || c.Use == v1beta2.CertificateUseCA) {
		return ReasonPeerCertificateLost,
			c.Message + "; the CA and the certificate of the peers were lost together. Running members serve with what they have mounted and accept nothing that another CA signs. Without PVCs they cannot restart together",
			o.restorePeer()
	}
	if c.State == NotYetValid && c.Use == v1beta2.CertificateUseCA {
		remedy := o.awaitValidity(c)
		return c.Reason(), c.Message + "; it was created while a clock was ahead, or the clock of Kubernetes is behind now. " + remedy, remedy
	}
	if why, remedy := o.withheld(c); why != "" && c.isLost() {
		return c.Reason(), c.Message + "; " + why + " " + remedy, remedy
	}
	if p := o.untrusting(); p != nil && c.isLost() && len(o.RestartTogether()) == 0 {
		// No member restarts by itself, so what waits for restarts would wait for ever.
		return ReasonCANotTrusted, c.Message + "; it is issued as soon as all members accept it: " + o.notTrusted(p), o.regainTrust()
	}
	if p := o.rejecting(); p != nil && c.isLost() {
		return ReasonTrustPending, c.Message + "; it is issued as soon as all members accept it: " + o.trustPending(p), diagnosis.NoActionYet
	}
	return c.Reason(), c.Message, o.remediation(c)
}

// withheld says why a declaration of the user keeps the controller from issuing anything in place of a lost certificate,
// and what ends that; empty if none does.
func (o *Observed) withheld(c *Certificate) (why, remedy string) {
	switch {
	case o.Hibernated:
		return "the controller issues it when the cluster has members again.", "No action needed before spec.size is above 0."
	case o.Paused && o.Bootstrapped:
		return "while spec.paused is true the controller issues only what all members accept. Members serve on. " +
				"A pod that starts waits for each Secret that it mounts, and nothing is renewed without the CA.",
			"Set spec.paused=false, or restore Secret " + c.Secret + " from a backup of Secrets."
	case o.Paused:
		return "while spec.paused is true the controller issues nothing for a cluster that has not served yet.", endPause
	default:
		return "", ""
	}
}

// awaitValidity says what ends the wait for a CA that is valid only later. Members may serve with it where
// their clocks differ, so no other takes its place by itself.
func (o *Observed) awaitValidity(c *Certificate) string {
	wait := "Correct the clock if it is behind, or wait until " + c.NotBefore.UTC().Format(time.RFC3339) + "."
	switch {
	case o.Paused:
		return wait
	case !o.Bootstrapped && len(o.Pods) > 0:
		return wait + " Or delete pod " + o.Pods[0].Name + ", which no client has written to: the controller then creates another CA."
	case slices.ContainsFunc(o.Pods, func(p Pod) bool { return !p.HasPVC }):
		return wait
	default:
		var names []string
		for i := range o.Certificates {
			names = append(names, o.Certificates[i].Secret)
		}
		return wait + " Or delete the Secrets " + strings.Join(names, ", ") + " together: the controller then issues all of them again, and all members restart together, which is an outage of seconds."
	}
}

// endPause is what a user does so that the controller acts again.
const endPause = "Set spec.paused=false."

// Status returns what the status of the cluster says of the certificate.
func (c *Certificate) Status() v1beta2.CertificateStatus {
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
	case Usable:
		s.Usable = corev1.ConditionTrue
	case Unknown:
		s.Usable = corev1.ConditionUnknown
	case Missing, Incomplete, Unusable, Expired, NotYetValid, NotOwned:
	}
	return s
}

// seconds cuts a time to what the API keeps of it; nil for none.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	cut := metav1.NewTime(t.Truncate(time.Second))
	return &cut
}
