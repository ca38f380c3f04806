// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeRequests looks at the Certificates that cert-manager was to issue. They are read
// one by one, like the Secrets, and cached for as long. A watch would need an API that may
// not exist.
func observeRequests(ctx context.Context, r *run, set *secretSet) {
	o := &certplanner.CertManager{}
	r.seen.CertManager = o
	var err error
	if o.Served, err = r.CertManager.Served(); err != nil {
		o.Err = err.Error()
		return
	}
	if !o.Served {
		return
	}
	for _, n := range neededBy(r.seen.Cluster) {
		live, err := readCertificate(ctx, r, set, r.seen.Cluster.Namespace, n.secret)
		if err != nil {
			o.Err = err.Error()
			return
		}
		request := certplanner.Request{Use: n.use, Name: n.secret}
		switch {
		case live == nil:
			secret, err := readSecret(ctx, r, set, r.seen.Cluster.Namespace, n.secret)
			if err != nil {
				o.Err = err.Error()
				return
			}
			request.SecretTaken = secret != nil && !resources.IsWrittenByCertManager(secret)
		default:
			_, drifted := resources.CertificateDrift(requestFor(r.seen.Cluster, n), live)
			request.Exists, request.Owned, request.Drifted = true, resources.Owns(r.seen.Cluster, live), drifted
			request.Message = resources.CertificateSays(live)
		}
		o.Requests = append(o.Requests, request)
	}
	if slices.ContainsFunc(o.Requests, func(r certplanner.Request) bool { return !r.IsCurrent() }) {
		r.secrets.invalidate(r.key)
	}
}

// readCertificate returns one Certificate of a cluster, or nil if there is none.
func readCertificate(ctx context.Context, r *run, set *secretSet, namespace, name string) (*unstructured.Unstructured, error) {
	if live, read := set.requests[name]; read {
		return live, nil
	}
	live, err := r.CertManager.Get(ctx, namespace, name)
	switch {
	case isNotFound(err):
		live = nil
	case err != nil:
		return nil, fmt.Errorf("read Certificate %s: %w", name, err)
	}
	set.requests[name] = live
	return live, nil
}

// requestFor returns the Certificate that a cluster needs for a use.
func requestFor(c *v1beta2.EtcdCluster, n needed) *unstructured.Unstructured {
	t := templateOf(c, n.use)
	return resources.CertificateRequest{
		Secret: n.secret, CommonName: t.Name, Hosts: t.Hosts, Server: t.Server, Client: t.Client,
	}.Certificate(c)
}
