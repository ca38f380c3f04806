// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"time"
)

// preparedPatience is how long a prepared pod may take until it waits for its member. Then
// a new pod with a new PVC replaces it: the old PVC may be tied to a node that does not
// come back.
const preparedPatience = 10 * time.Minute

// upkeepPrepared keeps as many pods prepared as members are missing. It touches nothing
// that a member has used.
func upkeepPrepared(o *Observed, plan Plan) []Action {
	switch {
	case o.size() == 0:
		return o.drop(o.Prepared, o.PreparedPVCs)
	case !o.RecoveryMember.Pod.gone() && o.RecoveryMember.Pod.Node == "" && o.RecoveryMember.Pod.Waiting != "":
		// The first member of a recovery finds no node. Pods that only wait may be in its way,
		// by their requests or because each member needs a node of its own.
		return o.drop(o.Prepared, o.PreparedPVCs)
	case plan.Rule == RuleRecovery, plan.Rule == RuleCertificates, !o.Etcd.Linearizable:
		// Without its certificates no pod can be made: the pod says how they are named and which
		// CAs it trusts.
		return nil
	default:
		return o.prepare()
	}
}

// prepare makes one pod if too few are prepared, and deletes those that cannot be used
// or that are too many. It makes one at a time; the next observation makes the next.
func (o *Observed) prepare() []Action {
	var kept, dropped []Pod
	for _, p := range o.Prepared {
		switch {
		case o.member(p.Name) != nil && o.admissible(o.member(p.Name)): // about to be admitted
		case o.usable(&p):
			kept = append(kept, p)
		default:
			dropped = append(dropped, p)
		}
	}
	missing := o.missing()
	if len(kept) > missing {
		slices.SortStableFunc(kept, func(a, b Pod) int { return cmp.Compare(idle(&a), idle(&b)) })
		dropped = append(dropped, kept[missing:]...)
	}
	unused := o.unused()
	needed := min(len(unused), max(0, missing-len(kept)))
	actions := o.drop(dropped, unused[needed:])
	switch {
	case len(kept) >= missing:
		return actions
	case needed > 0:
		return append(actions, PreparePod{Name: unused[0].Name, Version: o.joinVersion()})
	default:
		return append(actions, PreparePod{Name: o.NewName, Version: o.joinVersion(), CreatePVC: o.persistent()})
	}
}

// idle is 1 for a pod whose container does not run, and 0 otherwise.
func idle(p *Pod) int {
	if p.Running {
		return 0
	}
	return 1
}

// unused returns the PVCs that were made for a prepared pod that does not exist, because
// Kubernetes rejected it or because it was deleted.
func (o *Observed) unused() []PVC {
	var pvcs []PVC
	for _, c := range o.PreparedPVCs {
		if !c.Terminating && o.prepared(c.Name) == nil && o.member(c.Name) == nil && o.pod(c.Name) == nil {
			pvcs = append(pvcs, c)
		}
	}
	return pvcs
}

// drop deletes prepared pods with their PVCs, and PVCs without pods.
func (o *Observed) drop(pods []Pod, pvcs []PVC) []Action {
	var actions []Action
	pvcs = slices.Clone(pvcs)
	for i := range pods {
		p := &pods[i]
		if !p.Terminating {
			actions = append(actions, DeletePod{Name: p.Name, UID: p.UID, Why: DeletePrepared})
		}
		if c := o.preparedPVC(p.Name); c != nil && !slices.Contains(pvcs, *c) {
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
