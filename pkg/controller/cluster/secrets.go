// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// secretLife is how long what was read of the secrets of a cluster at rest is good for.
// The kubelets take about as long to bring a change to the members.
const secretLife = 5 * time.Minute

// secretLook is how often one of them is read again at rest, in turn: nothing else tells that a
// Secret was deleted. Several are mostly deleted together, so one look finds it.
const secretLook = 15 * time.Second

// secretCache holds the Secrets that clusters name, because they are read one by one and
// not watched. They are read again as soon as something is in doubt: when a Secret was
// missing or not usable, when a member did not respond, when the cluster changed.
type secretCache struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]*secretSet
	// kept holds the last Secret of each CA that could be used, as long as the process lives.
	kept   map[types.NamespacedName]*corev1.Secret
	parsed map[types.NamespacedName]parsedSecrets
}

// parsedSecrets holds what was parsed of the Secrets of one cluster, by what it is used for. It
// outlives the secretSet: most Secrets that are read again have the same content.
type parsedSecrets map[v1beta2.CertificateUse]parsedSecret

// parsedSecret is what was parsed of one Secret, which depends only on its data.
type parsedSecret struct {
	data   map[string][]byte
	pair   *certificates.Pair
	signer *signer
	err    error
}

// of returns what was parsed of a Secret with the same data; otherwise it calls parse.
func (p parsedSecrets) of(use v1beta2.CertificateUse, secret *corev1.Secret, parse func() parsedSecret) parsedSecret {
	if known, found := p[use]; found && maps.EqualFunc(known.data, secret.Data, bytes.Equal) {
		return known
	}
	result := parse()
	result.data = secret.Data
	p[use] = result
	return result
}

// secretSet is what was read for one cluster. A secret that does not exist is nil.
type secretSet struct {
	readAt time.Time
	// version of the cluster object that it was read for.
	version string
	secrets map[string]*corev1.Secret
	// order of the names in secrets, the one that was read first in front, and when the one in
	// front was dropped last.
	order    []string
	lookedAt time.Time
	// requests are the Certificates of cert-manager that were read; nil where there is none.
	requests map[string]*unstructured.Unstructured
	parsed   parsedSecrets
}

// forget drops what was read for a cluster.
func (c *secretCache) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, key)
	delete(c.parsed, key)
	delete(c.kept, key)
}

// keep keeps the Secret of a CA that can be used.
func (c *secretCache) keep(key types.NamespacedName, secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[types.NamespacedName]*corev1.Secret{}
	}
	c.kept[key] = secret
}

// dropKept forgets the Secret of the CA of a cluster.
func (c *secretCache) dropKept(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, key)
}

// keptCA returns the last usable Secret of the CA of a cluster, or nil.
func (c *secretCache) keptCA(key types.NamespacedName, cluster *v1beta2.EtcdCluster) *corev1.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	if secret := c.kept[key]; secret != nil && resources.Owns(cluster, secret) {
		return secret
	}
	return nil
}

// invalidate makes the next observation read the secrets of a cluster again.
func (c *secretCache) invalidate(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, key)
}

// of returns what is still valid of what was read for a cluster. The result belongs to the
// caller, which is the only worker of the key.
func (c *secretCache) of(key types.NamespacedName, cluster *v1beta2.EtcdCluster, now time.Time) *secretSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.clusters[key]; set != nil && set.version == cluster.ResourceVersion && now.Sub(set.readAt) < secretLife {
		set.dropOldest(now)
		return set
	}
	if c.clusters == nil {
		c.clusters, c.parsed = map[types.NamespacedName]*secretSet{}, map[types.NamespacedName]parsedSecrets{}
	}
	if c.parsed[key] == nil {
		c.parsed[key] = parsedSecrets{}
	}
	set := &secretSet{
		readAt: now, lookedAt: now, version: cluster.ResourceVersion, secrets: map[string]*corev1.Secret{},
		requests: map[string]*unstructured.Unstructured{}, parsed: c.parsed[key],
	}
	c.clusters[key] = set
	return set
}

// dropOldest has the Secret read again that was read first, if it is time.
func (s *secretSet) dropOldest(now time.Time) {
	if now.Sub(s.lookedAt) < secretLook || len(s.order) == 0 {
		return
	}
	delete(s.secrets, s.order[0])
	s.order, s.lookedAt = s.order[1:], now
}

// readSecret returns one secret of a cluster, or nil if it does not exist.
func readSecret(ctx context.Context, r *run, set *secretSet, namespace, name string) (*corev1.Secret, error) {
	if secret, read := set.secrets[name]; read {
		return secret, nil
	}
	secret, err := r.Objects.GetSecret(ctx, namespace, name)
	if isNotFound(err) {
		secret, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	set.secrets[name], set.order = secret, append(set.order, name)
	return secret, nil
}
