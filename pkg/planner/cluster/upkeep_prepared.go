// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
)

// upkeepPrepared keeps as many pods prepared as members are missing. It touches nothing
// that a member has used.
func upkeepPrepared(o *Observed, plan Plan) []Action {
	switch {
	case desiredSize(o.Cluster) == 0:
		return dropPrepared(o.PreparedPVCs, o.Prepared, o.PreparedPVCs)
	case !isGone(o.RecoveryMember.Pod) && o.RecoveryMember.Pod.Node == "" && o.RecoveryMember.Pod.Waiting != "":
		// The first member of a recovery finds no node. Pods that only wait may be in its way,
		// by their requests or because each member needs a node of its own.
		return dropPrepared(o.PreparedPVCs, o.Prepared, o.PreparedPVCs)
	case plan.Rule == RuleRecovery, plan.Rule == RuleCertificates:
		// Without its certificates no pod can be made: the pod says how they are named and which
		// CAs it trusts.
		return nil
	case !o.Etcd.Linearizable:
		return dropPrepared(nil, slices.DeleteFunc(slices.Clone(o.Prepared), func(p Pod) bool { return !standsIn(o, &p) || startsOnItsData(o, &p) && !isGone(&p) }), nil)
	default:
		return prepare(o)
	}
}

// prepare makes one pod if too few are prepared, and deletes those that cannot be used
// or that are too many. It makes one at a time; the next observation makes the next.
func prepare(o *Observed) []Action {
	var kept, dropped []Pod
	for _, p := range o.Prepared {
		switch {
		case memberByName(o.Etcd.Members, p.Name) != nil && isAdmissible(o, memberByName(o.Etcd.Members, p.Name)): // about to be admitted
		case isUsable(o, &p):
			kept = append(kept, p)
		default:
			dropped = append(dropped, p)
		}
	}
	missing := countMissing(o)
	if len(kept) > missing {
		slices.SortStableFunc(kept, func(a, b Pod) int { return cmp.Compare(idle(&a), idle(&b)) })
		dropped = append(dropped, kept[missing:]...)
	}
	unused, former := unusedPVCs(o)
	needed := min(len(unused), max(0, missing-len(kept)))
	actions := dropPrepared(o.PreparedPVCs, dropped, unused[needed:])
	for i := range former {
		actions = append(actions, dropPVC(o, &former[i]))
	}
	switch {
	case len(kept) >= missing:
		return actions
	case needed > 0:
		return append(actions, PreparePod{Name: unused[0].Name, Version: upgradePathOf(o).joinVersion()})
	default:
		return append(actions, PreparePod{Name: o.NewName, Version: upgradePathOf(o).joinVersion(), CreatePVC: isPersistent(o.Cluster)})
	}
}

// admitStarted lets etcd start in pods that wait for their membership although their members have started. It
// needs no quorum, and a quorum may return by it: etcd starts on the data of the member only, and ends without data.
func admitStarted(o *Observed) []Action {
	var actions []Action
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Unadmitted && p.Owned && !isGone(p) && !mayRestartBesideOthers(o, p) {
			actions = append(actions, LabelPod{Name: p.Name, UID: p.UID, Role: p.Role, Admit: true})
		}
	}
	for i := range o.Prepared {
		if p := &o.Prepared[i]; standsIn(o, p) && startsOnItsData(o, p) && !isGone(p) {
			actions = append(actions, LabelPod{Name: p.Name, UID: p.UID, Role: p.Role, Admit: true})
		}
	}
	return actions
}

// standsIn is true for a prepared pod whose PVC no longer waits for its membership, and whose member no status
// names, while no list is complete. The controller ended between the two admissions, or a controller with an old
// cache made the pod after that of the member was lost. It waits for ever and keeps the pod of the member from being
// created.
func standsIn(o *Observed, p *Pod) bool {
	return !o.Etcd.Linearizable && memberByName(o.Etcd.Members, p.Name) == nil && pvcByName(o.PVCs, p.Name) != nil
}

// startsOnItsData is true if the member of a pod that stands in was in the list before its PVC was admitted. Its pod
// would be created for one that has its data. The pod of a second voter of an etcd without learners is
// created again instead: its member may have no data yet; see joinsOnlyVoter.
func startsOnItsData(o *Observed, p *Pod) bool {
	return upgradePathOf(o).knowsLearners() && !pvcByName(o.PVCs, p.Name).Joining
}

// idle is 1 for a pod whose container does not run, and 0 otherwise.
func idle(p *Pod) int {
	if p.Running {
		return 0
	}
	return 1
}

// unusedPVCs returns the PVCs that were made for a prepared pod that does not exist, because
// Kubernetes rejected it or because it was deleted. Those in former have the name of a member that was removed from etcd, and may
// hold its data. Kubernetes that was restored from a backup of its own etcd gives such a PVC back. No member gets them.
func unusedPVCs(o *Observed) (unused, former []PVC) {
	for _, c := range o.PreparedPVCs {
		switch {
		case c.Terminating, preparedPodByName(o.Prepared, c.Name) != nil, memberByName(o.Etcd.Members, c.Name) != nil, podByName(o.Pods, c.Name) != nil:
		case slices.Contains(o.Record.Removed, c.Name):
			former = append(former, c)
		default:
			unused = append(unused, c)
		}
	}
	return unused, former
}

// dropPrepared deletes prepared pods with their PVCs, and PVCs without pods.
func dropPrepared(preparedPVCs []PVC, pods []Pod, pvcs []PVC) []Action {
	var actions []Action
	pvcs = slices.Clone(pvcs)
	for i := range pods {
		p := &pods[i]
		if !p.Terminating {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Why: DeletePrepared})
		}
		if c := preparedPVCByName(preparedPVCs, p.Name); c != nil && !slices.Contains(pvcs, *c) {
			pvcs = append(pvcs, *c)
		}
	}
	for _, c := range pvcs {
		if !c.Terminating {
			actions = append(actions, DeletePVC{Name: c.Name, UID: c.UID, Why: DeletePVCPrepared})
		}
	}
	return actions
}
