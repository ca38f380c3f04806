// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// needed is one certificate that a cluster needs.
type needed struct {
	use    v1beta2.CertificateUse
	format resources.SecretUse
	secret string
}

// neededBy lists the certificates that a cluster needs to run.
func neededBy(c *v1beta2.EtcdCluster) []needed {
	secrets := resources.Secrets(c)
	var list []needed
	for _, n := range []needed{
		{v1beta2.CertificateUsePeer, resources.UsePeer, secrets.Peer},
		{v1beta2.CertificateUseServer, resources.UseServer, secrets.Server},
		{v1beta2.CertificateUseOperator, resources.UseOperator, secrets.Operator},
	} {
		if n.secret != "" {
			list = append(list, n)
		}
	}
	if resources.IssuesCertificates(c) || resources.RequestsCertificates(c) {
		list = append(list, needed{v1beta2.CertificateUseClient, resources.UseOperator, resources.ClientSecret(c)})
	}
	return list
}

// observeCertificates reads the Secrets that the cluster names. A Secret that does not
// exist or cannot be used is an observation, not an error.
func observeCertificates(ctx context.Context, r *run) {
	list := neededBy(r.seen.Cluster)
	if len(list) == 0 {
		return
	}
	set := r.secrets.of(r.key, r.seen.Cluster, r.seen.Now)
	defer set.release()
	issued := resources.IssuesCertificates(r.seen.Cluster)
	if issued {
		observeCA(ctx, r, set)
	}
	if resources.RequestsCertificates(r.seen.Cluster) {
		observeRequests(ctx, r, set)
	}
	r.seen.certificates = map[v1beta2.CertificateUse]*certificates.Pair{}
	failed := make([]error, len(list))
	for i, n := range list {
		pair, err := readPair(ctx, r, set, n, issued)
		if err != nil {
			failed[i] = err
			continue
		}
		r.seen.certificates[n.use] = pair
	}
	for i, n := range list {
		o := certplanner.Certificate{Use: n.use, Secret: n.secret}
		err := failed[i]
		if pair := r.seen.certificates[n.use]; pair != nil {
			describeCertificate(&o, pair.Leaf)
			err = r.seen.check(n.use, pair)
			o.NotAfter, o.EndsWithCA = r.seen.endOf(n.use, pair)
			o.OtherCA = errors.Is(err, certificates.ErrUntrusted) && r.seen.judge(n.use, pair, pair.CAs) == nil
			if issued {
				r.seen.describeIssued(&o, pair, templateOf(r.seen.Cluster, o.Use))
			}
		}
		r.seen.conclude(&o, err)
	}
	r.seen.observeTrust()
	r.seen.observeAcceptance()
	if r.seen.signer != nil {
		r.seen.needed = r.seen.neededCAs()
		r.seen.CA.Lacks = len(r.seen.needed) > 0
	}
	if slices.ContainsFunc(r.seen.Certificates, func(c certplanner.Certificate) bool { return c.State != certplanner.Usable }) {
		r.secrets.invalidate(r.key)
	}
}

// conclude adds a certificate with what was found to be wrong with it. It names the Secret that is to be corrected.
func (s *seen) conclude(o *certplanner.Certificate, err error) {
	if missing := (*missingEntriesError)(nil); errors.As(err, &missing) {
		o.Secret = missing.secret
	}
	if o.State = stateOf(err); err != nil {
		o.Message = fmt.Sprintf("secret %s (%s certificate): %v", o.Secret, o.Use, err)
	}
	s.Certificates = append(s.Certificates, *o)
}

var (
	errMissing  = errors.New("it does not exist")
	errNotOwned = errors.New("it has another owner")
	// errNotBinding is about a Secret of the cluster that has the name of a client's Secret.
	errNotBinding = errors.New("it is not the Secret of a client")
)

func readPair(ctx context.Context, r *run, set *secretSet, n needed, own bool) (*certificates.Pair, error) {
	secret, err := ownSecret(ctx, r, set, n.secret, own)
	if err != nil {
		return nil, err
	}
	if err := requireMountedEntries(ctx, r, set, n.format); err != nil {
		return nil, err
	}
	p := set.parsed.of(n.use, secret, func() parsedSecret {
		pair, err := certificates.Read(n.format, secret)
		return parsedSecret{pair: pair, err: err}
	})
	return p.pair, p.err
}

