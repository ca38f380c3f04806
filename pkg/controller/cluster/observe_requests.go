// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeRequests looks at what cert-manager was asked for. Certificates are read one by
// one, like the secrets, and for as long: to watch them would take an API that may not be
// there.
func (r *Reconciler) observeRequests(ctx context.Context, key types.NamespacedName, s *seen, set *secretSet) {
	o := &planner.CertManager{}
	s.CertManager = o
	var err error
	if o.Served, err = r.CertManager.Served(); err != nil {
		o.Err = err.Error()
		return
	}
	if !o.Served {
		return
	}
	for _, n := range neededBy(s.Cluster) {
		live, err := r.certificate(ctx, set, s.Cluster.Namespace, n.secret)
		if err != nil {
			o.Err = err.Error()
			return
		}
		request := planner.Request{Use: n.use, Name: n.secret}
		if live != nil {
			_, drifted := resources.CertificateDrift(requestFor(s.Cluster, n), live)
			request.State, request.Says = state(s.Cluster, live, drifted), resources.CertificateSays(live)
		}
		o.Requests = append(o.Requests, request)
	}
	if slices.ContainsFunc(o.Requests, func(r planner.Request) bool { return r.State != planner.Current }) {
		r.secrets.doubt(key)
	}
}

// certificate returns one Certificate of a cluster, or nil if there is none.
func (r *Reconciler) certificate(ctx context.Context, set *secretSet, namespace, name string) (*unstructured.Unstructured, error) {
	if live, read := set.requests[name]; read {
		return live, nil
	}
	live, err := r.CertManager.Get(ctx, namespace, name)
	switch {
	case notFound(err):
		live = nil
	case err != nil:
		return nil, fmt.Errorf("read certificate request %s: %w", name, err)
	}
	set.requests[name] = live
	return live, nil
}

// requestFor returns the Certificate that a cluster needs for a use.
func requestFor(c *v1beta2.EtcdCluster, n needed) *unstructured.Unstructured {
	t := templateOf(c, n.use)
	return resources.CertificateRequest{
		Secret: n.secret, CommonName: t.Name, Hosts: t.Hosts, Server: t.Server, Client: t.Client,
	}.Certificate(c)
}

// requestCertificate makes a Certificate, or makes it again what it shall be.
func (r *Reconciler) requestCertificate(ctx context.Context, key types.NamespacedName, s *seen, a planner.RequestCertificate) error {
	i := slices.IndexFunc(neededBy(s.Cluster), func(n needed) bool { return n.use == a.Use })
	if i < 0 {
		return fmt.Errorf("no %s certificate is needed: %w", a.Use, ErrStale)
	}
	want := requestFor(s.Cluster, neededBy(s.Cluster)[i])
	r.secrets.doubt(key)
	live, err := r.CertManager.Get(ctx, want.GetNamespace(), want.GetName())
	if notFound(err) {
		_, err := r.CertManager.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("certificate request %s was made meanwhile: %w", want.GetName(), ErrStale)
		}
		if err == nil {
			r.normal(s, EventCertificateRequested, "Certificate %s asks cert-manager for the %s certificate", want.GetName(), a.Use)
		}
		return ending(err)
	}
	if err != nil {
		return fmt.Errorf("read certificate request %s: %w", want.GetName(), err)
	}
	if !metav1.IsControlledBy(live, s.Cluster) {
		return fmt.Errorf("certificate request %s belongs to somebody else: %w", want.GetName(), ErrStale)
	}
	repaired, drifted := resources.CertificateDrift(want, live)
	if !drifted {
		return nil
	}
	if _, err := r.CertManager.Update(ctx, repaired); err != nil {
		return conflictIsStale(err)
	}
	r.normal(s, EventCertificateRequested, "Certificate %s was made again what the cluster needs", want.GetName())
	return nil
}
