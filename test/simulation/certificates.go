// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// What the kubelets do with secrets, and what etcd makes of them: it reads its own
// certificate for each connection, and whom it trusts only when it starts.

// GetSecret implements cluster.Objects.
func (p objectsPort) GetSecret(ctx context.Context, _, name string) (*corev1.Secret, error) {
	return read[*corev1.Secret](ctx, p.c, kindSecret, name)
}

// CreateSecret implements cluster.Objects.
func (p objectsPort) CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return write(ctx, p.c, "create", secret, create[*corev1.Secret])
}

// UpdateSecret implements cluster.Objects.
func (p objectsPort) UpdateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return write(ctx, p.c, "update", secret, update[*corev1.Secret])
}

// Shown implements cluster.Etcd.
func (p etcdPort) Shown(ctx context.Context, target etcd.Target) map[string]etcd.Shown {
	results, err := call(ctx, p.c, "look at certificates", false, true, func() (map[string]etcd.Shown, error) {
		results := map[string]etcd.Shown{}
		for _, e := range target.Endpoints {
			found := p.at(e)
			if found == nil {
				results[e.Name] = etcd.Shown{Err: &etcd.Error{Op: "handshake", Member: e.Name, Kind: etcd.ErrUnavailable}}
				continue
			}
			results[e.Name] = etcd.Shown{Client: leafOf(found.run.mounted(serverSecret)), Peer: leafOf(found.run.mounted(peerSecret))}
		}
		return results, nil
	})
	if err == nil {
		return results
	}
	results = map[string]etcd.Shown{}
	for _, e := range target.Endpoints {
		results[e.Name] = etcd.Shown{Err: err}
	}
	return results
}

// Names of the secrets of the one cluster.
const (
	peerSecret     = clusterName + "-peer-tls"
	serverSecret   = clusterName + "-server-tls"
	operatorSecret = clusterName + "-operator-tls"
	clientSecret   = clusterName + "-client-tls"
	caSecret       = clusterName + "-ca-tls"
)

// mount writes the present content of the pod's secrets into its volumes. While one does
// not exist, its volume keeps what it held; false if it never held anything: no container
// starts before every volume is there.
func (r *run) mount() bool {
	pod, found := r.pod()
	if !found {
		return false
	}
	mounts := map[string]*corev1.Secret{}
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].Secret
		if source == nil {
			continue
		}
		secret, found := lookup[*corev1.Secret](r.w.store, kindSecret, source.SecretName)
		if !found {
			secret = r.mounted(source.SecretName)
		}
		if secret == nil {
			return false
		}
		mounts[source.SecretName] = secret
	}
	r.mounts = mounts
	return true
}

func (r *run) mounted(name string) *corev1.Secret { return r.mounts[name] }

// remount brings a change to the volumes of a pod after a while: soon if the kubelet has
// another reason to look, within a minute and a half anyway.
func (r *run) remount(soon bool) {
	delay := r.w.dice.between(time.Second, 90*time.Second)
	if soon && r.w.dice.chance(80) {
		delay = r.w.dice.between(20*time.Millisecond, 2*time.Second)
	}
	r.w.after(delay, func() {
		switch {
		case r.mounts == nil || r.over || r.node == nil:
		case !r.node.hears():
			r.remount(false)
		default:
			r.mount()
			r.w.checks.talk()
		}
	})
}

// secretChanged is what the kubelets make of a change of a secret.
func (w *World) secretChanged(secret *corev1.Secret) {
	for _, r := range w.runs {
		if r.mounted(secret.Name) != nil {
			r.remount(false)
		}
	}
	w.checks.talk()
}

func certificatesIn(text []byte) []*x509.Certificate {
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return list
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
}

func leafOf(secret *corev1.Secret) *x509.Certificate {
	if secret == nil {
		return nil
	}
	if list := certificatesIn(secret.Data[corev1.TLSCertKey]); len(list) > 0 {
		return list[0]
	}
	return nil
}

// accepts is true if who trusts these authorities takes the certificate in a secret.
func (c *checks) accepts(trusted []byte, shown *corev1.Secret, usage x509.ExtKeyUsage) bool {
	chain := shown.Data[corev1.TLSCertKey]
	for _, known := range c.accepted {
		if bytes.Equal(known[0], trusted) && bytes.Equal(known[1], chain) {
			return true
		}
	}
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: c.w.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	}
	options.Roots.AppendCertsFromPEM(trusted)
	options.Intermediates.AppendCertsFromPEM(chain)
	if _, err := leafOf(shown).Verify(options); err != nil {
		return false
	}
	c.accepted = append(c.accepted, [2][]byte{trusted, chain})
	return true
}

