// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeAcceptance finds what the members that run accept, by the CAs that each has read when
// it started: the present CA, and a certificate for the controller.
func (s *seen) observeAcceptance() {
	if s.signer != nil {
		for _, p := range planner.MemberPods(&s.Observed) {
			if s.mayDistrust(p) {
				p.Trust = "" // not known, so that it starts again
				continue
			}
			p.TrustsCA, p.TrustsPrevious = s.trustsCA(p), s.trustsPrevious(p)
		}
	}
	s.identity = s.certificates[v1beta2.CertificateUseOperator]
	if !resources.IssuesCertificates(s.Cluster) {
		return
	}
	if accepted := s.acceptedIdentity(""); accepted != nil {
		s.identity, s.CanAuthenticate = accepted, true
	}
}

// observeTaken notes that a member took from the controller a certificate which no CA but the present one verifies. It
// trusts that CA, whatever its pod says: a pod that waited for its Secrets mounts those that were created after it. Of two
// such members this proves less: they verify each other by another Secret, which may have been mounted before.
func (s *seen) observeTaken(statuses map[string]etcd.StatusResult) {
	if s.signer == nil || s.identity == nil || !s.signer.ca.HasSigned(s.identity.Leaf) || s.signer.ca.IsCrossSigned(s.Now) {
		return
	}
	others := slices.DeleteFunc(planner.MemberPods(&s.Observed), func(p *planner.Pod) bool { return p.TrustsCA })
	if len(others) != 1 || !others[0].Owned {
		return
	}
	if a, asked := statuses[others[0].Name]; asked && a.Err == nil {
		others[0].TrustsCA, s.CanAuthenticate = true, true
	}
}

// mayDistrust is true for a pod that was created with a CA which was dropped and put back since, as the younger CA that is
// trusted beside it tells. Its container has restarted in place, perhaps while only that younger CA was trusted: then its
// member knows less than was noted when the pod was created.
func (s *seen) mayDistrust(p *planner.Pod) bool {
	present := s.signer.ca.Certificate
	return p.RestartCount > 0 && p.Made.Before(s.CA.Since) &&
		slices.ContainsFunc(s.signer.trusted, func(c *x509.Certificate) bool { return c.NotBefore.After(present.NotBefore) })
}

// trustsCA is true if a member was started with the present CA.
func (s *seen) trustsCA(p *planner.Pod) bool {
	return p.Trust == certificates.Trust(s.signer.trusted) || len(certificates.Named([]*x509.Certificate{s.signer.ca.Certificate}, p.PeerCAs)) > 0
}

// trustsPrevious is true if a member was started with the CA that has cross-signed the present one.
func (s *seen) trustsPrevious(p *planner.Pod) bool {
	ca := s.signer.ca
	if !ca.IsCrossSigned(s.Now) {
		return false
	}
	return slices.ContainsFunc(certificates.Named(slices.Concat(s.signer.trusted, ca.Before()), p.PeerCAs), ca.IsCrossSignedBy)
}

// neededCAs returns the CAs that the Secret of the CA does not list although they must stay trusted:
// they have signed a present certificate, and a member was started with them. The Secrets of the members
// hold them. The controller ends the trust in a CA only when it has signed no certificate any more.
// So such a CA is missing after an older Secret of the CA was put back. A CA that no member knows is
// none of the cluster.
func (s *seen) neededCAs() []*x509.Certificate {
	var list []*x509.Certificate
	for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
		if pair := s.certificates[use]; pair != nil {
			list = append(list, pair.CAs...)
		}
	}
	return slices.DeleteFunc(s.trustedByPods(list), func(ca *x509.Certificate) bool {
		if slices.ContainsFunc(s.signer.trusted, ca.Equal) || !s.Now.Before(ca.NotAfter) {
			return true
		}
		for _, pair := range s.certificates {
			if pair.IsSignedBy(ca) {
				return false
			}
		}
		return true
	})
}

// acceptedIdentity returns the certificate that most members accept from the controller; nil if
// members run and accept none. It is the controller's own, unless that was lost or members do
// not trust the CA that signed it. One CA signs all certificates of the cluster, and members
// take each of them from a client: so the controller reaches them as long as one is left.
// The certificate of the use except, if any, is left out.
func (s *seen) acceptedIdentity(except v1beta2.CertificateUse) *certificates.Pair {
	known, pods := slices.Clone(s.trustedCAs()), 0
	for _, pair := range s.certificates {
		known = append(known, pair.CAs...)
	}
	for _, p := range planner.MemberPods(&s.Observed) {
		if runsOrStarts(p) {
			pods++
		}
	}
	var best *certificates.Pair
	most := 0
	for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUseOperator, v1beta2.CertificateUseClient, v1beta2.CertificateUseServer, v1beta2.CertificateUsePeer} {
		pair := s.certificates[use]
		if pair == nil || use == except {
			continue
		}
		own := use == v1beta2.CertificateUseOperator
		n := s.countAccepting(pair, known, own)
		if n > most || pods == 0 && best == nil {
			if best, most = pair, n; !own {
				best = pair.Trusting(known) // a server may show what its Secret does not trust
			}
		}
		if n == pods {
			break
		}
	}
	return best
}

// countAccepting counts the pods whose members accept a client certificate. A pod of an earlier
// release does not say what its member trusts: it counts for the controller's own certificate.
func (s *seen) countAccepting(pair *certificates.Pair, known []*x509.Certificate, own bool) int {
	n := 0
	for _, p := range planner.MemberPods(&s.Observed) {
		if runsOrStarts(p) && (p.PeerCAs == "" && own ||
			pair.CheckNamed(s.Now, known, p.PeerCAs, x509.ExtKeyUsageClientAuth) == nil) {
			n++
		}
	}
	return n
}

// trustedByPods returns those CAs of a list that a member has read when it started.
func (s *seen) trustedByPods(cas []*x509.Certificate) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(cas), func(ca *x509.Certificate) bool {
		return !slices.ContainsFunc(planner.MemberPods(&s.Observed), func(p *planner.Pod) bool {
			return runsOrStarts(p) && len(certificates.Named([]*x509.Certificate{ca}, p.PeerCAs)) > 0
		})
	})
}

// runsOrStarts is true for a pod of the cluster that has not ended.
func runsOrStarts(p *planner.Pod) bool { return p.Owned && !p.Finished }

// trustedByAll returns those CAs that every Secret of the members holds. Where the certificates are
// issued here, one Secret may not have got the next CA yet.
func (s *seen) trustedByAll(cas []*x509.Certificate) []*x509.Certificate {
	server := s.certificates[v1beta2.CertificateUseServer]
	if server == nil || !resources.IssuesCertificates(s.Cluster) {
		return cas
	}
	return certificates.Named(cas, certificates.Names(server.CAs))
}
