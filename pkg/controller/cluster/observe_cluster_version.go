// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observeClusterVersion asks the voters for the cluster version while a pod waits for its
// membership in an etcd without learners. A member that joins there before the version is
// decided counts for the quorum that decides it. That member cannot start without the
// version, so neither ever happens.
// A voter that does not respond counts as one that knows none. It also asks if
// package planner needs the cluster version.
func observeClusterVersion(ctx context.Context, r *run, statuses map[string]etcd.StatusResult) {
	if !r.seen.Etcd.Linearizable {
		return
	}
	if planner.NeedsClusterVersion(&r.seen.Observed) {
		r.seen.Etcd.ClusterVersion = newestClusterVersion(ctx, r)
	}
	if len(r.seen.Prepared) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	for _, e := range r.seen.voters.Endpoints {
		if resources.HasLearners(statuses[e.Name].Health.Version) {
			continue
		}
		if _, err := r.Etcd.ClusterVersion(ctx, r.seen.target, e); err != nil {
			klog.FromContext(ctx).V(2).Info("The cluster version is unknown", "member", e.Name, "err", err)
			r.seen.Etcd.VersionUndecided = true
			return
		}
	}
}

// newestClusterVersion returns the newest cluster version that a voter says, or an empty string. A
// voter that lags may not know of the newest.
func newestClusterVersion(ctx context.Context, r *run) string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var newest *version.Version
	for _, e := range r.seen.voters.Endpoints {
		says, err := r.Etcd.ClusterVersion(ctx, r.seen.target, e)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A voter does not say the cluster version", "member", e.Name, "err", err)
			continue
		}
		if v, err := version.ParseSemantic(says); err == nil && (newest == nil || newest.LessThan(v)) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return newest.String()
}
