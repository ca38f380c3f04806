// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
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
	// syncPeriod is how often the Secret and the APIService are looked at. It bounds
	// how long an APIService whose bundle somebody removed stays broken.
	syncPeriod = 30 * time.Second
	// retryPeriod follows a sync that failed.
	retryPeriod = 2 * time.Second
	// maxSteps bounds one sync; a bundle that is far behind needs a few.
	maxSteps = 8
)

// ErrContended is returned when other replicas keep writing the Secret.
var ErrContended = errors.New("the secret keeps changing")

// Config names what the manager keeps.
type Config struct {
	// Namespace of the Secret and the Service.
	Namespace string
	// Service that the kube-apiserver reaches the server by.
	Service string
	// Secret that holds the certificates.
	Secret string
	// APIService whose caBundle is kept right.
	APIService string
}

// Manager keeps the certificates.
type Manager struct {
	config     Config
	kube       kubernetes.Interface
	aggregator aggregator.Interface
	clock      clock.Clock
	provider   *provider
	// known is what the Secret held last.
	known *bundle
}

// NewManager returns a manager that has no certificate yet.
func NewManager(config Config, kube kubernetes.Interface, aggregator aggregator.Interface, clock clock.Clock) *Manager {
	return &Manager{config: config, kube: kube, aggregator: aggregator, clock: clock, provider: &provider{}}
}

// Provider hands the present certificate to a TLS listener.
func (m *Manager) Provider() dynamiccertificates.CertKeyContentProvider { return m.provider }

// names are the host names of the leaf; the kube-apiserver asks for the first.
func (m *Manager) names() []string {
	return []string{
		fmt.Sprintf("%s.%s.svc", m.config.Service, m.config.Namespace),
		fmt.Sprintf("%s.%s.svc.cluster.local", m.config.Service, m.config.Namespace),
		fmt.Sprintf("%s.%s", m.config.Service, m.config.Namespace),
		"localhost",
	}
}

// Start returns when there is a certificate to show. It waits for a kube-apiserver
// that is away.
func (m *Manager) Start(ctx context.Context) error {
	for {
		err := m.Sync(ctx)
		if !m.provider.empty() {
			return nil
		}
		klog.FromContext(ctx).Error(err, "No serving certificate yet", "retryAfter", retryPeriod)
		if err := m.wait(ctx, retryPeriod); err != nil {
			return err
		}
	}
}

// Run keeps the certificates until the context ends.
func (m *Manager) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	period := syncPeriod
	for m.wait(ctx, period) == nil {
		period = syncPeriod
		if err := m.Sync(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Serving certificate was not synced", "retryAfter", retryPeriod)
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

// Sync takes every step that the certificates need now. What clients shall trust
// reaches the APIService before the server shows anything that needs it.
func (m *Manager) Sync(ctx context.Context) error {
	current, err := m.ensureSecret(ctx)
	if err != nil {
		return fmt.Errorf("secret %s/%s: %w", m.config.Namespace, m.config.Secret, err)
	}
	trustErr := m.ensureTrust(ctx, current)
	if trustErr != nil {
		trustErr = fmt.Errorf("caBundle of APIService %s: %w", m.config.APIService, trustErr)
		if !m.provider.empty() {
			return trustErr
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
	return trustErr
}

// ensureSecret returns what the Secret holds once no step is left to take.
func (m *Manager) ensureSecret(ctx context.Context) (*bundle, error) {
	for range maxSteps {
		secret, have, err := m.read(ctx)
		if err != nil {
			return nil, err
		}
		now := m.clock.Now()
		step := plan(now, have, m.names())
		if step == StepNone {
			m.known = have
			return have, nil
		}
		next, err := have.step(step, now, m.names())
		if err != nil {
			return nil, err
		}
		// A Secret that was deleted is created again. Other replicas show their certificates for
		// some time more, so that clients must trust the authorities of before as well.
		if have == nil && m.known != nil {
			next.authorities = append(next.authorities, m.known.authorities...)
		}
		err = m.write(ctx, secret, next)
		// Another replica was first: what it wrote is as good.
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		klog.FromContext(ctx).Info("Serving certificates changed",
			"secret", klog.KRef(m.config.Namespace, m.config.Secret), "step", step)
	}
	return nil, ErrContended
}

// read returns the Secret, or nil if there is none, and what it holds, or nil if
// that is of no use.
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
		klog.FromContext(ctx).Info("Secret holds no usable certificates, they will be made anew", "secret", klog.KObj(secret), "reason", err)
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
	// The resource version makes the first of several replicas win.
	changed := secret.DeepCopy()
	changed.Data = data
	_, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// ensureTrust makes the kube-apiserver trust the bundle. An APIService that does not
// exist yet is none of our business: it may be applied later, and is then found.
func (m *Manager) ensureTrust(ctx context.Context, current *bundle) error {
	trust, err := current.trustPEM()
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
	if bytes.Equal(service.Spec.CABundle, trust) && !service.Spec.InsecureSkipTLSVerify {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": service.ResourceVersion},
		"spec":     map[string]any{"caBundle": trust, "insecureSkipTLSVerify": false},
	})
	if err != nil {
		return err
	}
	if _, err := services.Patch(ctx, m.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("APIService trusts the serving certificates", "apiService", m.config.APIService)
	return nil
}
