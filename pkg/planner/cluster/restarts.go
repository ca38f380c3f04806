// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// listRestarting returns the voters that serve and are about to restart.
func listRestarting(members []Member, pods []Pod) []*Member {
	var list []*Member
	for _, m := range listVoters(members) {
		if m.Health == Healthy && isRestarting(pods, m) {
			list = append(list, m)
		}
	}
	return list
}

// isRestarting is true for a member whose container is about to restart, or has restarted and
// Kubernetes does not show it yet. Either the container is not the one in the spec of its
// pod, or etcd runs another version than its pod was made for.
func isRestarting(pods []Pod, m *Member) bool {
	pod := podByName(pods, m.Name)
	if isGone(pod) {
		return false
	}
	if pod.Restarting {
		return true
	}
	has, says := parse(pod.Version), parse(m.Version)
	return has != nil && says != nil && (has.Major() != says.Major() || has.Minor() != says.Minor() || has.Patch() != says.Patch())
}
