// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// clientSecret names the Secret of a client. The client is nil if it was removed.
type clientSecret struct {
	secret string
	client *v1beta2.ClusterClient
}

// clientsOf lists the clients of a cluster, then the Secrets of removed clients that the status
// still lists. Nothing else tells of those: Secrets are never listed.
func clientsOf(c *v1beta2.EtcdCluster) []clientSecret {
	if !resources.MakesBindings(c) {
		return nil
	}
	var list []clientSecret
	for i := range c.Spec.Clients {
		client := &c.Spec.Clients[i]
		list = append(list, clientSecret{secret: client.SecretOf(c.Name), client: client})
	}
	for i := range c.Status.Clients {
		name := c.Status.Clients[i].SecretName
		if !slices.ContainsFunc(list, func(s clientSecret) bool { return s.secret == name }) {
			list = append(list, clientSecret{secret: name})
		}
	}
	return list
}

// observeClients reads the Secrets of clients. It comes after observeCertificates, which reads
// the CA.
func observeClients(ctx context.Context, r *run) {
	list := clientsOf(r.seen.Cluster)
	if len(list) == 0 {
		return
	}
	set := r.secrets.of(r.key, r.seen.Cluster, r.seen.Now)
	defer set.release()
	settled := true
	for _, s := range list {
		o := observeClient(ctx, r, set, s)
		settled = settled && s.client != nil && o.State == certplanner.Usable
		r.seen.Clients = append(r.seen.Clients, o)
	}
	if !settled {
		r.secrets.invalidate(r.key)
	}
}

func observeClient(ctx context.Context, r *run, set *secretSet, s clientSecret) planner.Client {
	o := planner.Client{Certificate: certplanner.Certificate{Use: v1beta2.CertificateUseClient, Secret: s.secret}}
	if s.client != nil {
		o.Name = s.client.Name
	}
	secret, err := ownSecret(ctx, r, set, s.secret, true)
	if err == nil && !resources.IsBinding(r.seen.Cluster, secret) {
		err = errNotBinding
	}
	if err == nil {
		o.UID = string(secret.UID)
		if s.client != nil {
			o.EntriesMatch = resources.MatchesBinding(r.seen.Cluster, s.client, secret)
			err = observeClientCertificate(r, &o, s.client, secret)
		}
	}
	if o.State = stateOf(err); err != nil {
		o.Message = fmt.Sprintf("secret %s (client %s): %v", s.secret, o.Name, err)
	}
	return o
}

// observeClientCertificate returns what is wrong with the certificate in the Secret of a
// client. A cluster without TLS has none.
func observeClientCertificate(r *run, o *planner.Client, client *v1beta2.ClusterClient, secret *corev1.Secret) error {
	if !resources.IssuesCertificates(r.seen.Cluster) {
		return nil
	}
	pair, err := certificates.Read(resources.UseOperator, secret)
	if err != nil {
		return err
	}
	describeCertificate(&o.Certificate, pair.Leaf)
	r.seen.describeIssued(&o.Certificate, pair, clientTemplate(client))
	return r.seen.check(v1beta2.CertificateUseClient, pair)
}

// clientTemplate describes the certificate of a client.
func clientTemplate(client *v1beta2.ClusterClient) certificates.Template {
	return certificates.Template{Name: client.CertificateName(), Client: true}
}
