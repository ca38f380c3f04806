// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// removalCandidate returns the voter whose removal costs least. With replaced, a new member
// replaces it. Then another voter is chosen only if it does not run and does not come back,
// because the pod of a replaced member ends before the member is removed.
func removalCandidate(o *Observed, replaced bool) *Member {
	var candidate *Member
	leader := findLeader(o.Etcd.Members)
	for _, m := range listVoters(o.Etcd.Members) {
		if p := podByName(o.Pods, m.Name); replaced && changeDue(o, m) != replace && (returns(o.Pods, o.PVCs, m) || !isGone(p) && p.Running) {
			continue
		}
		if candidate == nil || removalPreference(o, m, leader) >= removalPreference(o, candidate, leader) {
			candidate = m
		}
	}
	return candidate
}

// returns is true for a member that has a PVC and no pod: the pod is created again.
func returns(pods []Pod, pvcs []PVC, m *Member) bool {
	return isGone(podByName(pods, m.Name)) && pvcByName(pvcs, m.Name) != nil
}

// removalPreference is higher for members that may better be missed. First are those that do not
// serve, then those that were chosen before, those that are to be replaced, and those that clients
// are not sent to.
func removalPreference(o *Observed, m, leader *Member) int {
	base, replaced := rank(o.Pods, m, leader), changeDue(o, m) == replace
	switch {
	case base >= 3:
		return base + 2
	case base >= 1 && replaced:
		return 4
	case base == 0 && replaced && m.Health == Healthy:
		return 3
	default:
		return base
	}
}

// rank is higher for members whose removal costs less. The member that the others follow is
// the leader even if it does not respond to the controller. A member that serves while its pod is
// not ready has just restarted: another member beside it would be the second that clients miss.
func rank(pods []Pod, m, leader *Member) int {
	pod := podByName(pods, m.Name)
	switch {
	case isGone(pod):
		return 5
	case m == leader:
		return 0
	case m.Health != Healthy:
		return 4
	case pod.Role == PodDraining:
		return 3
	case !pod.Ready:
		return 2
	default:
		return 1
	}
}
