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
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
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
		request, err := readRequest(ctx, r, set, n)
		if err != nil {
			o.Err = err.Error()
			return
		}
		if request == nil {
			secret, err := readSecret(ctx, r, set, r.seen.Cluster.Namespace, n.secret)
			if err != nil {
				o.Err = err.Error()
				return
			}
			request = &certplanner.Request{Use: n.use, Name: n.secret, SecretTaken: secret != nil && !resources.IsWrittenByCertManager(secret)}
		}
		o.Requests = append(o.Requests, *request)
	}
	if slices.ContainsFunc(o.Requests, func(r certplanner.Request) bool { return !r.IsCurrent() }) {
		r.secrets.invalidate(r.key)
	}
}

// readRequest returns what one Certificate of a cluster says, or nil if there is none. A set is for one version of the
// cluster, which the Certificate is compared with.
func readRequest(ctx context.Context, r *run, set *secretSet, n needed) (*certplanner.Request, error) {
	if request, read := set.requests[n.secret]; read {
		return request, nil
	}
	c := r.seen.Cluster
	live, err := r.CertManager.Get(ctx, c.Namespace, n.secret)
	if isNotFound(err) {
		set.requests[n.secret] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Certificate %s: %w", n.secret, err)
	}
	_, drifted := resources.CertificateDrift(requestFor(c, n), live)
	request := &certplanner.Request{
		Use: n.use, Name: n.secret, Exists: true, Owned: resources.Owns(c, live), Drifted: drifted,
		Message: untrusted.Text(resources.CertificateSays(live)),
	}
	set.requests[n.secret] = request
	return request, nil
}

// requestFor returns the Certificate that a cluster needs for a use.
func requestFor(c *v1beta2.EtcdCluster, n needed) *unstructured.Unstructured {
	t := templateOf(c, n.use)
	return resources.CertificateRequest{
		Secret: n.secret, CommonName: t.Name, Hosts: t.Hosts, Server: t.Server, Client: t.Client,
	}.Certificate(c)
}
