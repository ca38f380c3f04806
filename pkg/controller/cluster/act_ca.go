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

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// The functions here write the Secret of the CA, under the rule that act_certificates.go states.

// issueCA creates a CA. The CA before it, and every CA that members were given to trust,
// stay trusted.
func issueCA(ctx context.Context, r *run, a planner.IssueCA) error {
	if err := requireSameSpec(ctx, r); err != nil {
		return err
	}
	if a.Mode == certplanner.CAReturned {
		return completeCA(ctx, r)
	}
	name, now := resources.CASecret(r.seen.Cluster), r.Clock.Now()
	live, err := liveSecret(ctx, r, name)
	if err != nil {
		return err
	}
	before, err := requireObservedCA(ctx, r, live, a.Mode)
	if err != nil {
		return err
	}
	if a.Mode == certplanner.CAKept {
		return restoreCA(ctx, r, live)
	}
	next, err := certificates.NewCA(r.seen.Cluster.Name, now)
	if err != nil {
		return err
	}
	trusted := []*x509.Certificate{next.Certificate}
	switch a.Mode {
	case certplanner.CASuccessor:
		if err := before.ca.CrossSign(next); err != nil {
			return err
		}
		trusted = append(trusted, before.trusted...)
	case certplanner.CAAgain: // no member knows any other CA
	case certplanner.CAFirst, certplanner.CAKept, certplanner.CAReturned:
		if trusted, err = withDistributedCAs(ctx, r, trusted); err != nil {
			return err
		}
	}
	data, err := caData(next, trusted, now)
	if err != nil {
		return err
	}
	notes := map[string]string{resources.AnnotationRotateCA: a.Request, annotationRotatedAt: now.UTC().Format(time.RFC3339)}
	if a.Mode != certplanner.CASuccessor || a.Request == "" || a.Request == r.seen.CA.Request {
		spend(r, notes) // no request has brought this CA
	}
	if err := writeSecret(ctx, r, live, name, data, notes); err != nil {
		return err
	}
	if a.Mode == certplanner.CASuccessor {
		if err := recordRotation(ctx, r, before, a.Request); err != nil {
			return err
		}
	}
	normal(r, EventCAIssued, "CA %s signs from now on; it is valid until %s", next.Certificate.Subject.CommonName, next.Certificate.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

// recordRotation counts a rotation after it was carried out. One that is not counted, because this process ends
// before, makes members restart once more at most.
func recordRotation(ctx context.Context, r *run, before *signer, request string) error {
	if r.seen.record == nil {
		return nil // it is created with the next observation
	}
	live, record, err := readRecord(ctx, r)
	if err != nil {
		return err
	}
	cause := before.ca.Certificate.SerialNumber.Text(16)
	if request != "" && request != r.seen.CA.Request {
		cause = request
	}
	record.Rotation = record.Rotation.Next(cause)
	if err := updateRecord(ctx, r, live, record); err != nil {
		return err
	}
	r.seen.Record.Rotation = record.Rotation
	return nil
}

// requireObservedCA returns the CA that a Secret holds, or nil if it holds none that can be used, as
// was observed. Members know the CA that was observed: one that is cross-signed by a CA unknown to them
// does not help them. A CA that is valid only later is replaced only if no member was started with it.
func requireObservedCA(ctx context.Context, r *run, live *corev1.Secret, mode certplanner.CAMode) (*signer, error) {
	var before *signer
	if live != nil {
		if before, _ = readSigner(live); before != nil && !r.Clock.Now().Before(before.ca.Certificate.NotAfter) {
			before = nil
		}
	}
	if (before != nil) != (mode == certplanner.CASuccessor || mode == certplanner.CAAgain) || before != nil && !r.seen.signs(before) {
		return nil, fmt.Errorf("the Secret %s has changed since it was observed: %w", resources.CASecret(r.seen.Cluster), reconcile.ErrStale)
	}
	if mode == certplanner.CAAgain {
		return before, requireNoneStarted(ctx, r)
	}
	return before, nil
}

// requireNoneStarted makes sure that no pod of the cluster may run etcd.
func requireNoneStarted(ctx context.Context, r *run) error {
	pods, err := r.Objects.ListPods(ctx, r.seen.Cluster.Namespace, r.seen.Cluster.Name)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods {
		if p := observedPod(r.seen.Cluster, &pods[i]); p.Owned && !p.Terminating && !p.Finished && !r.seen.isPrepared(&pods[i]) {
			return fmt.Errorf("pod %s was created since it was observed: %w", p.Name, reconcile.ErrStale)
		}
	}
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
	for _, key := range []string{resources.AnnotationRotateCA, resources.AnnotationDropOldCA, annotationRotatedAt} {
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

// completeCA adds the CAs to the Secret of an older CA that was put back, without which members would reject
// each other. They are dropped as after a rotation, which counts from now.
func completeCA(ctx context.Context, r *run) error {
	live, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	data, err := caData(present.ca, slices.Concat(present.trusted, r.seen.needed), now)
	if err != nil {
		return err
	}
	notes := map[string]string{annotationRotatedAt: now.UTC().Format(time.RFC3339)}
	spend(r, notes)
	if err := writeSecret(ctx, r, live, live.Name, data, notes); err != nil {
		return err
	}
	warning(r, EventCAReturned, "Secret %s holds CA %s, and members use certificates of another CA, as after an older Secret was put back. Both CAs are trusted; the former signs when all members trust it",
		live.Name, present.ca.Certificate.Subject.CommonName)
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

// spend notes that the request of a user for the end of an old CA is about no CA that is trusted from now on.
func spend(r *run, notes map[string]string) {
	notes[resources.AnnotationDropOldCA] = r.seen.Cluster.Annotations[resources.AnnotationDropOldCA]
}

// dropCA ends the trust in every CA but the current CA.
func dropCA(ctx context.Context, r *run, a planner.DropOldCAs) error {
	name := resources.CASecret(r.seen.Cluster)
	live, present, err := liveSigner(ctx, r)
	if err != nil {
		return err
	}
	data, err := caData(present.ca, []*x509.Certificate{present.ca.Certificate}, r.Clock.Now())
	if err != nil {
		return err
	}
	notes := map[string]string{}
	if !a.ForNext {
		spend(r, notes)
	}
	if err := writeSecret(ctx, r, live, name, data, notes); err != nil {
		return err
	}
	normal(r, EventCADropped, "Only CA %s is trusted from now on", present.ca.Certificate.Subject.CommonName)
	return nil
}
