// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Distrusts is true for a pod that must start again because the set of trusted CAs has
// changed. etcd reads its own certificate for each connection, and its trusted CAs only
// when it starts. While an older CA is still trusted that cross-signed the present one, no
// restart is needed yet: one restart follows after the older CA was dropped.
//
// A pod that does not say what it trusts starts again only where the certificates are issued
// here. There it would keep every later CA from being issued.
//
// trust names the set of CAs that was trusted when the pod was created; empty if that is not
// known.
func (o *Observed) Distrusts(trust string) bool {
	if o.Trust == "" || trust == o.Trust {
		return false
	}
	if o.CA == nil {
		return trust != "" && o.untrusting() == nil
	}
	return (!o.CA.Overlap || !o.CA.CrossSigned || !o.isAccepted()) && o.untrusting() == nil
}

// RestartTogether returns the pods whose members must restart at the same time; none if there
// are none. They reject the certificates that the members show now, and no key is left to sign
// others that they accept. A member that restarts alone is rejected by the others, and they
// reject each other with every new connection. All data is on PVCs, so this costs an outage and no
// write. Certificates of other issuers can be put back, so their members wait for a user.
func (o *Observed) RestartTogether() []Pod {
	if o.CA == nil || o.untrusting() == nil || o.FirstBlocking() != nil {
		return nil
	}
	var pods []Pod
	for i := range o.Pods {
		p := &o.Pods[i]
		if !p.HasPVC {
			return nil
		}
		if p.Running && p.Trust != o.Trust {
			pods = append(pods, *p)
		}
	}
	return pods
}

// HoldRestart says why a member that serves must not restart now, and must not be replaced: another member
// rejects the present certificates, which every pod that starts shows. reason is empty if none does. The only
// member that rejects them may restart: that is what makes it trust them.
func (o *Observed) HoldRestart(name string) (reason, message, remediation string) {
	if p := o.untrustingBut(name); p != nil {
		return ReasonCANotTrusted, "member " + name + " is neither restarted nor replaced while it serves: " + rejects(p), o.regainTrust()
	}
	return "", "", ""
}

// untrusting returns a pod that is not known to accept the present certificates, or nil.
// These were put in place before their CA was trusted. That pod rejects a member that
// restarts now, so no member restarts for another CA.
func (o *Observed) untrusting() *Pod { return o.untrustingBut("") }

// untrustingBut is untrusting without the pod of this name.
func (o *Observed) untrustingBut(name string) *Pod {
	if o.Trust == "" || o.CA != nil && o.isAccepted() {
		return nil
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Name != name && p.Trust != "" && p.Trust != o.Trust && !p.Accepts {
			return p
		}
	}
	return nil
}

// isAccepted is true if every member accepts what the present CA signs.
func (o *Observed) isAccepted() bool { return o.awaitsCA() == nil }

// awaitsCA returns a pod whose member does not accept what the present CA signs, or nil.
func (o *Observed) awaitsCA() *Pod {
	if i := slices.IndexFunc(o.Pods, func(p Pod) bool { return !o.accepts(&p) }); i >= 0 {
		return &o.Pods[i]
	}
	return nil
}

// accepts is true if a member trusts the present CA, or the CA that has cross-signed it. That a CA
// was cross-signed says nothing by itself: an older one that is put back was so by a CA that no
// member trusts any more.
func (o *Observed) accepts(p *Pod) bool {
	return p.TrustsCA || o.CA.CrossSigned && p.TrustsPrevious
}

// isCutOff is true if the certificate of the peers was lost together with the CA that signed
// it, and members run whose data does not outlive their pods. They serve with the certificate
// that they have mounted. One of the next CA would reach them through the same Secret, and
// they would reject each other.
func (o *Observed) isCutOff() bool {
	peer := o.ofUse(v1beta2.CertificateUsePeer)
	if peer == nil || !peer.isLost() {
		return false
	}
	return slices.ContainsFunc(o.Pods, func(p Pod) bool { return p.Running && !p.HasPVC && !o.accepts(&p) })
}

// allTrust is true if every pod was started with the CAs that the Secrets of the members hold.
func (o *Observed) allTrust() bool { return o.firstOtherTrust() < 0 }

// firstOtherTrust returns the index of a pod that was started with other CAs, or -1.
func (o *Observed) firstOtherTrust() int {
	return slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Trust != o.Trust })
}
