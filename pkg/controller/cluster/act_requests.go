// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// requestCertificate creates a Certificate, or changes it to what the cluster needs.
func requestCertificate(ctx context.Context, r *run, a planner.RequestCertificate) error {
	i := slices.IndexFunc(neededBy(r.seen.Cluster), func(n needed) bool { return n.use == a.Use })
	if i < 0 {
		return fmt.Errorf("no %s certificate is needed: %w", a.Use, reconcile.ErrStale)
	}
	want := requestFor(r.seen.Cluster, neededBy(r.seen.Cluster)[i])
	r.secrets.invalidate(r.key)
	live, err := r.CertManager.Get(ctx, want.GetNamespace(), want.GetName())
	if isNotFound(err) {
		_, err := r.CertManager.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the Certificate %s was created by another process: %w", want.GetName(), reconcile.ErrStale)
		}
		if err == nil {
			normal(r, EventCertificateRequested, "Certificate %s asks cert-manager for the %s certificate", want.GetName(), a.Use)
		}
		return reconcile.MarkTerminating(err)
	}
	if err != nil {
		return fmt.Errorf("read Certificate %s: %w", want.GetName(), err)
	}
	if !metav1.IsControlledBy(live, r.seen.Cluster) {
		return fmt.Errorf("the Certificate %s has another owner: %w", want.GetName(), reconcile.ErrStale)
	}
	repaired, drifted := resources.CertificateDrift(want, live)
	if !drifted {
		return nil
	}
	now := r.Clock.Now()
	if differs := differences(repaired, live); r.rewritten.isPaused(r.key, want.GetName(), differs, now) {
		return rewritten(want.GetName(), differs)
	}
	stored, err := r.CertManager.Update(ctx, repaired)
	if err != nil {
		return reconcile.StaleOnConflict(err)
	}
	// A policy may change each write. Without the pause the controller would write again for ever.
	if again, drifted := resources.CertificateDrift(want, stored); drifted {
		differs := differences(again, stored)
		r.rewritten.note(r.key, want.GetName(), differs, now)
		return rewritten(want.GetName(), differs)
	}
	normal(r, EventCertificateRequested, "Repaired Certificate %s", want.GetName())
	return nil
}
