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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The functions here write secrets. Each reads what it changes live before, and writes
// only over exactly that: two processes that issue at the same time never mix.

// liveSecret returns a secret of the cluster as it is now, or nil if there is none.
func (r *Reconciler) liveSecret(ctx context.Context, s *seen, name string) (*corev1.Secret, error) {
	secret, err := r.Objects.GetSecret(ctx, s.Cluster.Namespace, name)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	if !resources.Owns(s.Cluster, secret) {
		return nil, fmt.Errorf("secret %s belongs to somebody else: %w", name, ErrStale)
	}
	return secret, nil
}

// writeSecret makes a secret, or gives live this data and these annotations.
func (r *Reconciler) writeSecret(ctx context.Context, key types.NamespacedName, s *seen, live *corev1.Secret, name string, data map[string][]byte, notes map[string]string) error {
	r.secrets.doubt(key)
	if live != nil {
		secret := live.DeepCopy()
		secret.Data = data
		for k, v := range notes {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, k, v)
		}
		_, err := r.Objects.UpdateSecret(ctx, secret)
		return conflictIsStale(err)
	}
	secret := resources.CertificateSecret(s.Cluster, name, data)
	for k, v := range notes {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, k, v)
	}
	_, err := r.Objects.CreateSecret(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("secret %s was made meanwhile: %w", name, ErrStale)
	}
	return ending(err)
}

