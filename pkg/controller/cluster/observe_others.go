// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
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
			other, err := ofOther(ctx, r, e)
			if err != nil {
				statuses[e.Name] = etcd.StatusResult{Err: err}
				r.seen.Etcd.ListTooLarge = r.seen.Etcd.ListTooLarge || errors.Is(err, etcd.ErrTooLarge)
			}
			if other != "" {
				r.seen.Etcd.OfCluster = other
				r.seen.Etcd.Err = "the endpoint " + e.Name + " belongs to EtcdCluster " + other
				continue
			}
		}
		left = append(left, e)
	}
	return left
}

// ofOther asks an endpoint for its own list, and returns the EtcdCluster that it belongs to; empty if to none.
func ofOther(ctx context.Context, r *run, e etcd.Endpoint) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	own, err := r.Etcd.OwnMembers(ctx, r.seen.to(e), e)
	if err != nil {
		return "", err
	}
	return otherCluster(ctx, r, own.Members)
}

// maxLooked bounds the EtcdClusters that are looked up for one list. A member has one peer URL or a few.
const maxLooked = 64

// otherCluster returns the EtcdCluster whose members these are, by their peer URLs; empty if there is none.
func otherCluster(ctx context.Context, r *run, members []etcd.Member) (string, error) {
	looked := map[types.NamespacedName]bool{}
	for _, m := range members {
		for _, text := range m.PeerURLs {
			key, named := resources.ClusterFromPeerURL(text)
			if !named || key == r.key || looked[key] {
				continue
			}
			if len(looked) == maxLooked {
				return "", fmt.Errorf("%w: the peer URLs of its members name more than %d Services", etcd.ErrTooLarge, maxLooked)
			}
			looked[key] = true
			found, err := exists(ctx, r, key)
			if err != nil {
				return "", err
			}
			if found {
				return key.String(), nil
			}
		}
	}
	return "", nil
}

// exists is true if there is such an EtcdCluster. The cache of a controller for one namespace knows none of another, and the
// API may not tell it: then nothing is joined that may belong to one. What was joined before stays.
func exists(ctx context.Context, r *run, key types.NamespacedName) (bool, error) {
	_, err := r.Cache.Cluster(key.Namespace, key.Name)
	if apierrors.IsNotFound(err) && key.Namespace != r.key.Namespace {
		_, err = r.Objects.GetCluster(ctx, key.Namespace, key.Name)
	}
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && r.seen.Record.ClusterID != "":
		return false, nil
	default:
		return false, fmt.Errorf("its members may be those of EtcdCluster %s, which the controller must be able to read: %w", key, err)
	}
}