// ownSecret returns a secret that must be there and, if own is true, the cluster's.
func ownSecret(ctx context.Context, r *run, set *secretSet, name string, own bool) (*corev1.Secret, error) {
	secret, err := readSecret(ctx, r, set, r.seen.Cluster.Namespace, name)
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, errMissing
	case own && !resources.Owns(r.seen.Cluster, secret):
		r.seen.observeFound(secret)
		return nil, errNotOwned
	case own:
		r.seen.observeMark(secret)
		return secret, nil
	default:
		return secret, nil
	}
}

func describeCertificate(o *certplanner.Certificate, leaf *x509.Certificate) {
	o.Issuer = leaf.Issuer.CommonName
	if o.Issuer == "" {
		o.Issuer = leaf.Issuer.String()
	}
	o.Serial = leaf.SerialNumber.Text(16)
	o.NotBefore, o.NotAfter = leaf.NotBefore, leaf.NotAfter
}

// verifierOf returns the pair of the programs that see a certificate: members see that of a peer, the controller that of a
// server, and members that of a client. It is nil if it is not known what they trust.
func (s *seen) verifierOf(use v1beta2.CertificateUse, pair *certificates.Pair) *certificates.Pair {
	switch use {
	case v1beta2.CertificateUsePeer:
		return pair
	case v1beta2.CertificateUseServer:
		return s.certificates[v1beta2.CertificateUseOperator]
	case v1beta2.CertificateUseOperator, v1beta2.CertificateUseClient:
		return s.certificates[v1beta2.CertificateUseServer]
	case v1beta2.CertificateUseCA:
	}
	return nil
}

// check says whether the programs that see a certificate accept it.
func (s *seen) check(use v1beta2.CertificateUse, pair *certificates.Pair) error {
	by := s.verifierOf(use, pair)
	if by == nil {
		return pair.Check(s.Now, nil, nil)
	}
	return s.judge(use, pair, by.CAs)
}

// endOf says until when the programs that see a certificate accept it, and whether a CA ends then, before the certificate
// itself. Members and clients reject each other at that end, and no renewal of the certificate need be due before it.
func (s *seen) endOf(use v1beta2.CertificateUse, pair *certificates.Pair) (end time.Time, withCA bool) {
	by := s.verifierOf(use, pair)
	if by == nil {
		return pair.Leaf.NotAfter, false
	}
	return pair.End(s.Now, by.CAs, purposesOf(use)...)
}

// purposesOf returns what the certificate for a use is shown for.
func purposesOf(use v1beta2.CertificateUse) []x509.ExtKeyUsage {
	switch use {
	case v1beta2.CertificateUsePeer:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	case v1beta2.CertificateUseServer:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case v1beta2.CertificateUseOperator, v1beta2.CertificateUseClient:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case v1beta2.CertificateUseCA:
	}
	return nil
}

// judge says whether programs that trust these CAs accept a certificate for its use.
func (s *seen) judge(use v1beta2.CertificateUse, pair *certificates.Pair, trusted []*x509.Certificate) error {
	switch use {
	case v1beta2.CertificateUsePeer:
		if name := pair.Leaf.Subject.CommonName; resources.RequestsCertificates(s.Cluster) && name != v1beta2.PeerCommonName {
			return fmt.Errorf("%w: its common name is %q, and members know each other by %q", certificates.ErrNames, name, v1beta2.PeerCommonName)
		}
		return pair.Check(s.Now, trusted, hosts(s.Cluster), purposesOf(use)...)
	case v1beta2.CertificateUseServer:
		return pair.Check(s.Now, trusted, hosts(s.Cluster), purposesOf(use)...)
	case v1beta2.CertificateUseOperator, v1beta2.CertificateUseClient:
		return pair.Check(s.Now, trusted, nil, purposesOf(use)...)
	case v1beta2.CertificateUseCA:
	}
	return pair.Check(s.Now, nil, nil)
}

// hosts returns names like those of the members, which end in random characters: their
// certificate has to be good for all of them.
func hosts(c *v1beta2.EtcdCluster) []string {
	return []string{resources.Host(c, c.Name+"-member")}
}

