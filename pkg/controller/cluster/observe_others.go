// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// leaveOthers returns the endpoints of the etcd to take over without those of another EtcdCluster, and notes that cluster.
// Each endpoint tells by its own list which etcd it belongs to. A list that another endpoint returns proves nothing: the
// author of the EtcdCluster may run the other, and have it name any members and any cluster ID. The requests that
// change members would then reach the etcd of others. An endpoint without a list counts as one that does not respond.
func leaveOthers(ctx context.Context, r *run, endpoints []etcd.Endpoint, statuses map[string]etcd.StatusResult) []etcd.Endpoint {
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	var left []etcd.Endpoint
	for _, e := range endpoints {
		a, asked := statuses[e.Name]
		if asked && a.Err == nil && !a.Health.Learner { // a learner returns no list, and gets no request that changes members
			own, err := r.Etcd.OwnMembers(ctx, r.seen.to(e), e)
			if err != nil {
				statuses[e.Name] = etcd.StatusResult{Err: err}
				r.seen.Etcd.ListTooLarge = r.seen.Etcd.ListTooLarge || errors.Is(err, etcd.ErrTooLarge)
			}
			if other := otherCluster(ctx, r, own.Members); other != "" {
				r.seen.Etcd.OfCluster = other
				r.seen.Etcd.Err = "the endpoint " + e.Name + " belongs to EtcdCluster " + other
				continue
			}
		}
		left = append(left, e)
	}
	return left
}

// otherCluster returns the EtcdCluster whose members these are, by their peer URLs; empty if there is none.
func otherCluster(ctx context.Context, r *run, members []etcd.Member) string {
	known := map[string]bool{}
	for _, m := range members {
		for _, text := range m.PeerURLs {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			parts := strings.SplitN(u.Hostname(), ".", 5) // member, cluster, namespace, "svc", perhaps a domain
			if len(parts) < 4 || parts[3] != "svc" || parts[2] == r.key.Namespace && parts[1] == r.key.Name {
				continue
			}
			namespace, name := parts[2], parts[1]
			if _, looked := known[namespace+"/"+name]; !looked {
				known[namespace+"/"+name] = mayExist(ctx, r, namespace, name)
			}
			if known[namespace+"/"+name] {
				return namespace + "/" + name
			}
		}
	}
	return ""
}

// mayExist is true unless there is certainly no such EtcdCluster. The cache of a controller for one namespace knows none of
// another namespace, and the API may not tell it.
func mayExist(ctx context.Context, r *run, namespace, name string) bool {
	_, err := r.Cache.Cluster(namespace, name)
	if apierrors.IsNotFound(err) && namespace != r.key.Namespace {
		_, err = r.Objects.GetCluster(ctx, namespace, name)
	}
	return !apierrors.IsNotFound(err)
}
