// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

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

// signs is true if a signer is the one that was observed, and has the same CAs trusted.
func (s *seen) signs(other *signer) bool {
	return s.signer != nil && s.signer.ca.Certificate.Equal(other.ca.Certificate) &&
		certificates.Trust(s.signer.trusted) == certificates.Trust(other.trusted)
}

// holds is true if a certificate is the one that was observed for a use.
func (s *seen) holds(use v1beta2.CertificateUse, pair *certificates.Pair) bool {
	return s.certificates[use] != nil && s.certificates[use].Leaf.Equal(pair.Leaf)
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
		r.secrets.invalidate(r.key)
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
	needs := neededBy(r.seen.Cluster)[i]
	name := needs.secret
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return err
	}
	if a.Change == certplanner.ChangeStandIn {
		return copyAccepted(ctx, r, live, name, a.Use)
	}
	_, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	data := map[string][]byte{corev1.ServiceAccountRootCAKey: certificates.PEM(present.trusted...)}
	if a.Change == certplanner.ChangeBundle && live != nil {
		if pair, err := certificates.Read(needs.format, live); err != nil || !r.seen.holds(a.Use, pair) {
			// The CAs that are trusted now were chosen for another certificate.
			r.secrets.invalidate(r.key)
			return fmt.Errorf("the Secret %s has changed since it was observed: %w", name, reconcile.ErrStale)
		}
		data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey]
		return writeSecret(ctx, r, live, name, data, nil)
	}
	if err := requireAccepting(ctx, r, a.Change); err != nil {
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

// copyAccepted gives the Secret of the controller, which was lost, a copy of the certificate of another use
// that most members accept from the controller. It signs nothing.
func copyAccepted(ctx context.Context, r *run, live *corev1.Secret, name string, lost v1beta2.CertificateUse) error {
	accepted := r.seen.acceptedIdentity(lost)
	for _, n := range neededBy(r.seen.Cluster) {
		seen := r.seen.certificates[n.use]
		if n.use == lost || seen == nil || accepted == nil || !seen.Leaf.Equal(accepted.Leaf) {
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
		data := map[string][]byte{
			corev1.TLSCertKey: source.Data[files.Cert], corev1.TLSPrivateKeyKey: source.Data[files.Key], corev1.ServiceAccountRootCAKey: source.Data[files.CA],
		}
		if live != nil && maps.EqualFunc(live.Data, data, bytes.Equal) {
			return nil // the copy counts as lost, too, while the Secrets of members do not list its CA
		}
		if err = writeSecret(ctx, r, live, name, data, nil); err == nil {
			warning(r, EventCertificateIssued, "Secret %s was lost, and holds a copy of the %s certificate until all members trust the present CA", name, n.use)
		}
		return err
	}
	return fmt.Errorf("no certificate that members accept is left: %w", reconcile.ErrStale)
}

// requireAccepting makes sure that members accept a certificate that is signed now, as far as that was observed. An
// outdated cache may show a cluster that has never served and has no pods.
func requireAccepting(ctx context.Context, r *run, change certplanner.Change) error {
	switch {
	case r.seen.CA == nil:
		return nil
	case planner.HasServed(&r.seen.Observed) && change == certplanner.ChangeAll:
		return requireTrusted(ctx, r)
	default:
		return requireKnownPods(ctx, r)
	}
}

// requireTrusted makes sure that no member rejects what the present CA signs: each was started with it, or
// with the CA that has cross-signed it. A cache that is behind may not
// show an older pod, and no list shows a pod that has lost its labels.
func requireTrusted(ctx context.Context, r *run) error {
	return requirePods(ctx, r, func(p *planner.Pod) error {
		if r.seen.trustsCA(p) || r.seen.trustsPrevious(p) {
			return nil
		}
		return fmt.Errorf("pod %s was not started with the present CA, or with the one that has cross-signed it: %w", p.Name, reconcile.ErrStale)
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

// requirePods checks the live pods of a cluster.
func requirePods(ctx context.Context, r *run, check func(*planner.Pod) error) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		live := observedPod(r.seen.Cluster, &pods[i])
		if !live.Owned || live.Terminating || live.Finished || r.seen.isPrepared(&pods[i]) {
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
