// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// liveBinding returns the Secret of a client as it is now, or nil if there is none.
func liveBinding(ctx context.Context, r *run, name string) (*corev1.Secret, error) {
	secret, err := r.Objects.GetSecret(ctx, r.seen.Cluster.Namespace, name)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if !resources.IsBinding(r.seen.Cluster, secret) {
		return nil, fmt.Errorf("the Secret %s was not made for a client of this cluster: %w", name, reconcile.ErrStale)
	}
	return secret, nil
}

// writeClientSecret creates the Secret of a client, or writes what of it has changed. The spec
// is confirmed first: a cache that is behind must not bring a removed client back.
func writeClientSecret(ctx context.Context, r *run, a planner.WriteClientSecret) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	c := r.seen.Cluster
	i := slices.IndexFunc(c.Spec.Clients, func(client v1beta2.ClusterClient) bool { return client.Name == a.Client })
	if i < 0 {
		return fmt.Errorf("client %s was removed: %w", a.Client, reconcile.ErrStale)
	}
	client := &c.Spec.Clients[i]
	name := client.SecretOf(c.Name)
	live, err := liveBinding(ctx, r, name)
	if err != nil {
		return err
	}
	certificate, err := clientCertificate(ctx, r, client, live, a.Change)
	if err != nil {
		return err
	}
	r.secrets.invalidate(r.key)
	secret := resources.Binding(c, client, live, certificate)
	if live == nil {
		_, err := r.Objects.CreateSecret(ctx, secret)
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the Secret %s was created by another process: %w", name, reconcile.ErrStale)
		}
		return reconcile.MarkTerminating(err)
	}
	if _, err := r.Objects.UpdateSecret(ctx, secret); err != nil {
		return reconcile.StaleOnConflict(err)
	}
	if _, hasCertificate := certificate[corev1.TLSCertKey]; hasCertificate {
		normal(r, EventCertificateIssued, "Certificate of client %s in Secret %s was renewed", client.Name, name)
	}
	return nil
}

// clientCertificate returns the entries of the certificate to write into the Secret of a
// client; none in a cluster without TLS.
func clientCertificate(ctx context.Context, r *run, client *v1beta2.ClusterClient, live *corev1.Secret, change certplanner.Change) (map[string][]byte, error) {
	if !resources.IssuesCertificates(r.seen.Cluster) {
		return nil, nil
	}
	_, present, err := liveSigner(ctx, r)
	if err != nil {
		return nil, err
	}
	entries := map[string][]byte{corev1.ServiceAccountRootCAKey: certificates.PEM(present.trusted...)}
	if change == certplanner.ChangeBundle && live != nil {
		return entries, nil
	}
	chain, private, err := present.ca.Issue(clientTemplate(client), r.Clock.Now())
	if err != nil {
		return nil, err
	}
	entries[corev1.TLSCertKey], entries[corev1.TLSPrivateKeyKey] = chain, private
	return entries, nil
}

// deleteClientSecret deletes the Secret of a client that was removed.
func deleteClientSecret(ctx context.Context, r *run, a planner.DeleteClientSecret) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	live, err := liveBinding(ctx, r, a.Name)
	if err != nil || live == nil {
		return err
	}
	if string(live.UID) != a.UID {
		return fmt.Errorf("the Secret %s was replaced since it was observed: %w", a.Name, reconcile.ErrStale)
	}
	r.secrets.invalidate(r.key)
	uid := types.UID(a.UID)
	err = r.Objects.DeleteSecret(ctx, live.Namespace, live.Name, metav1.Preconditions{UID: &uid, ResourceVersion: &live.ResourceVersion})
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	normal(r, EventClientSecretDeleted, "Secret %s was deleted, because its client was removed from spec.clients", a.Name)
	return nil
}
