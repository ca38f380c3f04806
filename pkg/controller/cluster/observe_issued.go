// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// annotationRotatedAt on the secret of the authority is when it took over from another.
const annotationRotatedAt = "etcd.database.coreos.com/rotated-at"

// signer is the authority of a cluster as its secret holds it.
type signer struct {
	authority *certificates.Authority
	// trusted are the authorities that are trusted now, the present one among them.
	trusted []*x509.Certificate
}

// readSigner reads the secret of an authority.
func readSigner(secret *corev1.Secret) (*signer, error) {
	authority, err := certificates.ReadAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[resources.CrossEntry])
	if err != nil {
		return nil, err
	}
	trusted, err := certificates.ReadAll(secret.Data[corev1.ServiceAccountRootCAKey])
	if err != nil {
		return nil, fmt.Errorf("entry %s: %w", corev1.ServiceAccountRootCAKey, err)
	}
	if !slices.ContainsFunc(trusted, authority.Certificate.Equal) {
		return nil, fmt.Errorf("%w: entry %s lacks the authority itself", certificates.ErrUnusable, corev1.ServiceAccountRootCAKey)
	}
	return &signer{authority: authority, trusted: trusted}, nil
}

// observeAuthority reads what signs for a cluster whose certificates are issued here.
func (r *Reconciler) observeAuthority(ctx context.Context, s *seen, set *secretSet) {
	o := planner.Certificate{Use: v1beta2.CertificateUseAuthority, Secret: resources.AuthoritySecret(s.Cluster)}
	s.Authority = &planner.Authority{}
	secret, err := r.ownSecret(ctx, s, set, o.Secret, true)
	if err == nil {
		s.Authority.Request = secret.Annotations[resources.AnnotationRotateAuthority]
		s.Authority.Since, _ = time.Parse(time.RFC3339, secret.Annotations[annotationRotatedAt])
		s.signer, err = readSigner(secret)
	}
	if s.signer != nil {
		c := s.signer.authority.Certificate
		describeCertificate(&o, c)
		o.Renewal = certificates.Renewal(c)
		s.Authority.Overlap = len(s.signer.trusted) > 1
		cross := s.signer.authority.Cross
		s.Authority.Vouched = cross != nil && s.Now.Before(cross.NotAfter)
		switch {
		case s.Now.After(c.NotAfter):
			err = certificates.ErrExpired
		case s.Now.Before(c.NotBefore):
			err = certificates.ErrNotYetValid
		}
	}
	s.conclude(&o, err)
}

// authorities are those that are trusted now; nil if they are not known.
func (s *seen) authorities() []*x509.Certificate {
	if s.signer == nil {
		return nil
	}
	return s.signer.trusted
}

// describeIssued compares a certificate with what would be issued now.
func (s *seen) describeIssued(o *planner.Certificate, pair *certificates.Pair) {
	o.Renewal = certificates.Renewal(pair.Leaf)
	o.Issued.Names = templateOf(s.Cluster, o.Use).Matches(pair.Leaf)
	if s.signer != nil {
		o.Issued.Signed = s.signer.authority.HasSigned(pair.Leaf)
		o.Issued.Trusts = certificates.Trust(pair.Authorities) == certificates.Trust(s.signer.trusted)
	}
}

// observeShown asks the members what they show, while that decides something.
func (r *Reconciler) observeShown(ctx context.Context, s *seen) {
	if s.Authority == nil || !s.Authority.Overlap || s.signer == nil || len(s.target.Endpoints) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	shown := r.Etcd.Shown(ctx, s.target)
	for i := range s.Etcd.Members {
		m := &s.Etcd.Members[i]
		seen, asked := shown[m.Name]
		if !asked || seen.Err != nil {
			klog.FromContext(ctx).V(2).Info("Could not see the certificates of a member", "member", m.Name, "err", seen.Err)
			continue
		}
		m.Shows = s.signer.authority.HasSigned(seen.Client) && s.signer.authority.HasSigned(seen.Peer)
	}
}

// templateOf returns what the certificate for a use shall be.
func templateOf(c *v1beta2.EtcdCluster, use v1beta2.CertificateUse) certificates.Template {
	switch use {
	case v1beta2.CertificateUsePeer:
		return certificates.Template{Name: resources.PeerCommonName, Hosts: resources.PeerHosts(c), Server: true, Client: true}
	case v1beta2.CertificateUseServer:
		// etcd shows it to itself as a client, too, to serve JSON.
		return certificates.Template{Name: "etcd-server", Hosts: resources.ServerHosts(c), Server: true, Client: true}
	case v1beta2.CertificateUseOperator:
		// The name of the user who may do everything, where etcd's own authorization is on.
		return certificates.Template{Name: "root", Client: true}
	case v1beta2.CertificateUseClient, v1beta2.CertificateUseAuthority:
	}
	return certificates.Template{Name: "etcd-client", Client: true}
}
