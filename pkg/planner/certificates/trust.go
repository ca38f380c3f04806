// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"

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
	return !o.CA.Overlap || !o.CA.CrossSigned
}

// untrusting returns a pod that is not known to accept the present certificates, or nil.
// These were put in place before their CA was trusted. That pod rejects a member that
// restarts now, so no member restarts.
func (o *Observed) untrusting() *Pod {
	if o.CA != nil || o.Trust == "" {
		return nil
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Trust != "" && p.Trust != o.Trust && !p.Accepts {
			return p
		}
	}
	return nil
}

// isAccepted is true if every member accepts what the present CA signs: because the CA before
// it cross-signed it, or because each member has started since it is trusted.
func (o *Observed) isAccepted() bool {
	return o.CA.CrossSigned || o.isDistributed() && o.allTrust()
}

// isDistributed is true if the Secrets of the members hold exactly the CAs that are to be
// trusted. Before that, Trust names CAs that the present CA may not be among.
func (o *Observed) isDistributed() bool {
	for i := range o.Certificates {
		c := &o.Certificates[i]
		isOfMembers := c.Use == v1beta2.CertificateUsePeer || c.Use == v1beta2.CertificateUseServer
		if isOfMembers && !c.Issued.BundleMatches {
			return false
		}
	}
	return true
}

// allTrust is true if every pod was started with the CAs that the Secrets of the members hold.
func (o *Observed) allTrust() bool {
	for i := range o.Pods {
		if o.Pods[i].Trust != o.Trust {
			return false
		}
	}
	return true
}
