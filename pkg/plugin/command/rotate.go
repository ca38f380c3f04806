// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// overlap is how long an old CA stays trusted for clients.
const overlap = 24 * time.Hour

func (a *app) rotateCACommand() *cobra.Command {
	o, drop := &changeOptions{}, false
	cmd := &cobra.Command{
		Use:   "rotate-ca NAME",
		Short: "Replace the CA of a cluster and issue all certificates again",
		Long: `Replaces the CA of a cluster with spec.TLS.auto and issues all certificates again. The old
CA stays trusted for one more day, for clients that have not read their new certificate.
Then members restart one after the other, to trust the new CA only.

--drop-old ends the trust in the old CA of the last rotation before that day has passed, as
soon as every member shows its new certificate.`,
		Example: `  kubectl etcd rotate-ca prod
  kubectl etcd rotate-ca prod --drop-old`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.rotationTarget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if drop {
				return a.dropOldCA(cmd.Context(), o, t)
			}
			return a.rotateCA(cmd.Context(), o, t)
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&drop, "drop-old", false, "end the trust in the old CA of the last rotation now; clients must have read their new certificate")
	return cmd
}

// rotationTarget reads a cluster whose CA can be rotated now.
func (a *app) rotationTarget(ctx context.Context, name string) (*target, error) {
	t, err := a.target(ctx, name)
	if err != nil {
		return nil, err
	}
	switch spec := &t.cluster.Spec; {
	case spec.TLS == nil || spec.TLS.Auto == nil:
		return nil, failure.NotMet(fmt.Sprintf("%s has no CA of its own, because spec.TLS.auto is not set; replace the certificates where they are issued", t))
	case spec.Paused:
		return nil, failure.NotMet(fmt.Sprintf("%s is paused, so the controller issues no CA; end the pause: kubectl etcd resume %s -n %s", t, name, t.cluster.Namespace))
	case ptr.Deref(spec.Replicas, 0) == 0:
		return nil, failure.NotMet(fmt.Sprintf("%s is hibernated, so the controller issues no CA; wake it: kubectl etcd wake %s -n %s", t, name, t.cluster.Namespace))
	case certificateOf(t.cluster, v1beta2.CertificateUseCA).SerialNumber == "":
		return nil, failure.NotMet(fmt.Sprintf("status.certificates of %s shows no CA yet; see kubectl etcd why %s -n %s", t, name, t.cluster.Namespace))
	default:
		return t, nil
	}
}

func (a *app) rotateCA(ctx context.Context, o *changeOptions, t *target) error {
	old := certificateOf(t.cluster, v1beta2.CertificateUseCA)
	lines := []string{fmt.Sprintf("Rotation of the CA of %s: the controller issues another CA and all certificates again. The old CA stays trusted for a day.", t)}
	if t.cluster.Annotations[resources.AnnotationRotateCA] != "" && a.age(old) < overlap {
		lines = append(lines, "  The present CA is less than a day old. While its predecessor is trusted, the rotation waits. End that trust with --drop-old.")
	}
	request := a.Clock.Now().UTC().Format(time.RFC3339)
	send := func(ctx context.Context, dryRun bool) error {
		return t.annotate(ctx, resources.AnnotationRotateCA, request, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title:       "Rotation of the CA of " + t.String(),
		needsQuorum: true,
		plan:        func(ctx context.Context) ([]string, error) { return lines, send(ctx, true) },
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			return t.readThen(func(t *target) (state, error) { return lookAtRotation(t, old.SerialNumber), nil }), "", nil
		},
	})
}

