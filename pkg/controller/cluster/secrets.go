// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/apiclock"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// secretLife is how long what was read of the secrets of a cluster at rest is good for.
// The kubelets take about as long to bring a change to the members.
const secretLife = 5 * time.Minute

// secretLook is how often one of them is read again at rest, in turn: nothing else tells that a
// Secret was deleted. Several are mostly deleted together, so one look finds it.
const secretLook = 15 * time.Second

// A tenant chooses how large a Secret is, and how many a cluster names. So little of them stays in memory between two
// observations. The others are read again at each observation, and nothing else changes for them. Parsed certificates take
// up to six times the bytes of a Secret.
const (
	// maxKept is the size of a Secret that is kept, with its metadata. A Secret with RSA keys, two intermediate CAs and a
	// copy of itself in an annotation of kubectl has 28 KiB.
	maxKept = 32 << 10
	// maxKeptOfCluster bounds all Secrets of one cluster. Those of 32 clients have 150 KiB.
	maxKeptOfCluster = 8 * maxKept
)

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
	digest [sha256.Size]byte
	pair   *certificates.Pair
	signer *signer
	err    error
}

// of returns what was parsed of a Secret with the same data; otherwise it calls parse.
func (p parsedSecrets) of(use v1beta2.CertificateUse, secret *corev1.Secret, parse func() parsedSecret) parsedSecret {
	digest := digestOf(secret.Data)
	if known, found := p[use]; found && known.digest == digest {
		return known
	}
	result := parse()
	result.digest = digest
	if delete(p, use); secret.Size() <= maxKept {
		p[use] = result
	}
	return result
}

// digestOf names the data of a Secret.
func digestOf(data map[string][]byte) [sha256.Size]byte {
	hash := sha256.New()
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(hash, "%d %s %d ", len(entry), entry, len(data[entry]))
		hash.Write(data[entry])
	}
	return [sha256.Size]byte(hash.Sum(nil))
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
	// requests is what was read of the Certificates of cert-manager; nil where there is none. A Certificate is not kept: its
	// author chooses its size.
	requests map[string]*certplanner.Request
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

// keep keeps the Secret of a CA that can be used. One before it must not come back in its place, so none is kept if this
// one is too large.
func (c *secretCache) keep(key types.NamespacedName, secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if secret.Size() > maxKept {
		delete(c.kept, key)
		return
	}
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
	if set := c.clusters[key]; set != nil && set.version == cluster.ResourceVersion && !apiclock.IsOver(set.readAt, now, secretLife) {
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
		requests: map[string]*certplanner.Request{}, parsed: c.parsed[key],
	}
	c.clusters[key] = set
	return set
}

// dropOldest has the Secret read again that was read first, if it is time.
func (s *secretSet) dropOldest(now time.Time) {
	if !apiclock.IsOver(s.lookedAt, now, secretLook) || len(s.order) == 0 {
		return
	}
	delete(s.secrets, s.order[0])
	s.order, s.lookedAt = s.order[1:], now
}

// release drops the Secrets that are too large to be kept, and of many those that are larger than the others.
func (s *secretSet) release() {
	sizes := map[string]int{}
	for name, secret := range s.secrets {
		if secret != nil {
			sizes[name] = secret.Size()
		}
	}
	bySize := slices.Clone(s.order)
	slices.SortStableFunc(bySize, func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	total := 0
	for _, name := range bySize {
		if total += sizes[name]; sizes[name] > maxKept || total > maxKeptOfCluster {
			delete(s.secrets, name)
		}
	}
	s.order = slices.DeleteFunc(s.order, func(name string) bool { _, kept := s.secrets[name]; return !kept })
}

// readSecret returns one secret of a cluster, or nil if it does not exist.
func readSecret(ctx context.Context, r *run, set *secretSet, namespace, name string) (*corev1.Secret, error) {
	if secret, read := set.secrets[name]; read {
		return secret, nil
	}
	set.release() // at most one large Secret is in memory at a time
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
