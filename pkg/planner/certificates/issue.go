// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Steps are what to do now about certificates.
type Steps struct {
	// IssueCA is set if the controller issues a CA.
	IssueCA *IssueCA
	// Issue lists the certificates that the controller issues.
	Issue []IssueCertificate
	// DropOldCAs ends the trust in every CA but the present one.
	DropOldCAs bool
	// Request lists the uses whose Certificate objects the controller creates or repairs.
	Request []v1beta2.CertificateUse
	// Refresh lists the pods whose kubelets look at once for the present content of the volumes.
	Refresh []Pod
}

// IssueCA creates a CA. Request is the rotation request that it meets, if any.
type IssueCA struct {
	Request string
	Mode    CAMode
}

// CAMode says what happens to the CA before.
type CAMode string

// Values of CAMode.
const (
	// CAFirst: no usable CA exists.
	CAFirst CAMode = "First"
	// CASuccessor: the new CA takes over from the present one, which stays trusted.
	CASuccessor CAMode = "Successor"
	// CAKept: the CA whose Secret was lost is written back from memory.
	CAKept CAMode = "Kept"
	// CAAgain: the present CA is valid only later, as one that was created while a clock was ahead, and no
	// member was started with it. Another takes its place, and the present one is not trusted.
	CAAgain CAMode = "Again"
	// CAReturned: an older CA was put back into the Secret. It signs from now on, and the CAs that members
	// need until they trust it stay trusted.
	CAReturned CAMode = "Returned"
)

// IssueCertificate issues the certificate for one use.
type IssueCertificate struct {
	Use    v1beta2.CertificateUse
	Change Change
}

// Change says what of a certificate is new.
type Change string

// Values of Change.
const (
	// ChangeAll: the certificate is signed again.
	ChangeAll Change = "All"
	// ChangeBundle: the certificate stays, and only what stands beside it changes.
	ChangeBundle Change = "Bundle"
	// ChangeLost: the certificate is signed again although members that run may reject it. It was
	// lost, and without it no member can start to trust the present CA.
	ChangeLost Change = "Lost"
	// ChangeStandIn: the certificate of the controller was lost, and members reject what the present CA
	// signs. A copy of another certificate that they accept takes its place until they trust that CA. The
	// pods of backups and recoveries mount this Secret, and without a quorum no member restarts to trust
	// the CA: they would wait for ever.
	ChangeStandIn Change = "StandIn"
)

// clientGrace is how long an old CA stays trusted after every member has a certificate of
// the new one. Clients need that time: the controller does not see what they hold.
const clientGrace = 24 * time.Hour

// Decide says what to do now.
func (o *Observed) Decide() Steps {
	s := o.issue()
	s.Request = o.requests()
	s.Refresh = append(s.Refresh, o.refresh()...)
	return s
}

// IsIssuing is true if the controller issues certificates now, or ends the trust in an old CA.
func (o *Observed) IsIssuing() bool {
	s := o.issue()
	return s.IssueCA != nil || len(s.Issue) > 0 || s.DropOldCAs || len(s.Refresh) > 0
}

// isIssuingFor is true if the controller issues a certificate now, or the CA that signs it.
func (o *Observed) isIssuingFor(c *Certificate) bool {
	s := o.issue()
	return s.IssueCA != nil || slices.ContainsFunc(s.Issue, func(i IssueCertificate) bool { return i.Use == c.Use })
}

// issue returns the certificates to issue now, for a cluster that is not hibernated and
// has its own CA. Certificates are issued again long before they expire.
func (o *Observed) issue() Steps {
	ca := o.certificateOfCA()
	if ca == nil || o.Deleting || o.Hibernated {
		return Steps{}
	}
	if o.Paused {
		return o.renewWhilePaused(ca)
	}
	switch {
	case ca.State == NotYetValid && o.isUnused():
		return Steps{IssueCA: &IssueCA{Request: o.RotateCA, Mode: CAAgain}}
	case ca.State == Unknown || ca.State == NotYetValid || ca.State == NotOwned:
		return Steps{}
	case ca.isAbsent() && o.CA.Kept:
		return Steps{IssueCA: &IssueCA{Request: o.CA.Request, Mode: CAKept}}
	case ca.State == Usable && o.CA.Lacks:
		return Steps{IssueCA: &IssueCA{Request: o.CA.Request, Mode: CAReturned}}
	case o.isCutOff():
		return Steps{Issue: slices.DeleteFunc(o.issueLeaves(), func(i IssueCertificate) bool { return i.Change != ChangeStandIn })}
	case ca.State != Usable:
		return Steps{IssueCA: &IssueCA{Request: o.RotateCA, Mode: CAFirst}}
	case o.canReplaceCA() && o.isRotationDue(ca):
		return Steps{IssueCA: &IssueCA{Request: o.RotateCA, Mode: CASuccessor}}
	}
	if leaves := o.issueLeaves(); len(leaves) > 0 {
		return Steps{Issue: leaves}
	}
	// A pod that is admitted now may present the certificate that was mounted when it was
	// prepared, until its kubelet looks at the Secret again.
	if o.CA.Overlap && !o.AddsMember {
		return o.endOverlap()
	}
	return Steps{}
}

