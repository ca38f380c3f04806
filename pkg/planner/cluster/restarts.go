// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
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

// hasJustStarted is true for a member that serves, and whose container started a moment ago: its pod becomes ready soon.
func hasJustStarted(o *Observed, m *Member) bool {
	pod := podByName(o.Pods, m.Name)
	return m.Health == Healthy && !isGone(pod) && pod.Running && !pod.Started.IsZero() && o.Now.Sub(pod.Started).Abs() < settledAfter
}

// runsOther is true if etcd says another version than its pod was made for.
func runsOther(p *Pod, m *Member) bool {
	has, says := parse(p.Version), parse(m.Version)
	return has != nil && says != nil && !isSameRelease(has, says)
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
	case resources.ImageUnnoted:
		return now.Sub(p.Made) >= resources.NoteWithin
	case resources.ImageAdmitted:
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
		if isMislabeled(o, pod, m) && changeDue(o, m) == asDeclared {
			return m
		}
	}
	return nil
}

// isMislabeled is true for a voter with the declared image, which holds another version of etcd than its tag says.
func isMislabeled(o *Observed, pod *Pod, m *Member) bool {
	return !isGone(pod) && runsOther(pod, m) && hasSettled(o.Now, pod) && !hasOtherImage(o.Cluster, pod) && !hasUnrequestedImage(o.Now, pod, m)
}

// mayRestartBesideOthers is true for the pod of a voter if a write to it may restart it while another voter
// restarts or does not serve. An admission policy that is newer than the pods may change the image with any
// write, also with one of a label. The evidence is a pod whose image something has changed to
// one that this pod does not have. A pod that has its image from a policy was changed already.
func mayRestartBesideOthers(o *Observed, p *Pod) bool {
	m := memberOf(o, p)
	changed := m != nil && !p.FromPolicy && slices.ContainsFunc(o.Pods, func(other Pod) bool {
		return other.Owned && !isGone(&other) && other.ImageName != p.ImageName && (other.FromPolicy || other.Image != resources.ImageAdmitted)
	})
	if !changed {
		return false
	}
	restarting := slices.ContainsFunc(listVoters(o.Etcd.Members), func(other *Member) bool { return other != m && isRestarting(o, other) })
	return restarting || quorumOf(o).countServingWithout(m) < len(listVoters(o.Etcd.Members))-1
}

// memberOf returns the voter in a pod; nil if there is none.
func memberOf(o *Observed, p *Pod) *Member {
	if p == nil {
		return nil
	}
	if m := memberByName(o.Etcd.Members, p.Name); m != nil && !m.Learner {
		return m
	}
	return nil
}
