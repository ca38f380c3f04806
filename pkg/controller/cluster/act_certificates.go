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

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The functions here write secrets. Each reads what it changes live before, and writes
// only over exactly that: two processes that issue at the same time never mix.

// liveSecret returns a secret of the cluster as it is now, or nil if there is none.
func liveSecret(ctx context.Context, r *run, name string) (*corev1.Secret, error) {
	secret, err := r.Objects.GetSecret(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if !resources.Owns(r.seen.Cluster, secret) {
		return nil, fmt.Errorf("the Secret %s has another owner: %w", name, reconcile.ErrStale)
	}
	return secret, nil
}

// writeSecret makes a secret, or gives live this data and these annotations.
func writeSecret(ctx context.Context, r *run, live *corev1.Secret, name string, data map[string][]byte, notes map[string]string) error {
	r.secrets.invalidate(r.key)
	if live != nil {
		secret := live.DeepCopy()
		secret.Data = data
		for k, v := range notes {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, k, v)
		}
		_, err := r.Objects.UpdateSecret(ctx, secret)
		return reconcile.StaleOnConflict(err)
	}
	secret := resources.CertificateSecret(r.seen.Cluster, name, data)
	for k, v := range notes {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, k, v)
	}
	_, err := r.Objects.CreateSecret(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the Secret %s was created by another process: %w", name, reconcile.ErrStale)
	}
	return reconcile.MarkTerminating(err)
}

// issueCA creates a CA. The CA before it, and every CA that members were given to trust,
// stay trusted.
func issueCA(ctx context.Context, r *run, a planner.IssueCA) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	name, now := resources.CASecret(r.seen.Cluster), r.Clock.Now()
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return err
	}
	var before *signer
	if live != nil {
		before, err = readSigner(live)
	}
	usable := err == nil && before != nil && now.Before(before.ca.Certificate.NotAfter)
	if usable != (a.Mode == certplanner.CASuccessor) || (usable && !r.seen.signs(before)) {
		// Members know the CA that was observed. A CA that is cross-signed by a CA unknown
		// to them does not help them.
		return fmt.Errorf("the Secret %s has changed since it was observed: %w", name, reconcile.ErrStale)
	}
	next, err := certificates.NewCA(r.seen.Cluster.Name, now)
	if err != nil {
		return err
	}
	trusted := []*x509.Certificate{next.Certificate}
	if a.Mode == certplanner.CASuccessor {
		if err := before.ca.CrossSign(next); err != nil {
			return err
		}
		trusted = append(trusted, before.trusted...)
	} else if trusted, err = withDistributedCAs(ctx, r, trusted); err != nil {
		return err
	}
	data, err := caData(next, trusted, now)
	if err != nil {
		return err
	}
	notes := map[string]string{resources.AnnotationRotateCA: a.Request, annotationRotatedAt: now.UTC().Format(time.RFC3339)}
	if err := writeSecret(ctx, r, live, name, data, notes); err != nil {
		return err
	}
	normal(r, EventCAIssued, "CA %s signs from now on; it is valid until %s", next.Certificate.Subject.CommonName, next.Certificate.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

// withDistributedCAs adds the CAs that are distributed to the members, for a cluster that
// has lost its own CA.
func withDistributedCAs(ctx context.Context, r *run, trusted []*x509.Certificate) ([]*x509.Certificate, error) {
	for _, name := range []string{resources.Secrets(r.seen.Cluster).Peer, resources.Secrets(r.seen.Cluster).Server} {
		secret, err := liveSecret(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		list, err := certificates.ReadAll(secret.Data[corev1.ServiceAccountRootCAKey])
		if err != nil {
			continue // no member trusts what cannot be read
		}
		trusted = append(trusted, list...)
	}
	return trusted, nil
}

func caData(ca *certificates.CA, trusted []*x509.Certificate, now time.Time) (map[string][]byte, error) {
	private, err := ca.KeyPEM()
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
		corev1.TLSCertKey: certificates.PEM(ca.Certificate), corev1.TLSPrivateKeyKey: private,
		corev1.ServiceAccountRootCAKey: certificates.PEM(list...),
	}
	if ca.CrossSigned != nil {
		data[resources.CrossEntry] = certificates.PEM(ca.CrossSigned)
	}
	return data, nil
}

// dropCA ends the trust in every CA but the current CA.
func dropCA(ctx context.Context, r *run, _ planner.DropOldCAs) error {
	name := resources.CASecret(r.seen.Cluster)
	live, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	data, err := caData(present.ca, []*x509.Certificate{present.ca.Certificate}, r.Clock.Now())
	if err != nil {
		return err
	}
	if err := writeSecret(ctx, r, live, name, data, nil); err != nil {
		return err
	}
	normal(r, EventCADropped, "Only CA %s is trusted from now on", present.ca.Certificate.Subject.CommonName)
	return nil
}

// signs is true if a signer is the one that was observed.
func (s *seen) signs(other *signer) bool {
	return s.signer != nil && s.signer.ca.Certificate.Equal(other.ca.Certificate)
}

// liveSigner returns the CA if it still is the CA that was observed.
func liveSigner(ctx context.Context, r *run) (*corev1.Secret, *signer, error) {
	name := resources.CASecret(r.seen.Cluster)
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return nil, nil, err
	}
	if live == nil {
		return nil, nil, fmt.Errorf("the Secret %s no longer exists: %w", name, reconcile.ErrStale)
	}
	present, err := readSigner(live)
	if err != nil {
		return nil, nil, fmt.Errorf("secret %s: %w: %w", name, reconcile.ErrStale, err)
	}
	if !r.seen.signs(present) {
		return nil, nil, fmt.Errorf("the Secret %s has changed since it was observed: %w", name, reconcile.ErrStale)
	}
	return live, present, nil
}