func stateOf(err error) certplanner.State {
	for _, known := range []struct {
		err   error
		state certplanner.State
	}{
		{errMissing, certplanner.Missing},
		{errNotOwned, certplanner.NotOwned},
		{errNotBinding, certplanner.NotOwned},
		{certificates.ErrIncomplete, certplanner.Incomplete},
		{certificates.ErrExpired, certplanner.Expired},
		{certificates.ErrNotYetValid, certplanner.NotYetValid},
		{certificates.ErrUnusable, certplanner.Unusable},
		{certificates.ErrUntrusted, certplanner.Unusable},
		{certificates.ErrNames, certplanner.Unusable},
	} {
		if errors.Is(err, known.err) {
			return known.state
		}
	}
	if err == nil {
		return certplanner.Usable
	}
	return certplanner.Unknown
}

// format returns how the secret for a use names its entries.
func (s *seen) format(use v1beta2.CertificateUse) resources.SecretFormat {
	if pair := s.certificates[use]; pair != nil {
		return pair.Format
	}
	return resources.FormatNamed
}

// canSendRequests is true if requests to members are possible as the cluster declares: with a client
// certificate, or without one if the members use no TLS for clients.
func (s *seen) canSendRequests() bool {
	return !resources.HasClientTLS(s.Cluster) || s.identity != nil
}

// to returns a target of these endpoints, with the certificate that the controller shows.
func (s *seen) to(endpoints ...etcd.Endpoint) etcd.Target {
	target := etcd.Target{Endpoints: endpoints, ClusterIDs: s.clusterIDs}
	if s.identity != nil {
		target.TLS, target.TLSIdentity = s.identity.ClientConfig()
	}
	return target
}

// observeTrust names what members are to trust, as far as it is known. While one Secret of an issued set lacks a CA,
// a pod that is created now does not count as one that trusts it: its member verifies others by one Secret only.
func (s *seen) observeTrust() {
	var all []*x509.Certificate
	for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
		pair := s.certificates[use]
		if pair == nil && slices.ContainsFunc(s.Certificates, func(c certplanner.Certificate) bool { return c.Use == use }) {
			return
		}
		if pair != nil {
			all = append(all, pair.CAs...)
		}
	}
	if peer := s.certificates[v1beta2.CertificateUsePeer]; peer != nil && resources.IssuesCertificates(s.Cluster) {
		all = s.trustedByAll(peer.CAs)
	}
	s.Trust = certificates.Trust(all)
	mounted := s.mounted()
	accepted := map[string]bool{} // most pods were started with the same CAs
	for _, p := range planner.MemberPods(&s.Observed) {
		accepts, known := accepted[p.PeerCAs]
		if !known {
			accepts = s.isAcceptedBy(p.PeerCAs)
			accepted[p.PeerCAs] = accepts
		}
		p.Refreshed, p.Accepts = p.Certificates == mounted, accepts
	}
}

// isAcceptedBy is true if a member that was started with these trusted CAs accepts the
// certificates that the other members show now.
func (s *seen) isAcceptedBy(trustedCAs string) bool {
	pair := s.certificates[v1beta2.CertificateUsePeer]
	if pair == nil {
		return len(s.certificates) > 0 // members speak plainly to each other
	}
	return pair.CheckNamed(s.Now, pair.CAs, trustedCAs, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth) == nil
}

// mounted names what the volumes of members are to hold.
func (s *seen) mounted() string {
	var leaves []*x509.Certificate
	for _, use := range []v1beta2.CertificateUse{v1beta2.CertificateUsePeer, v1beta2.CertificateUseServer} {
		if pair := s.certificates[use]; pair != nil {
			leaves = append(leaves, pair.Leaf)
		}
	}
	return certificates.Trust(append(leaves, s.trustedCAs()...))
}

// certified adds to a pod that is to be made how its secrets name their entries, and what
// they hold now.
func (s *seen) certified(m resources.MemberPod) resources.MemberPod {
	m.PeerFormat, m.ServerFormat = s.format(v1beta2.CertificateUsePeer), s.format(v1beta2.CertificateUseServer)
	m.Trust, m.Certificates = s.Trust, s.mounted()
	if pair := s.certificates[v1beta2.CertificateUsePeer]; pair != nil {
		m.CAs = certificates.Names(s.trustedByAll(pair.CAs))
	}
	return m
}