// renewWhilePaused renews certificates that expire, and writes lost ones again. A pause must not end
// what members that run do for clients, or keep one from starting again in its pod. Nothing restarts for
// a certificate: etcd reads a new one by itself, and members accept what signs it. Everything else
// waits for the end of the pause, also a CA that members do not know.
func (o *Observed) renewWhilePaused(ca *Certificate) Steps {
	switch {
	case !o.Bootstrapped:
		return Steps{}
	case ca.isAbsent() && o.CA.Kept:
		return Steps{IssueCA: &IssueCA{Request: o.CA.Request, Mode: CAKept}}
	case ca.State != Usable:
		return Steps{}
	case o.CA.Lacks:
		return Steps{IssueCA: &IssueCA{Request: o.CA.Request, Mode: CAReturned}}
	case o.canReplaceCA() && ca.isDue(o.Now) && !o.comesBack(ca):
		return Steps{IssueCA: &IssueCA{Request: o.CA.Request, Mode: CASuccessor}}
	}
	return Steps{Issue: o.issueLeaves()}
}

// isUnused is true if no member was ever started with the certificates of the cluster.
func (o *Observed) isUnused() bool { return !o.Bootstrapped && len(o.Pods) == 0 }

// canReplaceCA is true if a new CA may take over. Of two that are trusted the older one goes
// first. Members that do not know the present CA would not accept the one that it has cross-signed.
func (o *Observed) canReplaceCA() bool { return !o.CA.Overlap && o.allTrust() && o.isAccepted() }

// patientRotations is how often a CA is replaced for the same cause. Each time members restart. A program that
// puts the older Secret back each time would make them restart for ever.
const patientRotations = 5

// isRotationDue is true if another CA is to replace the present one: on request, or because that expires.
func (o *Observed) isRotationDue(ca *Certificate) bool {
	return (o.isRotationRequested() || ca.isDue(o.Now)) && !o.comesBack(ca)
}

// comesBack is true if the present CA was replaced too often for the same cause and came back each time. One
// that expires soon is replaced all the same: its end would be the end of all certificates.
func (o *Observed) comesBack(ca *Certificate) bool {
	repeated := o.isRotationRequested() && o.RequestRounds >= patientRotations || o.RenewalRounds >= patientRotations && ca.isDue(o.Now)
	return repeated && !ca.expiresSoon(o.Now)
}

// isRotationRequested is true for a request for a new CA that was not carried out yet. A request
// that no longer exists has no effect, as after the state of the API was rolled back.
func (o *Observed) isRotationRequested() bool {
	return o.RotateCA != "" && o.RotateCA != o.CA.Request
}

func (o *Observed) issueLeaves() []IssueCertificate {
	var leaves []IssueCertificate
	for i := range o.Certificates {
		c := &o.Certificates[i]
		if c.Use == v1beta2.CertificateUseCA || c.State == Unknown || c.State == NotOwned {
			continue
		}
		if change, due := o.LeafChange(c); due {
			leaves = append(leaves, IssueCertificate{Use: c.Use, Change: change})
		}
	}
	return leaves
}

// LeafChange returns what of a certificate that is not a CA is to be issued now, and whether
// anything is. The certificate must be one of a cluster with a usable CA, and its Secret must
// have been read.
func (o *Observed) LeafChange(c *Certificate) (change Change, due bool) {
	if o.Paused {
		return ChangeAll, (c.isLost() || c.State == Usable && c.isDue(o.Now)) && o.isAccepted()
	}
	accepted := o.isAccepted()
	switch {
	case c.isLost() && !accepted:
		return o.changeOfLost(c.Use)
	case c.isLost(), accepted && (!c.Issued.Signed || !c.Issued.SANsMatch || c.isDue(o.Now) || c.State == NotYetValid):
		// A clock that was ahead has issued what is not valid yet.
		return ChangeAll, true
	case !c.Issued.BundleMatches && !accepted:
		// Every client and member accepts the certificate as it is, and not yet a
		// certificate that the present CA signs.
		return ChangeBundle, true
	default:
		return ChangeAll, !c.Issued.BundleMatches
	}
}