// issueCertificate issues the certificate for one use.
func issueCertificate(ctx context.Context, r *run, a planner.IssueCertificate) error {
	_, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(neededBy(r.seen.Cluster), func(n needed) bool { return n.use == a.Use })
	if i < 0 {
		return fmt.Errorf("no %s certificate is needed: %w", a.Use, reconcile.ErrStale)
	}
	name := neededBy(r.seen.Cluster)[i].secret
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return err
	}
	data := map[string][]byte{corev1.ServiceAccountRootCAKey: certificates.PEM(present.trusted...)}
	if a.Change == certplanner.ChangeBundle && live != nil {
		data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey]
		return writeSecret(ctx, r, live, name, data, nil)
	}
	if err := requireTrusted(ctx, r, a.Use); err != nil {
		return err
	}
	chain, private, err := present.ca.Issue(templateOf(r.seen.Cluster, a.Use), r.Clock.Now())
	if err != nil {
		return err
	}
	data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = chain, private
	if err := writeSecret(ctx, r, live, name, data, nil); err != nil {
		return err
	}
	if live != nil {
		// The first ones go without saying.
		normal(r, EventCertificateIssued, "%s certificate in Secret %s was renewed", a.Use, name)
	}
	return nil
}

// requireTrusted makes sure that no member rejects what the present CA signs, before that replaces a
// certificate that members accept. A CA that the CA before it has not cross-signed is trusted by members
// that were started since. A cache that is behind may not show an older pod,
// and no list shows a pod that has lost its labels.
func requireTrusted(ctx context.Context, r *run, use v1beta2.CertificateUse) error {
	i := slices.IndexFunc(r.seen.Certificates, func(c certplanner.Certificate) bool { return c.Use == use })
	if r.seen.CA == nil || r.seen.CA.CrossSigned || i < 0 {
		return nil
	}
	if c := &r.seen.Certificates[i]; c.State != certplanner.Usable || c.Issued.Signed || !c.Issued.SANsMatch {
		return nil // members do not need it, accept the present CA, or cannot use what they have
	}
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if live := observedPod(r.seen.Cluster, &pods[i]); live.Owned && !live.Terminating && !live.Finished && live.Trust != r.seen.Trust &&
			!resources.IsPrepared(pods[i].Annotations) {
			return fmt.Errorf("pod %s was not started with the present CA: %w", live.Name, reconcile.ErrStale)
		}
	}
	for _, m := range r.seen.Etcd.Members {
		if m.Unmanaged || m.Name == "" || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == m.Name }) {
			continue
		}
		if err := requireNoPod(ctx, r, m.Name); err != nil {
			return err
		}
	}
	return nil
}

// refreshPod tells the kubelet of a pod that its volumes have another content.
func refreshPod(ctx context.Context, r *run, a planner.RefreshPod) error {
	return updateObservedPod(ctx, r, a.Name, a.UID, func(live *corev1.Pod) (*corev1.Pod, bool) {
		pod := live.DeepCopy()
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, resources.AnnotationCertificates, r.seen.mounted())
		return pod, live.Annotations[resources.AnnotationCertificates] != r.seen.mounted()
	})
}