// talk makes sure that no two members refuse each other's certificates, and that no
// member refuses those of the controllers and the clients of now.
func (c *checks) talk() {
	if c.w.plan.CertificatesLost {
		return // then it takes restarts until all trust each other
	}
	var stay []*process
	for _, p := range c.w.etcd.processes {
		// Secrets of the names of a cluster that is gone may belong to the next one already.
		if c.stays(p) && !c.gone[p.dir.lineage.owner] {
			stay = append(stay, p)
		}
	}
	for _, a := range stay {
		for name, usage := range map[string]x509.ExtKeyUsage{operatorSecret: x509.ExtKeyUsageClientAuth, clientSecret: x509.ExtKeyUsageClientAuth} {
			secret, found := lookup[*corev1.Secret](c.w.store, kindSecret, name)
			if found && a.trust != nil && ownerOf(secret) == a.dir.lineage.owner && !c.accepts(a.trust[serverSecret], secret, usage) {
				c.violated("T1", "member %s refuses the certificate in secret %s", a.run.name, name)
			}
		}
		for _, b := range stay {
			if a.trust == nil || b.trust == nil || a.dir.lineage != b.dir.lineage {
				continue
			}
			if !c.accepts(a.trust[peerSecret], b.run.mounted(peerSecret), x509.ExtKeyUsageServerAuth) {
				c.violated("T1", "member %s refuses the certificate of %s", a.run.name, b.run.name)
			}
		}
	}
}

// stays is true for a member of the cluster of now whose pod is not going away.
func (c *checks) stays(p *process) bool {
	cluster, found := lookup[*v1beta2.EtcdCluster](c.w.store, kindCluster, clusterName)
	pod, exists := p.run.pod()
	return found && exists && pod.DeletionTimestamp == nil && string(cluster.UID) == p.dir.lineage.owner &&
		p.dir.lineage.members.find(p.dir.id) != nil
}

// trusts remembers whom a process trusts: what its volumes held when it started.
func (p *process) trusts() {
	if len(p.run.mounts) == 0 {
		return
	}
	p.trust = map[string][]byte{}
	for name, secret := range p.run.mounts {
		p.trust[name] = secret.Data[corev1.ServiceAccountRootCAKey]
	}
}

// encrypt makes the cluster of some schedules one with certificates, and asks for
// another authority now and then. It draws from dice of its own, so that the other
// schedules stay what they were.
func (s *Schedule) encrypt() {
	d := newDice(s.Seed, 3)
	if !d.chance(30) {
		return
	}
	s.Certificates = true
	for range d.IntN(2) {
		e := Event{At: d.between(0, 6*time.Minute), Kind: EventRotateAuthority, A: d.IntN(1 << 16), B: d.IntN(1 << 16), For: d.between(time.Second, 50*time.Second)}
		if d.chance(25) {
			e.Kind = EventDeleteSecret
			// Members do not trust an authority at once that nobody vouched for.
			s.CertificatesLost = s.CertificatesLost || e.secret() == caSecret
		}
		s.Events = append(s.Events, e)
	}
}

func (e Event) secret() string {
	return []string{peerSecret, serverSecret, operatorSecret, clientSecret, caSecret}[e.A%5]
}

// rotate asks for another authority, and says after a while that no client needs the
// old one any more.
func (w *World) rotate(e Event) {
	request := fmt.Sprint("request-", e.B)
	annotate := func(name string) {
		edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, name, request)
		})
	}
	annotate(resources.AnnotationRotateAuthority)
	w.after(e.For, func() { annotate(resources.AnnotationDropAuthority) })
}

// goalCertificates is what is left to do about certificates; empty if nothing is.
func (w *World) goalCertificates(cluster *v1beta2.EtcdCluster, _ *lineage) string {
	if !w.plan.Certificates {
		return ""
	}
	secret, exists := lookup[*corev1.Secret](w.store, kindSecret, caSecret)
	if !exists {
		return "there is no authority"
	}
	request := cluster.Annotations[resources.AnnotationRotateAuthority]
	// One that was met stays so when the API was brought back from before it was made.
	if request != "" && secret.Annotations[resources.AnnotationRotateAuthority] != request {
		return "the request for another authority was not met"
	}
	if request != "" && cluster.Annotations[resources.AnnotationDropAuthority] == request &&
		len(certificatesIn(secret.Data[corev1.ServiceAccountRootCAKey])) > 1 {
		return "the old authority is still trusted"
	}
	for _, name := range []string{peerSecret, serverSecret, operatorSecret, clientSecret} {
		leaf, exists := lookup[*corev1.Secret](w.store, kindSecret, name)
		if !exists || !bytes.Equal(leaf.Data[corev1.ServiceAccountRootCAKey], secret.Data[corev1.ServiceAccountRootCAKey]) {
			return "secret " + name + " does not hold what is trusted"
		}
	}
	return w.goalTrust(secret)
}

// goalTrust: when nothing but the present authority is to be trusted, no member trusts
// another one any more.
func (w *World) goalTrust(authority *corev1.Secret) string {
	now := authority.Data[corev1.ServiceAccountRootCAKey]
	if len(certificatesIn(now)) > 1 {
		return ""
	}
	for _, p := range w.etcd.processes {
		if p.trust != nil && w.checks.stays(p) && !bytes.Equal(p.trust[peerSecret], now) {
			return "member " + p.run.name + " trusts an authority that was dropped"
		}
	}
	return ""
}