// changeOfLost is what is issued for a lost certificate before every member accepts what the present CA
// signs. Pods mount those of peers and servers, so no member starts without them. The controller needs one
// that members accept. Every other one waits: members would reject it.
func (o *Observed) changeOfLost(use v1beta2.CertificateUse) (change Change, due bool) {
	switch use {
	case v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer:
		return ChangeLost, !o.isCutOff()
	case v1beta2.CertificateUseOperator:
		if o.CanAuthenticate {
			return ChangeStandIn, true
		}
		return ChangeLost, true
	case v1beta2.CertificateUseCA, v1beta2.CertificateUseClient:
	}
	return ChangeLost, false
}

// endOverlap drops the old CA once nothing presents a certificate that it signed: no
// member on the wire, and no client for as long as clients are given. A member that shows a
// certificate of the present CA may still trust only the old one, after the certificates of members were lost
// with it. Until it restarts, the controller reaches it with a certificate of the old CA.
func (o *Observed) endOverlap() Steps {
	if !o.Linearizable || o.CA.Since.IsZero() || !o.clientsFollow() || !o.isAccepted() {
		return Steps{}
	}
	if stale := slices.DeleteFunc(slices.Clone(o.Pods), func(p Pod) bool { return p.Refreshed }); len(stale) > 0 {
		return Steps{Refresh: stale}
	}
	return Steps{DropOldCAs: o.MembersVerified && !o.isGraceLeft()}
}

// isGraceLeft is true while clients may still need the old CA.
func (o *Observed) isGraceLeft() bool {
	return !o.isOldCAReleased() && o.Now.Before(o.CA.Since.Add(clientGrace))
}

// isOldCAReleased is true if a user says that no client needs the old CA. The request names the present CA, by its serial
// number or by the request that brought it, or the request for the next one, which waits. One that was carried out says
// nothing of the clients of a later CA: it is not taken back, and the controller replaces a CA by itself before it expires.
func (o *Observed) isOldCAReleased() bool {
	if o.DropOldCA == "" || o.DropOldCA == o.CA.Spent {
		return false
	}
	return o.DropOldCA == o.CA.Request || o.DropOldCA == o.certificateOfCA().Serial || o.IsDropForNext()
}

// IsDropForNext is true for a request to end the trust in an old CA that also is about a CA that is not issued yet.
// It ends one wait before that CA is there, and one after that.
func (o *Observed) IsDropForNext() bool {
	return o.DropOldCA == o.RotateCA && o.isRotationRequested()
}

// clientsFollow is true if no client presents a certificate that the present CA has not
// signed: members that trust only the present CA would reject it.
func (o *Observed) clientsFollow() bool { return o.clientOfOldCA() == nil }

// clientOfOldCA returns a client that presents a certificate that the present CA has not signed, or may do so; nil if
// none does.
func (o *Observed) clientOfOldCA() *Certificate {
	for i := range o.Clients {
		if c := &o.Clients[i]; c.MayExist() && !c.Issued.Signed {
			return c
		}
	}
	return nil
}

// overlapWait says what the end of the trust in an older CA waits for; empty if only the present CA is trusted. endOverlap
// decides.
func (o *Observed) overlapWait() string {
	if o.CA == nil || !o.CA.Overlap {
		return ""
	}
	const stays = "the CA before the present one stays trusted "
	// What members show is seen some time after the cluster is at rest, and the text does not change with it.
	const seen = "until every member was seen to show a certificate of the present one"
	switch c := o.clientOfOldCA(); {
	case o.Paused:
		return stays + "while spec.paused is true. " + endPause
	case o.Hibernated:
		return stays + "until the cluster has members again"
	case c != nil:
		return stays + "until Secret " + c.Secret + " of spec.clients has a certificate of the present one"
	case o.isGraceLeft():
		return stays + "until " + o.CA.Since.Add(clientGrace).UTC().Format(time.RFC3339) + ", for clients that have not read their new certificate, and " + seen
	default:
		return stays + seen
	}
}

// refresh makes the kubelets look at once when certificates of another issuer were renewed.
// By themselves they look every minute or so.
func (o *Observed) refresh() []Pod {
	if o.CA != nil || o.Trust == "" || o.Deleting || o.Paused || o.FirstBlocking() != nil || o.untrusting() != nil {
		return nil
	}
	var pods []Pod
	for _, p := range o.Pods {
		if p.Notified && !p.Refreshed {
			pods = append(pods, p)
		}
	}
	return pods
}
