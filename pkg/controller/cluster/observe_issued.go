// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// annotationRotatedAt on the Secret of the CA is when the CA replaced another CA.
const annotationRotatedAt = "etcd.database.coreos.com/rotated-at"

// signer is the CA of a cluster as its Secret holds it.
type signer struct {
	ca *certificates.CA
	// trusted are the CAs that are trusted now, including the current CA.
	trusted []*x509.Certificate
}

// readSigner reads the Secret of a CA.
func readSigner(secret *corev1.Secret) (*signer, error) {
	ca, err := certificates.ReadCA(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[resources.CrossEntry])
	if err != nil {
		return nil, err
	}
	trusted, err := certificates.ReadAll(secret.Data[corev1.ServiceAccountRootCAKey])
	if err != nil {
		return nil, fmt.Errorf("entry %s: %w", corev1.ServiceAccountRootCAKey, err)
	}
	if !slices.ContainsFunc(trusted, ca.Certificate.Equal) {
		return nil, fmt.Errorf("%w: entry %s lacks the CA itself", certificates.ErrUnusable, corev1.ServiceAccountRootCAKey)
	}
	return &signer{ca: ca, trusted: trusted}, nil
}

// observeCA reads what signs for a cluster whose certificates are issued here.
func observeCA(ctx context.Context, r *run, set *secretSet) {
	o := certplanner.Certificate{Use: v1beta2.CertificateUseCA, Secret: resources.CASecret(r.seen.Cluster)}
	r.seen.CA = &certplanner.CA{}
	secret, err := ownSecret(ctx, r, set, o.Secret, true)
	if err == nil {
		r.seen.CA.Request = secret.Annotations[resources.AnnotationRotateCA]
		r.seen.CA.Spent = secret.Annotations[resources.AnnotationDropOldCA]
		r.seen.CA.Writer = writerOf(secret, corev1.TLSCertKey)
		r.seen.CA.Since, _ = time.Parse(time.RFC3339, secret.Annotations[annotationRotatedAt])
		p := set.parsed.of(o.Use, secret, func() parsedSecret {
			s, err := readSigner(secret)
			return parsedSecret{signer: s, err: err}
		})
		r.seen.signer, err = p.signer, p.err
	}
	if r.seen.signer != nil {
		c := r.seen.signer.ca.Certificate
		describeCertificate(&o, c)
		o.Renewal = certificates.Renewal(c)
		r.seen.CA.Overlap = len(r.seen.signer.trusted) > 1
		r.seen.CA.CrossSigned = r.seen.signer.ca.IsCrossSigned(r.seen.Now)
		switch {
		case r.seen.Now.After(c.NotAfter):
			err = certificates.ErrExpired
		case r.seen.Now.Before(c.NotBefore):
			err = fmt.Errorf("%w: it will be from %s", certificates.ErrNotYetValid, c.NotBefore.UTC().Format(time.RFC3339))
			r.secrets.dropKept(r.key) // one that was kept while a clock was ahead is of no use, either
		}
	}
	if r.seen.conclude(&o, err); err == nil {
		r.secrets.keep(r.key, secret)
	}
	r.seen.CA.Kept = r.secrets.keptCA(r.key, r.seen.Cluster) != nil
}

// writerOf returns the field manager that has written an entry of a Secret last; empty if none is known.
func writerOf(secret *corev1.Secret, entry string) string {
	writer, last := "", time.Time{}
	for _, f := range secret.ManagedFields {
		if f.FieldsV1 != nil && f.Time != nil && !f.Time.Time.Before(last) && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+entry+`"`) {
			writer, last = untrusted.Text(f.Manager), f.Time.Time
		}
	}
	return writer
}

// trustedCAs are the CAs that are trusted now; nil if they are not known.
func (s *seen) trustedCAs() []*x509.Certificate {
	if s.signer == nil {
		return nil
	}
	return s.signer.trusted
}

// describeIssued compares a certificate with what would be issued now.
func (s *seen) describeIssued(o *certplanner.Certificate, pair *certificates.Pair, template certificates.Template) {
	o.Renewal = certificates.Renewal(pair.Leaf)
	o.Issued.SANsMatch = template.Matches(pair.Leaf)
	if s.signer != nil {
		o.Renewal = s.signer.ca.LeafRenewal(pair.Leaf)
		o.Issued.Signed = s.signer.ca.HasSigned(pair.Leaf)
		o.Issued.BundleMatches = certificates.Trust(pair.CAs) == certificates.Trust(s.signer.trusted)
	}
}

// observeShown asks the members what they show, while that decides something.
func observeShown(ctx context.Context, r *run) {
	if r.seen.CA == nil || !r.seen.CA.Overlap || r.seen.signer == nil || len(r.seen.target.Endpoints) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	shown := r.Etcd.Shown(ctx, r.seen.target)
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		seen, asked := shown[m.Name]
		if !asked || seen.Err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot read the serving certificates of a member", "member", m.Name, "err", seen.Err)
			continue
		}
		m.CertificateVerified = r.seen.signer.ca.HasSigned(seen.Client) && r.seen.signer.ca.HasSigned(seen.Peer)
	}
}

// templateOf returns the template of the certificate for a use.
func templateOf(c *v1beta2.EtcdCluster, use v1beta2.CertificateUse) certificates.Template {
	switch use {
	case v1beta2.CertificateUsePeer:
		return certificates.Template{Name: v1beta2.PeerCommonName, Hosts: resources.PeerHosts(c), Server: true, Client: true}
	case v1beta2.CertificateUseServer:
		// etcd shows it to itself as a client, too, to serve JSON.
		return certificates.Template{Name: v1beta2.ServerCommonName, Hosts: resources.ServerHosts(c), Server: true, Client: true}
	case v1beta2.CertificateUseOperator:
		// The name of the user who may do everything, where etcd's own authorization is on.
		return certificates.Template{Name: v1beta2.OperatorCommonName, Client: true}
	case v1beta2.CertificateUseClient, v1beta2.CertificateUseCA:
	}
	return certificates.Template{Name: "etcd-client", Client: true}
}
