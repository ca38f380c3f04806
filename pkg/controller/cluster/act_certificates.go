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
	if a.Mode == certplanner.CAKept {
		return restoreCA(ctx, r, live)
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

// restoreCA writes the CA back whose Secret was lost. Members trust it, so they notice nothing. If
// another controller has issued a CA since this controller read the Secret, the CAs that the other controller has
// distributed stay trusted, too.
func restoreCA(ctx context.Context, r *run, live *corev1.Secret) error {
	name, kept := resources.CASecret(r.seen.Cluster), r.secrets.keptCA(r.key, r.seen.Cluster)
	if kept == nil {
		return fmt.Errorf("the CA of Secret %s is not in memory: %w", name, reconcile.ErrStale)
	}
	present, err := readSigner(kept)
	if err != nil {
		return fmt.Errorf("read the CA that was kept: %w", err)
	}
	trusted, err := withDistributedCAs(ctx, r, present.trusted)
	if err != nil {
		return err
	}
	data, err := caData(present.ca, trusted, r.Clock.Now())
	if err != nil {
		return err
	}
	notes := map[string]string{}
	for _, key := range []string{resources.AnnotationRotateCA, annotationRotatedAt} {
		if value, has := kept.Annotations[key]; has {
			notes[key] = value
		}
	}
	if err := writeSecret(ctx, r, live, name, data, notes); err != nil {
		return err
	}
	warning(r, EventCARestored, "Secret %s of the CA was lost and is written back; to replace a CA, see rotate-ca", name)
	return nil
}

// withDistributedCAs adds the CAs that the cluster has lost with their Secret: what the Secrets of
// members hold, and what those of the controller and of clients hold if members trust it. Otherwise
// the right to change the Secret of clients would be enough to add a CA to what members trust.
func withDistributedCAs(ctx context.Context, r *run, trusted []*x509.Certificate) ([]*x509.Certificate, error) {
	trusted = slices.Clone(trusted)
	for _, n := range neededBy(r.seen.Cluster) {
		secret, err := r.Objects.GetSecret(ctx, r.seen.Cluster.Namespace, n.secret)
		if err != nil && !isNotFound(err) {
			return nil, fmt.Errorf("read Secret %s: %w", n.secret, err)
		}
		if err != nil || !resources.Owns(r.seen.Cluster, secret) {
			continue
		}
		list, err := certificates.ReadAll(secret.Data[corev1.ServiceAccountRootCAKey])
		if err != nil {
			continue // no member trusts what cannot be read
		}
		if n.use != v1beta2.CertificateUsePeer && n.use != v1beta2.CertificateUseServer {
			list = r.seen.trustedByPods(list)
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
	if cross := ca.CrossPEM(); cross != nil {
		data[resources.CrossEntry] = cross
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
	i := slices.IndexFunc(neededBy(r.seen.Cluster), func(n needed) bool { return n.use == a.Use })
	if i < 0 {
		return fmt.Errorf("no %s certificate is needed: %w", a.Use, reconcile.ErrStale)
	}
	name := neededBy(r.seen.Cluster)[i].secret
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return err
	}
	if a.Change == certplanner.ChangeStandIn {
		return copyAccepted(ctx, r, live, name)
	}
	_, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	data := map[string][]byte{corev1.ServiceAccountRootCAKey: certificates.PEM(present.trusted...)}
	if a.Change == certplanner.ChangeBundle && live != nil {
		data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey]
		return writeSecret(ctx, r, live, name, data, nil)
	}
	if a.Change == certplanner.ChangeAll {
		if err := requireTrusted(ctx, r); err != nil {
			return err
		}
	} else if err := requireKnownPods(ctx, r); err != nil {
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

// copyAccepted gives the Secret of the controller, which was lost, a copy of the certificate that members
// accept from the controller. It signs nothing.
func copyAccepted(ctx context.Context, r *run, live *corev1.Secret, name string) error {
	for _, n := range neededBy(r.seen.Cluster) {
		seen := r.seen.certificates[n.use]
		if seen == nil || r.seen.identity == nil || !seen.Leaf.Equal(r.seen.identity.Leaf) {
			continue
		}
		source, err := liveSecret(ctx, r, n.secret)
		if err != nil {
			return err
		}
		if source == nil {
			break
		}
		pair, err := certificates.Read(n.format, source)
		if err != nil || !pair.Leaf.Equal(seen.Leaf) {
			break
		}
		files := resources.Files(n.format, pair.Format)
		err = writeSecret(ctx, r, live, name, map[string][]byte{
			corev1.TLSCertKey: source.Data[files.Cert], corev1.TLSPrivateKeyKey: source.Data[files.Key], corev1.ServiceAccountRootCAKey: source.Data[files.CA],
		}, nil)
		if err == nil {
			warning(r, EventCertificateIssued, "Secret %s was lost, and holds a copy of the %s certificate until all members trust the present CA", name, n.use)
		}
		return err
	}
	return fmt.Errorf("no certificate that members accept is left: %w", reconcile.ErrStale)
}

// requireTrusted makes sure that no member rejects what the present CA signs. A CA that the CA before it
// has not cross-signed is trusted by members that were started since. A cache that is behind may not
// show an older pod, and no list shows a pod that has lost its labels.
func requireTrusted(ctx context.Context, r *run) error {
	return requirePods(ctx, r, func(p *planner.Pod) error {
		if r.seen.trustsCA(p) {
			return nil
		}
		return fmt.Errorf("pod %s was not started with the present CA: %w", p.Name, reconcile.ErrStale)
	})
}

// requireKnownPods makes sure that each pod was observed, before a certificate is signed that members
// may reject.
func requireKnownPods(ctx context.Context, r *run) error {
	return requirePods(ctx, r, func(p *planner.Pod) error {
		if seen := r.seen.podOf(p.Name); seen != nil && seen.UID == p.UID {
			return nil
		}
		return fmt.Errorf("pod %s was created since it was observed: %w", p.Name, reconcile.ErrStale)
	})
}

// requirePods checks the live pods of a cluster that may have served, unless its CA is cross-signed.
func requirePods(ctx context.Context, r *run, check func(*planner.Pod) error) error {
	if r.seen.CA == nil || r.seen.CA.CrossSigned || !planner.HasServed(&r.seen.Observed) {
		return nil
	}
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		live := observedPod(r.seen.Cluster, &pods[i])
		if !live.Owned || live.Terminating || live.Finished || resources.IsPrepared(pods[i].Annotations) {
			continue
		}
		if err := check(&live); err != nil {
			return err
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
