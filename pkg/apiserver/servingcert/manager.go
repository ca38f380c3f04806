// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"
)

const (
	// syncPeriod is how often the Secret and the APIService are read. An APIService whose
	// caBundle was removed is repaired within this time.
	syncPeriod = 30 * time.Second
	// retryPeriod follows a sync that failed.
	retryPeriod = 2 * time.Second
	// yieldPeriod is how long a manager keeps what another manager has put in the place of its leaf. The clocks of two
	// machines may differ by more than the life of a certificate. Without this pause they would write in turns at each sync.
	yieldPeriod = 10 * time.Minute
	// maxSteps limits the steps of one sync. A bundle that was not renewed for long needs several.
	maxSteps = 8
)

// ErrContended means that other writers changed the Secret at each attempt to write it.
var ErrContended = errors.New("other writers changed the Secret at each attempt; the write is retried")

// errClocks means that two replicas do not agree on the time.
var errClocks = errors.New("another replica has replaced the certificate by one that it issued at an earlier time; compare the clocks of the nodes")

// Config names the objects that the manager writes.
type Config struct {
	// Namespace of the Secret and the Service.
	Namespace string
	// Service through which the kube-apiserver connects to the server.
	Service string
	// Secret that holds the certificates.
	Secret string
	// APIService whose caBundle the manager writes.
	APIService string
}

// Manager issues, renews and publishes the certificates.
type Manager struct {
	config     Config
	kube       kubernetes.Interface
	aggregator aggregator.Interface
	clock      clock.Clock
	provider   *provider
	// known is the content of the Secret at the last read.
	known *bundle
	// written is the leaf that this manager wrote last; nil if another manager has replaced it since.
	written *x509.Certificate
	// yieldsUntil is when this manager decides again, after another manager has replaced what it wrote.
	yieldsUntil time.Time
}

// NewManager returns a manager that has no certificate yet.
func NewManager(config Config, kube kubernetes.Interface, aggregator aggregator.Interface, clock clock.Clock) *Manager {
	return &Manager{config: config, kube: kube, aggregator: aggregator, clock: clock, provider: &provider{}}
}

// Provider returns the source of the present certificate for a TLS listener.
func (m *Manager) Provider() dynamiccertificates.CertKeyContentProvider { return m.provider }

// names returns the host names of the leaf. The kube-apiserver uses the first.
func (m *Manager) names() []string {
	return []string{
		fmt.Sprintf("%s.%s.svc", m.config.Service, m.config.Namespace),
		fmt.Sprintf("%s.%s.svc.cluster.local", m.config.Service, m.config.Namespace),
		fmt.Sprintf("%s.%s", m.config.Service, m.config.Namespace),
		"localhost",
	}
}

// Start returns when there is a certificate. It waits without a limit for a kube-apiserver that
// does not respond.
func (m *Manager) Start(ctx context.Context) error {
	for {
		err := m.Sync(ctx)
		if !m.provider.isEmpty() {
			return nil
		}
		klog.FromContext(ctx).Error(err, "No serving certificate yet", "retryAfter", retryPeriod)
		if err := m.wait(ctx, retryPeriod); err != nil {
			return err
		}
	}
}

// Run renews the certificates until the context ends.
func (m *Manager) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	period := syncPeriod
	for m.wait(ctx, period) == nil {
		period = syncPeriod
		if err := m.Sync(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Sync of the serving certificate failed", "retryAfter", retryPeriod)
			period = retryPeriod
		}
	}
}

