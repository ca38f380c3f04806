// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
)

// isUnresponsiveRestart is true for the restart of a member while no member responded to the controller.
// Then Kubernetes must call the other voters ready and a quorum, or none of them ready. The restart of one
// of two voters is an outage in any case.
func (c *Checks) isUnresponsiveRestart(by *manager.Manager, p *simetcd.Process) bool {
	if len(by.Observed.Healthy) > 0 || by.Observed.FromQuorum {
		return false
	}
	voters, ready := p.Members.Voters(), 0
	for i := range p.Members.Peers {
		m := &p.Members.Peers[i]
		pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, m.Name)
		if !m.Learner && m.Id != p.Dir.Id && found && kubernetes.IsReady(pod) && pod.DeletionTimestamp == nil {
			ready++
		}
	}
	quorum := voters/2 + 1
	c.short = ready < quorum
	if ready > 0 && ready < quorum && voters > 2 && !c.w.IsDisturbed(&by.Observed) {
		c.w.Violated("S2", "restart of %s, which does not respond: %d of %d other voters are ready", p.Run.Name(), ready, voters-1)
	}
	return true
}