func (a *app) dropOldCA(ctx context.Context, o *changeOptions, t *target) error {
	ca := certificateOf(t.cluster, v1beta2.CertificateUseCA)
	lines := []string{fmt.Sprintf("End of the old CA of %s: clients with a certificate of the old CA are rejected. Members restart one after the other.", t)}
	effective := !trustsOneCA(t.cluster)
	if !effective {
		lines = []string{fmt.Sprintf("The status of %s shows no old CA that is still trusted. The request is sent for CA %s only, in case the status is behind. Without an old CA it has no effect.", t, ca.Issuer)}
	}
	send := func(ctx context.Context, dryRun bool) error { // for this CA, not for the one that is requested next
		return t.annotate(ctx, resources.AnnotationDropOldCA, ca.SerialNumber, dryRun)
	}
	return a.carryOut(ctx, o, t, change{
		title:       "End of the old CA of " + t.String(),
		needsQuorum: effective,
		plan:        func(ctx context.Context) ([]string, error) { return lines, send(ctx, true) },
		request: func(ctx context.Context) (func(context.Context) (state, error), string, error) {
			if err := send(ctx, false); err != nil {
				return nil, "", err
			}
			if !effective { // no certificate is issued again, so there is nothing to follow
				return nil, trustedOnly(t), nil
			}
			return t.readThen(func(t *target) (state, error) { return lookAtOldCA(t), stalled(t, t.cluster) }), "", nil
		},
	})
}

// age is how long ago a certificate was issued.
func (a *app) age(c v1beta2.CertificateStatus) time.Duration {
	if c.NotBefore == nil {
		return 0
	}
	return a.Clock.Now().Sub(certificates.IssuedAt(c.NotBefore.Time))
}

// trustsOneCA is true if the status shows that only the present CA is trusted: while an older CA is trusted too, the
// message of CertificatesValid says what keeps that.
func trustsOneCA(cluster *v1beta2.EtcdCluster) bool {
	valid := report.ConditionOf(cluster, v1beta2.ClusterConditionCertificatesValid)
	return valid.Reason == reasonAllUsable && valid.Message == ""
}

// trustedOnly says that the present CA is the only one that is trusted.
func trustedOnly(t *target) string {
	return fmt.Sprintf("Members and clients of %s trust CA %s only.", t, certificateOf(t.cluster, v1beta2.CertificateUseCA).Issuer)
}

// certificateOf returns the certificate for a use; empty if there is none.
func certificateOf(cluster *v1beta2.EtcdCluster, use v1beta2.CertificateUse) v1beta2.CertificateStatus {
	for _, c := range cluster.Status.Certificates {
		if c.Use == use {
			return c
		}
	}
	return v1beta2.CertificateStatus{}
}

// lookAtRotation is done once another CA has issued every certificate.
func lookAtRotation(t *target, old string) state {
	ca := certificateOf(t.cluster, v1beta2.CertificateUseCA)
	now := state{step: progress.Step{Text: certificateWork(t.cluster)}, outcome: fmt.Sprintf(
		"CA %s has issued all certificates of %s. The old CA stays trusted for a day. End that earlier: kubectl etcd rotate-ca %s --drop-old -n %s",
		ca.Issuer, t, t.cluster.Name, t.cluster.Namespace)}
	if ca.SerialNumber == old {
		return now
	}
	for _, c := range t.cluster.Status.Certificates {
		now.step.Total++
		if c.Issuer == ca.Issuer && c.Usable == corev1.ConditionTrue {
			now.step.Done++
		}
	}
	now.done = now.step.Done == now.step.Total
	return now
}

// lookAtOldCA is done once the status shows that only the present CA is trusted and no member has to restart.
func lookAtOldCA(t *target) state {
	return state{step: progress.Step{Text: certificateWork(t.cluster)}, done: trustsOneCA(t.cluster) && isReady(t.cluster), outcome: trustedOnly(t)}
}

// Reasons of CertificatesValid.
const (
	// reasonAllUsable: every certificate can be used.
	reasonAllUsable = "AllUsable"
)

// certificateWork says what the controller does with certificates.
func certificateWork(cluster *v1beta2.EtcdCluster) string {
	if c := report.ConditionOf(cluster, v1beta2.ClusterConditionCertificatesValid); c.Message != "" {
		return c.Message
	}
	return waitsFor(cluster)
}
