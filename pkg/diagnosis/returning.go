// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"time"
)

// ReturnGrace is how long a recovery waits for the container of a pod that was created for a member with data. Kubernetes
// takes six minutes to detach a volume from a node that was deleted without the taint node.kubernetes.io/out-of-service.
const ReturnGrace = 10 * time.Minute

// returnFailures is how often the container of such a pod may end. Kubernetes restarts it at once, and then after 10 and
// 20 seconds. A member whose volume was emptied ends each time.
const returnFailures = 3

// Returning returns the members that may start again with their data and have not had the time to respond, if a quorum may
// come back with them; nil if there are none. They have every acknowledged write. A lost node may come back with its pods.
// Kubernetes removes these after a person confirms that the node is off, and with volumes that can move, their members start
// on other nodes.
func (c *Cluster) Returning() []string {
	for _, list := range c.voterLists() {
		available := quorumOf(list.voters, func(name string) bool { return c.hasResponse(name) || c.isReturning(name) })
		names := slices.DeleteFunc(available, c.hasResponse)
		if len(names) > 0 {
			slices.Sort(names)
			return names
		}
	}
	return nil
}

// hasResponse is true for a member that responds and whose pod stays.
func (c *Cluster) hasResponse(name string) bool {
	m := c.member(name)
	return m != nil && m.Response != NoResponse && !c.Evidence(name).IsEnding()
}

// isReturning is true for a member without a response that may start with its data. Without a pod it waits for one. Each
// pod has a limited time, which begins again when its node is ready again. A node that was off starts its containers
// some time after that, and until then the pod may look as before.
func (c *Cluster) isReturning(name string) bool {
	p := c.pod(name)
	switch {
	case name == c.StoppedSource || c.Evidence(name) == PodUnknown:
		return false
	case p == nil || p.Evidence.IsEnding():
		return c.HasPVC(name)
	case p.Running:
		return p.RunningFor < IncompleteGrace || p.isNodeBack(IncompleteGrace)
	default:
		return p.Age < ReturnGrace && p.Failures < returnFailures || p.isNodeBack(ReturnGrace)
	}
}

// isNodeBack is true if the node of a pod became ready less than grace ago.
func (p *Pod) isNodeBack(grace time.Duration) bool {
	return p.NodeReadyFor > 0 && p.NodeReadyFor < grace
}
