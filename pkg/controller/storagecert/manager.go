// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storagecert

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// syncPeriod is how often the Secrets are read. A Secret that was deleted is made again
	// within this time.
	syncPeriod = time.Minute
	// retryPeriod follows a sync that failed.
	retryPeriod = 2 * time.Second
)

// Suffixes of the names of the Secrets, after the name of the Service.
const (
	caSuffix     = "-ca"
	memberSuffix = "-member"
	clientSuffix = "-client"
)

// Config names the etcd that the certificates are for.
type Config struct {
	// Namespace of the etcd and of the Secrets.
	Namespace string
	// Service is the headless Service. The names of the Secrets begin with it.
	Service string
	// EmbeddedService, if not empty, is the Service of the only API server, which has this etcd
	// inside. There is no headless Service then.
	EmbeddedService string
}

// Manager issues and renews the certificates.
type Manager struct {
	config Config
	kube   kubernetes.Interface
	clock  clock.Clock
	// kept is the last CA that was read from its Secret or written there.
	kept *issuer
	// setRestartBefore gets at each sync by when programs must restart; zero for never.
	setRestartBefore func(time.Time)
}

// NewManager returns a manager that has not read anything yet.
func NewManager(config Config, kube kubernetes.Interface, clock clock.Clock) *Manager {
	return &Manager{config: config, kube: kube, clock: clock, setRestartBefore: metrics.SetStorageRestartBefore}
}

