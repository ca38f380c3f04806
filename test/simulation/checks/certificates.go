// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"crypto/x509"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// CertificatesChanged makes sure that no two members reject each other's certificates, and
// that no member rejects the current certificates of controllers and clients.
func (c *Checks) CertificatesChanged() {
	c.caReplaced()
	var stay []*simetcd.Process
	for _, p := range c.w.Etcd.Processes {
		// Secrets with the names of a deleted cluster may belong to the next one already.
		if c.stays(p) && !c.Deleted[p.Dir.Lineage.Owner] && !c.hasLostPeers(p.Dir.Lineage.Owner) {
			stay = append(stay, p)
		}
	}
	for _, a := range stay {
		for name, usage := range map[string]x509.ExtKeyUsage{schedules.OperatorSecret: x509.ExtKeyUsageClientAuth, schedules.ClientSecret: x509.ExtKeyUsageClientAuth} {
			secret, found := kubernetes.Lookup[*corev1.Secret](c.w.Store, kubernetes.KindSecret, name)
			if found && a.Trust != nil && simetcd.OwnerOf(secret) == a.Dir.Lineage.Owner && !c.w.Accepts(a.Trust[schedules.ServerSecret], secret, usage) {
				c.w.Violated("T1", "member %s rejects the certificate in secret %s", a.Run.Name(), name)
			}
		}
		for _, b := range stay {
			if a.Trust == nil || b.Trust == nil || a.Dir.Lineage != b.Dir.Lineage {
				continue
			}
			if !c.w.Accepts(a.Trust[schedules.PeerSecret], b.Run.Mounts()[schedules.PeerSecret], x509.ExtKeyUsageServerAuth) {
				c.w.Violated("T1", "member %s rejects the certificate of %s", a.Run.Name(), b.Run.Name())
			}
		}
	}
}

// stays is true for a member of the cluster of now whose pod is not going away.
func (c *Checks) stays(p *simetcd.Process) bool {
	cluster, found := kubernetes.Lookup[*v1beta2.EtcdCluster](c.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	pod, exists := p.Run.Pod()
	return found && exists && pod.DeletionTimestamp == nil && string(cluster.UID) == p.Dir.Lineage.Owner &&
		p.Dir.Lineage.Members.Find(p.Dir.Id) != nil
}

// goalCertificates returns what the controller still has to do about certificates; empty if
// nothing.
func (c *Checks) goalCertificates(cluster *v1beta2.EtcdCluster, _ *simetcd.Lineage) string {
	if !c.w.Plan.Certificates {
		return ""
	}
	secret, exists := kubernetes.Lookup[*corev1.Secret](c.w.Store, kubernetes.KindSecret, schedules.CASecret)
	if !exists {
		return "there is no CA"
	}
	request := cluster.Annotations[resources.AnnotationRotateCA]
	dropped, met := cluster.Annotations[resources.AnnotationDropOldCA], secret.Annotations[resources.AnnotationRotateCA]
	// An older CA stays trusted for a day, unless a user drops it, and another CA waits for that. A request that was
	// carried out counts for no later CA.
	released := dropped != "" && dropped != secret.Annotations[resources.AnnotationDropOldCA] && (dropped == request || dropped == met)
	overlaps := len(kubernetes.CertificatesIn(secret.Data[corev1.ServiceAccountRootCAKey])) > 1
	switch {
	case overlaps && released:
		return "the old CA is still trusted"
	case request != "" && met != request && !overlaps: // one that was met stays so when the API was brought back from before it was made
		return "the request for another CA was not met"
	}
	for _, name := range []string{schedules.PeerSecret, schedules.ServerSecret, schedules.OperatorSecret, schedules.ClientSecret} {
		leaf, exists := kubernetes.Lookup[*corev1.Secret](c.w.Store, kubernetes.KindSecret, name)
		if !exists || !bytes.Equal(leaf.Data[corev1.ServiceAccountRootCAKey], secret.Data[corev1.ServiceAccountRootCAKey]) {
			return "secret " + name + " does not hold what is trusted"
		}
	}
	return c.goalTrust(secret)
}

// goalTrust: when only the present CA is to be trusted, no member trusts another CA any more.
func (c *Checks) goalTrust(ca *corev1.Secret) string {
	now := ca.Data[corev1.ServiceAccountRootCAKey]
	if len(kubernetes.CertificatesIn(now)) > 1 {
		return ""
	}
	for _, p := range c.w.Etcd.Processes {
		if p.Trust != nil && c.stays(p) && !bytes.Equal(p.Trust[schedules.PeerSecret], now) {
			return "member " + p.Run.Name() + " trusts a CA that was dropped"
		}
	}
	return ""
}
