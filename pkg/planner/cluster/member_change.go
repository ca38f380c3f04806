// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "slices"

// change is what must happen to a member so that its pod is what is declared.
type change int

const (
	// asDeclared: nothing.
	asDeclared change = iota
	// reimage: its container restarts in place with another image, on its data; where the image
	// needs a new pod, its pod is made again with that image. See renew.
	reimage
	// recreate: its pod is made again, on its volume.
	recreate
	// replace: another member takes its place, because its data goes with its pod or is on
	// a node that does not come back. A cordoned node and a request of a user are reasons, too.
	// That one joins first, so it is for the rules about the membership.
	replace
)

// changeDue returns what must happen to a member.
func changeDue(o *Observed, m *Member) change {
	if isReplacementRequested(o.Cluster, m) || replacesOnCordonedNode(o, m) {
		return replace
	}
	return changeDueUnrequested(o, m)
}

// changeDueUnrequested returns what must happen to a member even if no user has asked to replace it, or to
// drain its node.
func changeDueUnrequested(o *Observed, m *Member) change {
	pod := podByName(o.Pods, m.Name)
	switch {
	case mustBeReplaced(o.Cluster, o.Now, o.Pods, m):
		return replace
	case isGone(pod):
		return asDeclared // it comes back as declared, or a new member replaces it
	}
	unrequested := putsBack(o, pod, m)
	// Nothing shows whether the container that runs was started before the image changed or after. So it ends
	// with its pod. One that does not run starts with the image that the pod has then.
	stale := declarationOf(o).isStale(pod) || pod.Fills || unrequested && pod.Running
	switch {
	case stale && pvcByName(o.PVCs, m.Name) != nil:
		return recreate
	case stale:
		return replace
	case hasOtherImage(o.Cluster, pod) && (pod.NeedsNewPod || pod.FromPolicy) && replacesForVersion(o, m):
		return replace
	case hasOtherImage(o.Cluster, pod), unrequested:
		return reimage
	case lacksImageOfPolicy(o.Now, pod, preparedPatience) && pvcByName(o.PVCs, m.Name) != nil:
		return recreate
	case lacksImageOfPolicy(o.Now, pod, preparedPatience) && replacesForVersion(o, m):
		return replace
	default:
		return asDeclared
	}
}

// replacesForVersion is true if another member with a new pod takes the place of a member whose data
// goes with its pod, and whose image needs a new pod. That needs a quorum, and the step must be allowed.
// A declared image with another version in it goes to no further member.
// In an etcd without learners the member that joins votes from its addition on. There the restart in
// place risks less, and the member is replaced with the step after.
func replacesForVersion(o *Observed, m *Member) bool {
	path := upgradePathOf(o)
	if slices.ContainsFunc(listOwnVoters(o.Etcd.Members), func(other *Member) bool { return isMislabeled(o, podByName(o.Pods, other.Name), other) }) {
		return false
	}
	return pvcByName(o.PVCs, m.Name) == nil && o.Etcd.Linearizable && path.joinVersion() == "" && path.knowsLearners()
}

// surge is how many voters there may be above the desired size: one while a new member
// must replace another.
func surge(o *Observed) int {
	for _, m := range listVoters(o.Etcd.Members) {
		if isReplaced(o, m) {
			return 1
		}
	}
	return 0
}

// addable is how many of these may be added now: none while another member would reject the successor.
func addable(o *Observed) int {
	if slices.ContainsFunc(listVoters(o.Etcd.Members), func(m *Member) bool { return isReplaced(o, m) && !isHeldByTrust(o, m) }) {
		return 1
	}
	return 0
}

// isReplaced is true for a voter whose place another member takes. Beside members of another program
// that is only a voter that does not serve: the others wait until the old members are removed.
func isReplaced(o *Observed, m *Member) bool {
	return changeDue(o, m) == replace && (m.Health != Healthy || len(listUnmanaged(o.Etcd.Members)) == 0)
}

// isHeldByTrust is true for a voter that serves and stays as it is, whatever is declared, because another
// member would reject it after a restart, or would reject its successor. Members that do not run, or have not served
// for long, are repaired all the same: one late response says little.
func isHeldByTrust(o *Observed, m *Member) bool {
	pod := podByName(o.Pods, m.Name)
	if m.Health != Healthy && (pod == nil || !pod.Running || notServedFor(o.Cluster.Status.Conditions, o.Now, m) >= unresponsiveFor) {
		return false
	}
	reason, _, _ := certificateInput(o).HoldRestart(m.Name)
	return reason != ""
}

// makesNewPod is true if another image comes with a new pod, on the PVC of the member, and not in place.
func makesNewPod(o *Observed, p *Pod) bool {
	return (p.NeedsNewPod || p.FromPolicy) && pvcByName(o.PVCs, p.Name) != nil
}
