// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ruleRecreatePods creates the pods of members whose data is on a PVC. It changes no
// membership, so it needs no quorum: this is how a quorum comes back.
func ruleRecreatePods(o *Observed) (Plan, bool) {
	var actions []Action
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if pvcByName(o.PVCs, c.Name) == nil || (o.Etcd.Linearizable && !mayBeMember(o, c.Name)) {
			continue // released, going away, or no longer a member: not ours to start
		}
		switch p := podByName(o.Pods, c.Name); {
		case preparedPodByName(o.Prepared, c.Name) != nil: // it is admitted, or deleted first
		case p == nil:
			actions = append(actions, recreatePod(o, c.Name))
		case p.Finished && !p.Terminating:
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
		}
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; lacksPVC(o.Cluster, o.PVCs, p) {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Why: DeleteWithoutPVC})
		}
	}
	return Plan{Actions: actions, RequeueAfter: recheckWaiting}, len(actions) > 0
}

// lacksPVC is true for a pod that waits for a PVC that was deleted. The pod will never run,
// and a member without pod and PVC is replaced.
func lacksPVC(cluster *v1beta2.EtcdCluster, pvcs []PVC, p *Pod) bool {
	return isPersistent(cluster) && p.Owned && !isGone(p) && !p.Running &&
		!slices.ContainsFunc(pvcs, func(c PVC) bool { return c.Name == p.Name })
}

// recreatePod creates the pod of a member that has a PVC, with the version that it ran
// before: a change of version is for rule rollout.
func recreatePod(o *Observed, name string) CreatePod {
	pod := CreatePod{Name: name, Peers: listPeerNames(o.Etcd.Members, o.PVCs), Version: upgradePathOf(o).joinVersion()}
	m := memberByName(o.Etcd.Members, name)
	pod.Joined = mayHaveData(o, name, m)
	if pod.Joined && joinsOnlyVoter(o, name, m) {
		pod.Joined, pod.Joining, pod.Peers = false, true, []string{onlyVoterBeside(o, name), name}
	}
	if m != nil {
		pod.Learner = m.Learner
	}
	if c := pvcByName(o.PVCs, name); c != nil && parse(c.Version) != nil {
		pod.Version = upgradePathOf(o).pinned(parse(c.Version))
	} else if m != nil && versionsOf(o).runs(m) != nil {
		pod.Version = upgradePathOf(o).pinned(versionsOf(o).runs(m))
	}
	if !slices.Contains(pod.Peers, name) {
		// The last status did not know it. Without its own name it could not start.
		pod.Peers = append(pod.Peers, name)
	}
	return pod
}

// mayHaveData is true for a member that has joined, or that may have joined: it must never start
// without its data. That holds for a learner, too: the leader counts what the learner had as
// replicated, and may promote it to a voter that lacks those writes. Only a list that was read through a
// quorum says that a member has not started. It does not say so of a voter: a learner may be promoted before
// the others have heard its name. A status may be from before the member did; m is nil for a
// member that the status does not name.
//
// A learner that such a pod keeps from starting does not matter to the quorum, and is replaced
// as soon as there is one. In an etcd without learners a member that has just been added is
// needed for the quorum, so there the status decides. If the status was not written since, the
// only other voter does: of two voters each has every acknowledged write.
func mayHaveData(o *Observed, name string, m *Member) bool {
	switch {
	case o.Etcd.Linearizable:
		return m == nil || m.Started || !m.Learner && upgradePathOf(o).knowsLearners()
	case upgradePathOf(o).knowsLearners():
		return true
	case m == nil:
		return !onlyVoterAwaits(o, name)
	default:
		return m.Started && !m.Learner
	}
}

// onlyVoterAwaits is true if the only known voter awaits a member of this name, as onlyVoterLists says. That
// list may be from before a third member joined; so there must be no other pod or PVC but those that wait for
// their membership.
func onlyVoterAwaits(o *Observed, name string) bool {
	return onlyVoterLists(o, name) && areOnly(o, findOnlyOther(o.Etcd.Members, name).Name, name)
}

// joinsOnlyVoter is true for a member whose PVC says that it joins the only known voter of an etcd without
// learners. That voter may not respond, as it has no quorum alone. No membership change has begun since,
// so each of the two has every acknowledged write, and a member of them may start without data. On an empty
// disk etcd itself reads the list from the voter, and ends if it differs.
func joinsOnlyVoter(o *Observed, name string, m *Member) bool {
	only := onlyVoterBeside(o, name)
	c := pvcByName(o.PVCs, name)
	return !o.Etcd.Linearizable && !upgradePathOf(o).knowsLearners() && m == nil && c != nil && c.Joining &&
		only != "" && areOnly(o, only, name)
}

// onlyVoterBeside returns the name of the only known voter beside a member; empty if there is none. The
// status of an API that was brought back may name no member. Then it is one whose PVC is of a member that
// has joined, and areOnly says whether there are others.
func onlyVoterBeside(o *Observed, name string) string {
	if len(o.Etcd.Members) > 0 {
		if only := findOnlyOther(o.Etcd.Members, name); only != nil && !only.Unmanaged {
			return only.Name
		}
		return ""
	}
	for i := range o.PVCs {
		if c := &o.PVCs[i]; !c.Joining && pvcByName(o.PVCs, c.Name) != nil {
			return c.Name
		}
	}
	return ""
}

// areOnly is true if no pods or PVCs exist but those of two members, and those that wait for their membership
// or were admitted as a second voter, too. At most one of the latter is in the list. The PVCs of another
// cluster do not count, as of one that had the name before.
func areOnly(o *Observed, one, two string) bool {
	joining := func(n string) bool {
		return slices.ContainsFunc(o.PVCs, func(c PVC) bool { return c.Name == n && c.Joining })
	}
	other := func(n string) bool {
		return n != one && n != two && preparedPodByName(o.Prepared, n) == nil && !joining(n)
	}
	return !slices.ContainsFunc(o.PVCs, func(c PVC) bool { return !c.HasOtherOwner && other(c.Name) }) && !slices.ContainsFunc(o.Pods, func(p Pod) bool { return other(p.Name) })
}

// onlyVoterLists is true if the list of the only known voter holds just itself and a member of this name
// that has not started. No status has named that member as started.
func onlyVoterLists(o *Observed, name string) bool {
	only := findOnlyOther(o.Etcd.Members, name)
	if only == nil || only.View == nil || len(only.View.Members) != 2 {
		return false
	}
	if m := memberByName(o.Etcd.Members, name); m != nil && m.Started {
		return false
	}
	return slices.ContainsFunc(only.View.Members, func(v Member) bool { return v.Name == name && !v.Started && !v.Unmanaged })
}

// findOnlyOther returns the member beside the one of this name; nil if there is none or more than one.
func findOnlyOther(members []Member, name string) *Member {
	var only *Member
	for i := range members {
		switch {
		case members[i].Name == name:
		case only != nil:
			return nil
		default:
			only = &members[i]
		}
	}
	return only
}