// issueAuthority makes an authority. The one before, and any that members were given to
// trust, stay trusted.
func (r *Reconciler) issueAuthority(ctx context.Context, key types.NamespacedName, s *seen, a planner.IssueAuthority) error {
	if err := r.confirmSpec(ctx, s); err != nil {
		return err
	}
	name, now := resources.AuthoritySecret(s.Cluster), r.Clock.Now()
	live, err := r.liveSecret(ctx, s, name)
	if err != nil {
		return err
	}
	var before *signer
	if live != nil {
		before, err = readSigner(live)
	}
	usable := err == nil && before != nil && now.Before(before.authority.Certificate.NotAfter)
	if usable != a.Renew || (usable && !s.signs(before)) {
		// Members know the one that was observed. Nobody who vouches for another one of
		// which they have not heard yet helps them.
		return fmt.Errorf("secret %s is another one now: %w", name, ErrStale)
	}
	next, err := certificates.NewAuthority(s.Cluster.Name, now)
	if err != nil {
		return err
	}
	trusted := []*x509.Certificate{next.Certificate}
	if a.Renew {
		if err := before.authority.VouchFor(next); err != nil {
			return err
		}
		trusted = append(trusted, before.trusted...)
	} else if trusted, err = r.handedOut(ctx, s, trusted); err != nil {
		return err
	}
	data, err := authorityData(next, trusted, now)
	if err != nil {
		return err
	}
	notes := map[string]string{resources.AnnotationRotateAuthority: a.Request, annotationRotatedAt: now.UTC().Format(time.RFC3339)}
	if err := r.writeSecret(ctx, key, s, live, name, data, notes); err != nil {
		return err
	}
	r.normal(s, EventAuthorityIssued, "Authority %s signs from now on; it is valid until %s",
		next.Certificate.Subject.CommonName, next.Certificate.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

// handedOut adds the authorities that members were told to trust, for a cluster whose
// own authority is lost.
func (r *Reconciler) handedOut(ctx context.Context, s *seen, trusted []*x509.Certificate) ([]*x509.Certificate, error) {
	for _, name := range []string{resources.Secrets(s.Cluster).Peer, resources.Secrets(s.Cluster).Server} {
		secret, err := r.liveSecret(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		list, err := certificates.ReadAll(secret.Data[corev1.ServiceAccountRootCAKey])
		if err != nil {
			continue // what cannot be read is not trusted by anybody
		}
		trusted = append(trusted, list...)
	}
	return trusted, nil
}

func authorityData(authority *certificates.Authority, trusted []*x509.Certificate, now time.Time) (map[string][]byte, error) {
	private, err := authority.KeyPEM()
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for _, c := range trusted {
		if now.Before(c.NotAfter) && !slices.ContainsFunc(list, c.Equal) {
			list = append(list, c)
		}
	}
	data := map[string][]byte{
		corev1.TLSCertKey: certificates.PEM(authority.Certificate), corev1.TLSPrivateKeyKey: private,
		corev1.ServiceAccountRootCAKey: certificates.PEM(list...),
	}
	if authority.Cross != nil {
		data[resources.CrossEntry] = certificates.PEM(authority.Cross)
	}
	return data, nil
}

// dropAuthority ends the trust in all but the present authority.
func (r *Reconciler) dropAuthority(ctx context.Context, key types.NamespacedName, s *seen) error {
	name := resources.AuthoritySecret(s.Cluster)
	live, present, err := r.liveSigner(ctx, s)
	if err != nil {
		return err
	}
	data, err := authorityData(present.authority, []*x509.Certificate{present.authority.Certificate}, r.Clock.Now())
	if err != nil {
		return err
	}
	if err := r.writeSecret(ctx, key, s, live, name, data, nil); err != nil {
		return err
	}
	r.normal(s, EventAuthorityDropped, "Only authority %s is trusted from now on", present.authority.Certificate.Subject.CommonName)
	return nil
}

// signs is true if a signer is the one that was observed.
func (s *seen) signs(other *signer) bool {
	return s.signer != nil && s.signer.authority.Certificate.Equal(other.authority.Certificate)
}

// liveSigner returns the authority, if it still is the one that was observed.
func (r *Reconciler) liveSigner(ctx context.Context, s *seen) (*corev1.Secret, *signer, error) {
	name := resources.AuthoritySecret(s.Cluster)
	live, err := r.liveSecret(ctx, s, name)
	if err != nil {
		return nil, nil, err
	}
	if live == nil {
		return nil, nil, fmt.Errorf("secret %s is gone: %w", name, ErrStale)
	}
	present, err := readSigner(live)
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s: %w: %w", name, ErrStale, err)
	}
	if !s.signs(present) {
		return nil, nil, fmt.Errorf("secret %s is another one now: %w", name, ErrStale)
	}
	return live, present, nil
}

// issueCertificate issues the certificate for one use.
func (r *Reconciler) issueCertificate(ctx context.Context, key types.NamespacedName, s *seen, a planner.IssueCertificate) error {
	_, present, err := r.liveSigner(ctx, s)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(neededBy(s.Cluster), func(n needed) bool { return n.use == a.Use })
	if i < 0 {
		return fmt.Errorf("no %s certificate is needed: %w", a.Use, ErrStale)
	}
	name := neededBy(s.Cluster)[i].secret
	live, err := r.liveSecret(ctx, s, name)
	if err != nil {
		return err
	}
	data := map[string][]byte{corev1.ServiceAccountRootCAKey: certificates.PEM(present.trusted...)}
	if a.Keep && live != nil {
		data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey]
		return r.writeSecret(ctx, key, s, live, name, data, nil)
	}
	chain, private, err := present.authority.Issue(templateOf(s.Cluster, a.Use), r.Clock.Now())
	if err != nil {
		return err
	}
	data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = chain, private
	if err := r.writeSecret(ctx, key, s, live, name, data, nil); err != nil {
		return err
	}
	if live != nil {
		// The first ones go without saying.
		r.normal(s, EventCertificateIssued, "%s certificate in secret %s was issued anew", a.Use, name)
	}
	return nil
}

// refreshPod tells the kubelet of a pod that its volumes have another content.
func (r *Reconciler) refreshPod(ctx context.Context, key types.NamespacedName, s *seen, a planner.RefreshPod) error {
	return r.changePod(ctx, key, s, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		pod := live.DeepCopy()
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, resources.AnnotationCertificates, s.mounted())
		return pod, live.Annotations[resources.AnnotationCertificates] != s.mounted()
	})
}

// certify does what is about certificates; done is false for other actions.
func (r *Reconciler) certify(ctx context.Context, key types.NamespacedName, s *seen, action planner.Action) (done bool, err error) {
	switch a := action.(type) {
	case planner.IssueAuthority:
		return true, r.issueAuthority(ctx, key, s, a)
	case planner.DropAuthority:
		return true, r.dropAuthority(ctx, key, s)
	case planner.IssueCertificate:
		return true, r.issueCertificate(ctx, key, s, a)
	case planner.RequestCertificate:
		return true, r.requestCertificate(ctx, key, s, a)
	case planner.RefreshPod:
		return true, r.refreshPod(ctx, key, s, a)
	default:
		return false, nil
	}
}
