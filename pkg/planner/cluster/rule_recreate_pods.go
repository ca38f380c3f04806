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
		if pvcByName(o.PVCs, c.Name) == nil || (o.Etcd.Linearizable && memberByName(o.Etcd.Members, c.Name) == nil) {
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

// mayHaveData is true for a member that has voted, or that may have voted: it must never start
// without its data. Only a list that was read through a quorum says that a
// member has not started. A status may be from before the member did; m is nil for a member
// that the status does not name.
//
// A learner that such a pod keeps from starting does not matter to the quorum, and is replaced
// as soon as there is one. In an etcd without learners a member that has just been added is
// needed for the quorum, so there the status decides. If the status was not written since, the
// only other voter does: of two voters each has every acknowledged write.
func mayHaveData(o *Observed, name string, m *Member) bool {
	switch {
	case o.Etcd.Linearizable:
		return m == nil || m.Started && !m.Learner
	case upgradePathOf(o).knowsLearners():
		return true
	case m == nil:
		return !onlyVoterAwaits(o, name)
	default:
		return m.Started && !m.Learner
	}
}

// onlyVoterAwaits is true if the list of the only known voter holds just itself and a member of
// this name that has not started. Its list may be from before a third member joined; so there
// must be no other pod or PVC but those that wait for their membership.
func onlyVoterAwaits(o *Observed, name string) bool {
	if len(o.Etcd.Members) != 1 || o.Etcd.Members[0].View == nil || len(o.Etcd.Members[0].View.Members) != 2 {
		return false
	}
	only := &o.Etcd.Members[0]
	other := func(n string) bool { return n != name && n != only.Name && preparedPodByName(o.Prepared, n) == nil }
	if slices.ContainsFunc(o.PVCs, func(c PVC) bool { return other(c.Name) }) || slices.ContainsFunc(o.Pods, func(p Pod) bool { return other(p.Name) }) {
		return false
	}
	return slices.ContainsFunc(only.View.Members, func(v Member) bool { return v.Name == name && !v.Started && !v.Unmanaged })
}
