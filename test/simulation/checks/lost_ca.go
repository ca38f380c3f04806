// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"crypto/x509"
	"slices"

	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// lostCA is what T1 must know of a cluster whose CA was lost with its key. No key can
// cross-sign the next CA (ADR 5), so it takes restarts until all members trust the next CA.
// Until then T1 holds as long as the certificate of the peers is left.
type lostCA struct {
	certificate *x509.Certificate
	// peer is true if the certificate of the peers was lost as well. Only a CA that no member trusts
	// can sign it again, so all members restart together.
	peer bool
}

// SecretRemoved notes that a cluster has lost its CA, or the certificate of the peers with it. A person
// may have deleted the Secret, or garbage collection after the cluster was deleted. An API
// that is brought back brings back the cluster, and no Secret. What a controller deletes is
// no excuse.
func (c *Checks) SecretRemoved(secret *corev1.Secret) {
	owner := simetcd.OwnerOf(secret)
	if c.acting != nil || owner == "" {
		return
	}
	if secret.Name == schedules.CASecret && c.lostCAs[owner] == nil {
		c.lostCAs[owner] = &lostCA{certificate: kubernetes.LeafOf(secret)}
	}
	if lost := c.lostCAs[owner]; lost != nil {
		peer, exists := kubernetes.Lookup[*corev1.Secret](c.w.Store, kubernetes.KindSecret, schedules.PeerSecret)
		lost.peer = lost.peer || !exists || simetcd.OwnerOf(peer) != owner
	}
}

// hasLostPeers is true for a cluster whose members may restart together.
func (c *Checks) hasLostPeers(owner string) bool {
	lost := c.lostCAs[owner]
	return lost != nil && lost.peer
}

// restartsTogether is true for a pod that comes back to its volume together with the others, because the
// certificate of the peers was lost with its CA. The etcd has no quorum meanwhile.
func (c *Checks) restartsTogether(pod *corev1.Pod, l *simetcd.Lineage) bool {
	pvc, kept := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, kubernetes.PVCName(pod))
	together := kept && pvc.DeletionTimestamp == nil && c.hasLostPeers(l.Owner)
	c.short = c.short || together
	return together
}

// caReplaced ends what a lost CA excuses, once all that runs or is about to run trusts the CA
// that came after it, or once the same CA is back.
func (c *Checks) caReplaced() {
	for owner, lost := range c.lostCAs {
		ca, exists := kubernetes.Lookup[*corev1.Secret](c.w.Store, kubernetes.KindSecret, schedules.CASecret)
		if exists && simetcd.OwnerOf(ca) == owner && (lost.certificate != nil && lost.certificate.Equal(kubernetes.LeafOf(ca)) || c.allTrust(ca, owner)) {
			delete(c.lostCAs, owner)
		}
	}
}

// allTrust is true if a member of a cluster runs, and all that do were started with this CA.
// The launcher in a prepared pod starts etcd with what the volumes hold by then, so they must
// hold the CA, too. No pod may be older than the Secret with the CA: a controller sees what a pod says, not what it mounts.
func (c *Checks) allTrust(secret *corev1.Secret, owner string) bool {
	present := kubernetes.LeafOf(secret)
	if present == nil {
		return false
	}
	holds := func(bundle []byte) bool {
		return slices.ContainsFunc(kubernetes.CertificatesIn(bundle), present.Equal)
	}
	runs := false
	for _, p := range c.w.Etcd.Processes {
		if pod, exists := p.Run.Pod(); p.Dir.Lineage.Owner != owner || !exists || pod.DeletionTimestamp != nil {
			continue
		}
		if p.Trust == nil || !holds(p.Trust[schedules.PeerSecret]) || !holds(p.Trust[schedules.ServerSecret]) {
			return false
		}
		runs = true
	}
	for _, r := range c.w.Runs {
		pod, exists := r.Pod()
		if !exists || simetcd.OwnerOf(pod) != owner {
			continue
		}
		if pod.CreationTimestamp.Before(&secret.CreationTimestamp) {
			return false // it says that it trusts another CA, whatever it has mounted since
		}
		if r.Mounts() == nil {
			continue
		}
		for _, name := range []string{schedules.PeerSecret, schedules.ServerSecret} {
			if mounted := r.Mounts()[name]; mounted == nil || !holds(mounted.Data[corev1.ServiceAccountRootCAKey]) {
				return false
			}
		}
	}
	return runs
}
