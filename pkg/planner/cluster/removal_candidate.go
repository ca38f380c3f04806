// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// removalCandidate returns the voter whose removal costs least. With replaced, a new member
// replaces it. Then another voter is chosen only if it does not run and does not come back,
// because the pod of a replaced member ends before the member is removed.
func (o *Observed) removalCandidate(replaced bool) *Member {
	var candidate *Member
	leader := o.leader()
	for _, m := range o.voters() {
		if p := o.pod(m.Name); replaced && o.due(m) != replace && (o.returns(m) || !p.gone() && p.Running) {
			continue
		}
		if candidate == nil || o.removalPreference(m, leader) >= o.removalPreference(candidate, leader) {
			candidate = m
		}
	}
	return candidate
}

// returns is true for a member that has a PVC and no pod: the pod is created again.
func (o *Observed) returns(m *Member) bool {
	return o.pod(m.Name).gone() && o.pvc(m.Name) != nil
}

// removalPreference is higher for members that may better be missed: those that do not serve, then
// those that were chosen before, then those that are to be replaced.
func (o *Observed) removalPreference(m, leader *Member) int {
	rank, replaced := o.rank(m, leader), o.due(m) == replace
	switch {
	case rank >= 2:
		return rank + 2
	case rank == 1 && replaced:
		return 3
	case rank == 0 && replaced && m.Health == Healthy:
		return 2
	default:
		return rank
	}
}

// rank is higher for members whose removal costs less. The member that the others follow is
// the leader even if it does not respond to the controller.
func (o *Observed) rank(m, leader *Member) int {
	pod := o.pod(m.Name)
	switch {
	case pod.gone():
		return 4
	case m == leader:
		return 0
	case m.Health != Healthy:
		return 3
	case pod.Role == PodDraining:
		return 2
	default:
		return 1
	}
}
