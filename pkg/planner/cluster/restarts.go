// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// notReady returns a voter other than m whose pod is not ready, or nil.
func (o *Observed) notReady(m *Member) *Member {
	for _, other := range o.voters() {
		if pod := o.pod(other.Name); other != m && (pod.gone() || !pod.Ready) {
			return other
		}
	}
	return nil
}

// restarting returns the voters that serve and are about to restart.
func (o *Observed) restarting() []*Member {
	var list []*Member
	for _, m := range o.voters() {
		if m.Health == Healthy && o.restarts(m) {
			list = append(list, m)
		}
	}
	return list
}

// restarts is true for a member whose container is about to restart, or has restarted and
// Kubernetes does not show it yet. Either the container is not the one in the spec of its
// pod, or etcd runs another version than its pod was made for.
func (o *Observed) restarts(m *Member) bool {
	pod := o.pod(m.Name)
	if pod.gone() {
		return false
	}
	if pod.Restarting {
		return true
	}
	has, says := parse(pod.Version), parse(m.Version)
	return has != nil && says != nil && (has.Major() != says.Major() || has.Minor() != says.Minor() || has.Patch() != says.Patch())
}

// awaitRestarts waits for members that restart, or are about to. It waits for an
// unresponsive member only if other members must restart after it.
func (o *Observed) awaitRestarts(more bool) (Plan, bool) {
	for _, m := range o.voters() {
		pod := o.pod(m.Name)
		if o.restarts(m) || (more && m.Version == "" && !pod.gone() && o.due(m) == asDeclared) {
			return wait(recheckWaiting, ReasonWaitingForMember,
				"member "+m.Name+" restarts with version "+pod.Version+waitingFor(pod), noActionNeeded), true
		}
	}
	return Plan{}, false
}
