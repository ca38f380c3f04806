// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
)

// requireNodesReport makes sure that the kubelet of each node reports right now on which an old
// member may run that does not respond. Kubernetes takes some 40 s to call a node not ready that
// was cut off. What it says of the pods there is from before, and they may serve as a quorum.
func requireNodesReport(ctx context.Context, r *run) error {
	var nodes []string
	for i := range r.seen.Pods {
		if p := &r.seen.Pods[i]; p.Owned && !p.Finished && p.Node != "" && !r.seen.responds(p.Name) {
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes)
	unresponsive, err := r.Objects.UnresponsiveNodes(ctx, slices.Compact(nodes))
	if err != nil || len(unresponsive) == 0 {
		return err
	}
	return fmt.Errorf("nodes %v do not report to Kubernetes, and members on them may serve on the other side of a partition: %w", unresponsive, reconcile.ErrStale)
}
