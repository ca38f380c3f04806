// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// listRestarting returns the voters that serve and are about to restart.
func listRestarting(o *Observed) []*Member {
	var list []*Member
	for _, m := range listVoters(o.Etcd.Members) {
		if m.Health == Healthy && isRestarting(o, m) {
			list = append(list, m)
		}
	}
	return list
}

// isRestarting is true for a member whose container is about to restart, or has restarted and
// Kubernetes does not show it yet. Either the container is not the one in the spec of its
// pod, or etcd runs another version than its pod was made for. A container that has run for long
// with another version does not restart: its image holds that version.
func isRestarting(o *Observed, m *Member) bool {
	pod := podByName(o.Pods, m.Name)
	if isGone(pod) {
		return false
	}
	return pod.Restarting || runsOther(pod, m) && !hasSettled(o.Now, pod)
}

// runsOther is true if etcd says another version than its pod was made for.
func runsOther(p *Pod, m *Member) bool {
	has, says := parse(p.Version), parse(m.Version)
	return has != nil && says != nil && (has.Major() != says.Major() || has.Minor() != says.Minor() || has.Patch() != says.Patch())
}

// hasUnrequestedImage is true if something else than the controller and an admission policy has set the
// image of a pod. A pod of an earlier release does not say which of them did. There another
// version is the evidence. A pod that is no member's yet has no m.
func hasUnrequestedImage(now time.Time, p *Pod, m *Member) bool {
	switch p.Image {
	case resources.ImageChanged:
		return true
	case resources.ImageUnconfirmed:
		return m != nil && runsOther(p, m) && hasSettled(now, p)
	case resources.ImageAdmitted, resources.ImageUnnoted:
		return false
	default:
		return false
	}
}

// findMislabeled returns a voter that is as declared, and whose image holds another version of etcd than
// its tag says; nil if there is none.
func findMislabeled(o *Observed) *Member {
	for _, m := range listOwnVoters(o.Etcd.Members) {
		pod := podByName(o.Pods, m.Name)
		if !isGone(pod) && runsOther(pod, m) && hasSettled(o.Now, pod) && changeDue(o, m) == asDeclared && !hasUnrequestedImage(o.Now, pod, m) {
			return m
		}
	}
	return nil
}