// Run keeps the Secrets in order until the context ends.
func (m *Manager) Run(ctx context.Context) {
	for {
		period := syncPeriod
		if err := m.Sync(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Sync of the certificates of the storage failed", "retryAfter", retryPeriod)
			period = retryPeriod
		}
		timer := m.clock.NewTimer(period)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// Sync makes every change that is due. The CA is written before what it signs. If another
// controller was faster, the error is a conflict, and the next sync finds what that has written.
func (m *Manager) Sync(ctx context.Context) error {
	leaves, err := m.readLeaves(ctx)
	if err != nil {
		return err
	}
	current, err := m.syncCA(ctx, leaves)
	if err != nil {
		return fmt.Errorf("CA in Secret %s: %w", m.config.Service+caSuffix, err)
	}
	var restartBefore time.Time
	for _, leaf := range leaves {
		data, changed, err := current.leafData(m.clock.Now(), dataOf(leaf.secret), leaf.template)
		if err != nil {
			return fmt.Errorf("certificate for Secret %s: %w", leaf.name, err)
		}
		// The embedded etcd reads its certificates for each connection, so nothing must restart.
		if end := current.keptUntil(data); m.config.EmbeddedService == "" && !end.IsZero() && (restartBefore.IsZero() || end.Before(restartBefore)) {
			restartBefore = end
		}
		if !changed {
			continue
		}
		if err := m.write(ctx, leaf.secret, leaf.name, data); err != nil {
			return fmt.Errorf("write Secret %s: %w", leaf.name, err)
		}
		klog.FromContext(ctx).Info("Certificate of the storage issued", "secret", klog.KRef(m.config.Namespace, leaf.name))
	}
	m.setRestartBefore(restartBefore)
	if !restartBefore.IsZero() {
		klog.FromContext(ctx).Info("Certificates of the storage are of a CA that was lost. Restart members and API servers before they are renewed, or they reject each other: see the README of artifacts/ha",
			"secret", klog.KRef(m.config.Namespace, m.config.Service+caSuffix), "restartBefore", restartBefore)
	}
	return nil
}

// leaf is a Secret with a certificate that the CA signs.
type leaf struct {
	name     string
	template certificates.Template
	// secret is nil if it does not exist.
	secret *corev1.Secret
}

func (m *Manager) readLeaves(ctx context.Context) ([]leaf, error) {
	leaves := []leaf{
		{name: m.config.Service + memberSuffix, template: m.memberTemplate()},
		{name: ClientSecret(m.config.Service), template: certificates.Template{Name: m.config.Service + clientSuffix, Client: true}},
	}
	for i := range leaves {
		secret, err := m.get(ctx, leaves[i].name)
		if err != nil {
			return nil, err
		}
		leaves[i].secret = secret
	}
	return leaves, nil
}

// memberTemplate describes the certificate of the members. With an EmbeddedService it is good for
// artifacts/ha, too: members there that are started after the only API server need not wait until
// another certificate reaches them.
func (m *Manager) memberTemplate() certificates.Template {
	service := m.config.Service + "." + m.config.Namespace + ".svc"
	hosts := []string{"*." + service, "*." + service + ".cluster.local", service, "localhost"}
	if m.config.EmbeddedService != "" {
		embedded := m.config.EmbeddedService + "." + m.config.Namespace + ".svc"
		hosts = append(hosts, embedded, embedded+".cluster.local")
	}
	return certificates.Template{
		Name: m.config.Service + memberSuffix, Hosts: append(hosts, "127.0.0.1", "::1"), Server: true, Client: true,
	}
}

// syncCA makes the change of the CA that is due, and returns the CA.
func (m *Manager) syncCA(ctx context.Context, leaves []leaf) (*issuer, error) {
	name := m.config.Service + caSuffix
	secret, err := m.get(ctx, name)
	if err != nil {
		return nil, err
	}
	o := m.observe(ctx, secret, leaves)
	now := m.clock.Now()
	change := planCA(now, o)
	next, err := o.apply(change, m.config.Service, now)
	if err != nil {
		return nil, err
	}
	if change != ChangeNone {
		if err := m.writeCA(ctx, secret, name, o.asked.endedBy(change), next); err != nil {
			return nil, err
		}
		reportCA(ctx, klog.KRef(m.config.Namespace, name), change, next)
	}
	m.kept = next
	return next, nil
}

// observe returns what is known of the CA. The Secret is nil if it does not exist.
func (m *Manager) observe(ctx context.Context, secret *corev1.Secret, leaves []leaf) *observed {
	o := &observed{kept: m.kept, distributed: distributedCAs(leaves)}
	for _, leaf := range leaves {
		if pair, err := readLeaf(dataOf(leaf.secret)); err == nil {
			o.leaves = append(o.leaves, pair)
		}
	}
	if secret == nil {
		return o
	}
	have, err := readIssuer(secret.Data)
	if err != nil {
		klog.FromContext(ctx).Info("The CA in the Secret of the storage cannot be used and is replaced", "secret", klog.KObj(secret), "reason", err)
	} else {
		o.have = have
	}
	_, o.asked.rotate = secret.Annotations[resources.AnnotationRotateCA]
	_, o.asked.drop = secret.Annotations[resources.AnnotationDropOldCA]
	return o
}

// writeCA writes the Secret of the CA. These requests end with the same write.
func (m *Manager) writeCA(ctx context.Context, secret *corev1.Secret, name string, ended requests, next *issuer) error {
	data, err := next.data()
	if err != nil {
		return err
	}
	if secret != nil {
		secret = secret.DeepCopy()
		if ended.rotate {
			delete(secret.Annotations, resources.AnnotationRotateCA)
		}
		if ended.drop {
			delete(secret.Annotations, resources.AnnotationDropOldCA)
		}
	}
	return m.write(ctx, secret, name, data)
}

// reportCA writes a change to the log, and what a person has to do after it.
func reportCA(ctx context.Context, secret klog.ObjectRef, change Change, next *issuer) {
	logger := klog.FromContext(ctx)
	logger.Info("CA of the storage changed", "secret", secret, "change", change, "notAfter", next.ca.Certificate.NotAfter)
	if change == ChangeComplete || change == ChangeCreate && len(next.trusted) > 1 {
		logger.Info("Members and API servers do not trust the CA of the storage before they start again. "+
			"Restart them within the days before their certificates are renewed: see the README of artifacts/ha", "secret", secret)
	}
}

// distributedCAs returns the CAs that programs were given to trust.
func distributedCAs(leaves []leaf) []*x509.Certificate {
	var all []*x509.Certificate
	for _, leaf := range leaves {
		list, err := certificates.ReadAll(dataOf(leaf.secret)[corev1.ServiceAccountRootCAKey])
		if err != nil {
			continue // no program trusts what cannot be read
		}
		for _, c := range list {
			if !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	return all
}

func dataOf(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	return secret.Data
}

// get returns a Secret; nil if it does not exist.
func (m *Manager) get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := m.kube.CoreV1().Secrets(m.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}

// write gives a Secret that was read this content, or creates it. The resource version makes a
// write fail that another controller was faster with.
func (m *Manager) write(ctx context.Context, secret *corev1.Secret, name string, data map[string][]byte) error {
	secrets := m.kube.CoreV1().Secrets(m.config.Namespace)
	if secret != nil {
		changed := secret.DeepCopy()
		changed.Data = data
		_, err := secrets.Update(ctx, changed, metav1.UpdateOptions{})
		return err
	}
	_, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.config.Namespace, Name: name, Labels: map[string]string{
			"app.kubernetes.io/part-of": "etcd-operator", "app.kubernetes.io/component": "storage",
		}},
		Type: corev1.SecretTypeTLS,
		Data: data,
	}, metav1.CreateOptions{})
	return err
}

// ClientSecret returns the name of the Secret with the certificate of the clients of the etcd
// whose Service has this name.
func ClientSecret(service string) string { return service + clientSuffix }
