// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
)

// isUnresponsiveRestart is true for the restart of a member that did not respond to the controller, unless the
// others that responded are a quorum. Then Kubernetes must call the other voters ready and a quorum, or
// no voter responds and none of them is ready. Where the others that still have a pod or a PVC can be no quorum, as of two
// voters, the restart is an outage in any case. Then it is enough that every other voter has responded to the controller.
func (c *Checks) isUnresponsiveRestart(by *manager.Manager, p *simetcd.Process) bool {
	l := &by.Observed
	if slices.Contains(l.Healthy, p.Dir.Id) || l.FromQuorum && 2*l.Serving(p.Dir.Id) > l.Members.Voters() {
		return false
	}
	voters, remaining, ready := p.Members.Voters(), 0, 0
	for i := range p.Members.Peers {
		m := &p.Members.Peers[i]
		pod, found := kubernetes.Lookup[*corev1.Pod](c.w.Store, kubernetes.KindPod, m.Name)
		if m.Learner || m.Id == p.Dir.Id {
			continue
		}
		if _, kept := kubernetes.Lookup[kubernetes.PVC](c.w.Store, kubernetes.KindPVC, m.Name); found && !kubernetes.HasFinished(pod) || kept {
			remaining++ // without a PVC the data goes with a pod that was evicted
		}
		if found && kubernetes.IsReady(pod) && pod.DeletionTimestamp == nil {
			ready++
		}
	}
	c.short = 2*ready <= voters
	if c.short && (2*remaining > voters || l.FromQuorum && ready < remaining) && (ready > 0 || l.FromQuorum) &&
		l.Serving(p.Dir.Id) < voters-1 && !c.w.IsDisturbed(l) {
		c.w.Violated("S2", "restart of %s, which does not respond: %d of %d other voters are ready", p.Run.Name(), ready, voters-1)
	}
	return true
}

// ImageSet is called when something else than the controller sets the image of a pod, whose container restarts.
func (c *Checks) ImageSet(pod string) { c.imageSet[pod] = c.w.Elapsed }

// restartsUnasked is true for a pod whose container restarts because something else has just set its image.
func (c *Checks) restartsUnasked(pod string) bool {
	at, set := c.imageSet[pod]
	return set && c.w.Elapsed-at < oldestLook
}

// Runs is called when something else than the controller has a version run in a cluster.
func (c *Checks) Runs(owner, version string) { c.made[[2]string{owner, version}] = true }
