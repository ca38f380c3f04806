// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storagecert

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Change is the next change that the Secret of the CA needs.
type Change string

// The changes, in the order of the life of a CA. A successor is cross-signed by the CA before it,
// so that a program that was started before accepts what the successor signs.
const (
	// ChangeNone changes nothing.
	ChangeNone Change = "None"
	// ChangeCreate makes the first CA, or a CA in the place of one that cannot be used.
	ChangeCreate Change = "Create"
	// ChangeSucceed makes the successor of the CA. Both are trusted from then on.
	ChangeSucceed Change = "Succeed"
	// ChangeDrop ends the trust in every CA but the newest.
	ChangeDrop Change = "Drop"
)

// issuer is the content of the Secret of the CA.
type issuer struct {
	ca *certificates.CA
	// trusted are the CAs that programs trust, newest first.
	trusted []*x509.Certificate
}

// requests are what a person asks for with annotations on the Secret of the CA.
type requests struct{ rotate, drop bool }

// planCA returns the change that is due. It is a pure function. A nil issuer does not exist or
// cannot be used.
func planCA(now time.Time, have *issuer, asked requests) Change {
	switch {
	case have == nil || now.After(have.ca.Certificate.NotAfter):
		return ChangeCreate
	case asked.rotate, !now.Before(certificates.Renewal(have.ca.Certificate)):
		return ChangeSucceed
	case len(have.trusted) > 1 && (asked.drop || slices.ContainsFunc(have.trusted, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })):
		return ChangeDrop
	default:
		return ChangeNone
	}
}

// apply returns the issuer after the change. The receiver stays as it is; it may be nil for
// ChangeCreate, which keeps the trust in the CAs that were distributed before.
func (a *issuer) apply(change Change, name string, now time.Time, distributed []*x509.Certificate) (*issuer, error) {
	switch change {
	case ChangeNone:
		return a, nil
	case ChangeDrop:
		return &issuer{ca: a.ca, trusted: []*x509.Certificate{a.ca.Certificate}}, nil
	case ChangeCreate, ChangeSucceed:
	default:
		return nil, fmt.Errorf("unknown change %q of a CA", change)
	}
	next, err := certificates.NewCA(name, now)
	if err != nil {
		return nil, err
	}
	before := distributed
	if change == ChangeSucceed {
		if err := a.ca.CrossSign(next); err != nil {
			return nil, err
		}
		before = a.trusted
	}
	trusted := []*x509.Certificate{next.Certificate}
	for _, c := range before {
		if now.Before(c.NotAfter) && !slices.ContainsFunc(trusted, c.Equal) {
			trusted = append(trusted, c)
		}
	}
	return &issuer{ca: next, trusted: trusted}, nil
}

// readIssuer reads what data wrote.
func readIssuer(data map[string][]byte) (*issuer, error) {
	ca, err := certificates.ReadCA(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], data[resources.CrossEntry])
	if err != nil {
		return nil, err
	}
	trusted, err := certificates.ReadAll(data[corev1.ServiceAccountRootCAKey])
	if err != nil {
		return nil, err
	}
	return &issuer{ca: ca, trusted: trusted}, nil
}

// data returns the content of the Secret of the CA.
func (a *issuer) data() (map[string][]byte, error) {
	key, err := a.ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		corev1.TLSCertKey: certificates.PEM(a.ca.Certificate), corev1.TLSPrivateKeyKey: key,
		corev1.ServiceAccountRootCAKey: certificates.PEM(a.trusted...),
	}
	if cross := a.ca.CrossPEM(); cross != nil {
		data[resources.CrossEntry] = cross
	}
	return data, nil
}

// isDue is true for a certificate that is to be issued again by now.
func (a *issuer) isDue(now time.Time, leaf *x509.Certificate) bool {
	renewal := a.ca.LeafRenewal(leaf)
	return now.After(leaf.NotAfter) || !renewal.IsZero() && !now.Before(renewal)
}

// leafData returns the content that a Secret with a certificate needs, and whether it differs from
// the content that it has. The certificate is issued again after two thirds of its life, for other
// names, after another CA, and if it cannot be used.
func (a *issuer) leafData(now time.Time, have map[string][]byte, template certificates.Template) (data map[string][]byte, changed bool, err error) {
	bundle := certificates.PEM(a.trusted...)
	pair, err := certificates.Read(resources.UseOperator, &corev1.Secret{Data: have})
	usable := err == nil && a.ca.HasSigned(pair.Leaf) && template.Matches(pair.Leaf) && !a.isDue(now, pair.Leaf)
	if usable {
		same := slices.Equal(have[corev1.ServiceAccountRootCAKey], bundle)
		return map[string][]byte{
			corev1.TLSCertKey: have[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: have[corev1.TLSPrivateKeyKey], corev1.ServiceAccountRootCAKey: bundle,
		}, !same, nil
	}
	chain, key, err := a.ca.Issue(template, now)
	if err != nil {
		return nil, false, err
	}
	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, corev1.ServiceAccountRootCAKey: bundle}, true, nil
}
