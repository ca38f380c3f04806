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
	// ChangeCreate makes the first CA, or a CA in the place of one whose key is lost.
	ChangeCreate Change = "Create"
	// ChangeRestore writes the CA back from memory whose Secret was deleted or damaged. Programs
	// trust it, so they notice nothing.
	ChangeRestore Change = "Restore"
	// ChangeComplete is after an older Secret of the CA was put back. That CA signs from then on, and
	// the CAs that have signed the present certificates stay trusted.
	ChangeComplete Change = "Complete"
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

// endedBy returns the requests that end with a change. These are the requests that it carries out. A request to drop from
// before a new CA ends, too, because it is not about that CA. Programs still show certificates of the CA before.
func (r requests) endedBy(change Change) requests {
	switch change {
	case ChangeCreate, ChangeSucceed:
		return r
	case ChangeComplete, ChangeDrop:
		return requests{drop: r.drop}
	case ChangeNone, ChangeRestore:
	}
	return requests{}
}

// observed is what is known of the CA.
type observed struct {
	// have is the content of its Secret; nil if that does not exist or cannot be used.
	have *issuer
	// kept is the last content that could be used, from memory; nil after a start.
	kept *issuer
	// distributed are the CAs that programs were given to trust.
	distributed []*x509.Certificate
	// leaves are the present certificates of members and clients.
	leaves []*certificates.Pair
	asked  requests
}

// planCA returns the change that is due. It is a pure function.
func planCA(now time.Time, o *observed) Change {
	have := o.have
	switch {
	case have == nil && o.kept != nil && !now.After(o.kept.ca.Certificate.NotAfter):
		return ChangeRestore
	case have == nil || now.After(have.ca.Certificate.NotAfter):
		return ChangeCreate
	case len(o.lacking(now)) > 0:
		return ChangeComplete
	case o.asked.rotate && len(have.trusted) == 1, !now.Before(certificates.Renewal(have.ca.Certificate)):
		// Programs that started before the last rotation do not trust the CA that would cross-sign the next CA. So a
		// request waits until the older CA is dropped.
		return ChangeSucceed
	case len(have.trusted) > 1 && (o.asked.drop || slices.ContainsFunc(have.trusted, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })):
		return ChangeDrop
	default:
		return ChangeNone
	}
}

// lacking returns the CAs that have signed a present certificate and that the Secret of the CA does not list. Programs
// trust them until they start again.
func (o *observed) lacking(now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(o.distributed), func(c *x509.Certificate) bool {
		return now.After(c.NotAfter) || slices.ContainsFunc(o.have.trusted, c.Equal) ||
			!slices.ContainsFunc(o.leaves, func(p *certificates.Pair) bool { return p.IsSignedBy(c) })
	})
}

// apply returns the issuer after the change. What was observed stays as it is. Every CA that programs
// were given stays trusted after ChangeCreate and ChangeRestore.
func (o *observed) apply(change Change, name string, now time.Time) (*issuer, error) {
	switch change {
	case ChangeNone:
		return o.have, nil
	case ChangeRestore:
		return o.kept.trusting(now, o.kept.trusted, o.distributed), nil
	case ChangeComplete:
		return o.have.trusting(now, o.have.trusted, o.lacking(now)), nil
	case ChangeDrop:
		return o.have.trusting(now), nil
	case ChangeCreate, ChangeSucceed:
	default:
		return nil, fmt.Errorf("unknown change %q of a CA", change)
	}
	ca, err := certificates.NewCA(name, now)
	if err != nil {
		return nil, err
	}
	next := &issuer{ca: ca}
	if change == ChangeCreate {
		return next.trusting(now, o.distributed), nil
	}
	if err := o.have.ca.CrossSign(ca); err != nil {
		return nil, err
	}
	return next.trusting(now, o.have.trusted), nil
}

// trusting returns an issuer of the same CA that trusts that CA and those of the lists that are still valid.
func (a *issuer) trusting(now time.Time, lists ...[]*x509.Certificate) *issuer {
	trusted := []*x509.Certificate{a.ca.Certificate}
	for _, c := range slices.Concat(lists...) {
		if now.Before(c.NotAfter) && !slices.ContainsFunc(trusted, c.Equal) {
			trusted = append(trusted, c)
		}
	}
	return &issuer{ca: a.ca, trusted: trusted}
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

// mayKeep is true for a certificate that need not be of another CA. Programs read the CAs that they trust when they
// start. Where the CA before has not cross-signed the present one, they would reject what that signs. So a
// certificate of the CA before stays until it is due.
func (a *issuer) mayKeep(pair *certificates.Pair) bool {
	return a.ca.HasSigned(pair.Leaf) || slices.ContainsFunc(a.trusted, func(c *x509.Certificate) bool {
		return pair.IsSignedBy(c) && !a.ca.IsCrossSignedBy(c)
	})
}

// leafData returns the content that a Secret with a certificate needs, and whether it differs from
// the content that it has. The certificate is issued again after two thirds of its life, for other
// names, after another CA that programs accept, and if it cannot be used.
func (a *issuer) leafData(now time.Time, have map[string][]byte, template certificates.Template) (data map[string][]byte, changed bool, err error) {
	bundle := certificates.PEM(a.trusted...)
	pair, err := readLeaf(have)
	usable := err == nil && a.mayKeep(pair) && template.Matches(pair.Leaf) && !a.isDue(now, pair.Leaf)
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

// keptUntil returns when the present CA takes the place of another CA that has signed a certificate; zero if it has signed
// the certificate itself. Programs that have not restarted by then reject what the present CA signs.
func (a *issuer) keptUntil(data map[string][]byte) time.Time {
	pair, err := readLeaf(data)
	if err != nil || a.ca.HasSigned(pair.Leaf) {
		return time.Time{}
	}
	if renewal := a.ca.LeafRenewal(pair.Leaf); !renewal.IsZero() {
		return renewal
	}
	return pair.Leaf.NotAfter
}

func readLeaf(data map[string][]byte) (*certificates.Pair, error) {
	return certificates.Read(resources.UseOperator, &corev1.Secret{Data: data})
}
