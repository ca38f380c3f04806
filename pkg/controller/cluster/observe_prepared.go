// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// observePrepared finds the members that have started in pods whose annotations say that no member has used
// them; see planner.HasStarted. Their pods and PVCs become those of members in this observation. They are probed
// like the others. Without them the list may not have been readable, so it is read again.
func observePrepared(ctx context.Context, r *run, pods []*corev1.Pod, statuses map[string]etcd.StatusResult) {
	found := probePrepared(ctx, r, pods, statuses)
	listed := r.seen.Etcd.Linearizable
	useStatuses(r, found, statuses)
	switch {
	case listed:
		r.seen.Etcd.Err = ""
	case len(found) > 0 && len(r.seen.voters.Endpoints) > 0:
		readList(ctx, r, statuses)
	}
	if !r.seen.Etcd.Linearizable {
		r.seen.addRespondingMembers(statuses)
	}
	planner.TakeUpStarted(&r.seen.Observed)
}

// probePrepared adds the endpoints of such pods to the target, and their statuses to those of the members, and
// returns the endpoints. A list that a quorum confirmed names their members. Without one each pod that waits is
// probed: only etcd responds at this port.
func probePrepared(ctx context.Context, r *run, pods []*corev1.Pod, statuses map[string]etcd.StatusResult) []etcd.Endpoint {
	isCandidate := func(p *corev1.Pod) bool {
		_, probed := r.seen.endpoint(p.Name)
		return !probed && r.seen.showsPrepared(string(p.UID)) && (!r.seen.Etcd.Linearizable || planner.HasStarted(&r.seen.Observed, p.Name))
	}
	candidates := endpoints(r.seen.Cluster, slices.DeleteFunc(sorted(pods), func(p *corev1.Pod) bool { return !isCandidate(p) }))
	if len(candidates) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	responses := r.Etcd.Statuses(ctx, r.seen.to(candidates...))
	var found []etcd.Endpoint
	for _, e := range candidates {
		if a := responses[e.Name]; a.Err == nil && a.Health.ID != 0 || planner.HasStarted(&r.seen.Observed, e.Name) {
			found, statuses[e.Name] = append(found, e), a
		}
	}
	before := r.seen.target.Endpoints
	r.seen.target = r.seen.to(slices.Concat(before, found)...)
	r.seen.identify(ctx, r.Etcd, statuses)
	// What does not prove that it is of this cluster shows nothing about the pod.
	found = slices.DeleteFunc(found, func(e etcd.Endpoint) bool {
		other := statuses[e.Name].Err != nil && !planner.HasStarted(&r.seen.Observed, e.Name)
		if other {
			delete(statuses, e.Name)
		}
		return other
	})
	r.seen.target = r.seen.to(slices.Concat(before, found)...)
	return found
}

// endpointOf returns where the member of a running pod listens for clients. The pod's
// address works before its name does.
func endpointOf(c *v1beta2.EtcdCluster, p *corev1.Pod) etcd.Endpoint {
	return etcd.Endpoint{
		Name:    p.Name,
		URL:     resources.ClientURL(c, p.Name),
		Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(resources.ClientPort)),
	}
}