func (m *Manager) wait(ctx context.Context, period time.Duration) error {
	timer := m.clock.NewTimer(period)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// Sync takes every step that is due. It writes the caBundle of the APIService before the server
// uses a certificate that needs it.
func (m *Manager) Sync(ctx context.Context) error {
	current, err := m.ensureSecret(ctx)
	if err != nil {
		return fmt.Errorf("the Secret %s/%s: %w", m.config.Namespace, m.config.Secret, err)
	}
	caBundleErr := m.ensureCABundle(ctx, current)
	if caBundleErr != nil {
		caBundleErr = fmt.Errorf("caBundle of APIService %s: %w", m.config.APIService, caBundleErr)
		if !m.provider.isEmpty() {
			return caBundleErr
		}
	}
	certificate, key, err := current.leafPEM()
	if err != nil {
		return err
	}
	if m.provider.set(certificate, key) {
		klog.FromContext(ctx).Info("Serving certificate loaded",
			"secret", klog.KRef(m.config.Namespace, m.config.Secret), "notAfter", current.leaf.NotAfter)
	}
	return caBundleErr
}

// ensureSecret takes every step that is due and returns the content of the Secret.
func (m *Manager) ensureSecret(ctx context.Context) (*bundle, error) {
	for range maxSteps {
		secret, have, err := m.read(ctx)
		if err != nil {
			return nil, err
		}
		now := notBeforeLastWrite(m.clock.Now(), secret)
		step := plan(now, have, m.names())
		if step == StepNone || m.yields(ctx, have) {
			m.known = have
			return have, nil
		}
		next, err := have.step(step, now, m.names())
		if err != nil {
			return nil, err
		}
		// A deleted Secret is created again. Other replicas use their certificates for some time
		// more, so that clients must trust the former CAs too.
		if have == nil && m.known != nil {
			next.cas = append(next.cas, m.known.cas...)
		}
		err = m.write(ctx, secret, next)
		// Another replica has written the Secret first; the next attempt reads that.
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.written = next.leaf
		klog.FromContext(ctx).Info("Serving certificates changed",
			"secret", klog.KRef(m.config.Namespace, m.config.Secret), "step", step)
	}
	return nil, ErrContended
}

// notBeforeLastWrite returns the time of the local clock, or of the last write of the Secret if that is later. The
// kube-apiserver dates each write. It also is the client that verifies the certificate, so a local clock that is behind
// must not decide that the certificate is not valid yet.
func notBeforeLastWrite(now time.Time, secret *corev1.Secret) time.Time {
	if secret == nil {
		return now
	}
	latest := secret.CreationTimestamp.Time
	for _, f := range secret.ManagedFields {
		if f.Time != nil && f.Time.After(latest) {
			latest = f.Time.Time
		}
	}
	if latest.After(now) {
		return latest
	}
	return now
}

// yields is true for some time after another manager has replaced the leaf that m wrote by a leaf that was
// issued earlier. The clocks of the two machines differ, and it is not known which clock is right.
func (m *Manager) yields(ctx context.Context, have *bundle) bool {
	if have == nil {
		return false
	}
	if m.written != nil && !m.written.Equal(have.leaf) {
		if have.leaf.NotBefore.Before(m.written.NotBefore) {
			m.yieldsUntil = m.clock.Now().Add(yieldPeriod)
			klog.FromContext(ctx).Error(errClocks, "Serving certificate of this replica was replaced", "decidesAgain", m.yieldsUntil)
		}
		m.written = nil
	}
	return m.clock.Now().Before(m.yieldsUntil)
}

// read returns the Secret and its content. The Secret is nil if it does not exist, the content is
// nil if it cannot be used.
func (m *Manager) read(ctx context.Context) (*corev1.Secret, *bundle, error) {
	secret, err := m.kube.CoreV1().Secrets(m.config.Namespace).Get(ctx, m.config.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	have, err := parse(secret.Data)
	if err != nil {
		klog.FromContext(ctx).Info("Secret has no usable certificates, new ones are issued", "secret", klog.KObj(secret), "reason", err)
		return secret, nil, nil
	}
	return secret, have, nil
}

func (m *Manager) write(ctx context.Context, secret *corev1.Secret, next *bundle) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	secrets := m.kube.CoreV1().Secrets(m.config.Namespace)
	if secret == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.config.Namespace, Name: m.config.Secret},
			Type:       corev1.SecretTypeTLS,
			Data:       data,
		}, metav1.CreateOptions{})
		return err
	}
	// With the resource version only the first of several replicas succeeds.
	changed := secret.DeepCopy()
	changed.Data = data
	_, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// ensureCABundle makes the kube-apiserver trust the bundle. If the APIService does not exist, a
// later sync finds it.
func (m *Manager) ensureCABundle(ctx context.Context, current *bundle) error {
	caBundle, err := current.caBundlePEM()
	if err != nil {
		return err
	}
	services := m.aggregator.ApiregistrationV1().APIServices()
	service, err := services.Get(ctx, m.config.APIService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(2).Info("APIService does not exist yet", "apiService", m.config.APIService)
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Equal(service.Spec.CABundle, caBundle) && !service.Spec.InsecureSkipTLSVerify {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": service.ResourceVersion},
		"spec":     map[string]any{"caBundle": caBundle, "insecureSkipTLSVerify": false},
	})
	if err != nil {
		return err
	}
	if _, err := services.Patch(ctx, m.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("APIService updated with the CA of the serving certificate", "apiService", m.config.APIService)
	return nil
}
