// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// dropPVC deletes the PVC of a member that was removed, or gives it up where
// the user wants to keep it. What a learner holds that never joined is part of a copy. A PVC that was taken
// back, and that no quorum lists, may be the data of another etcd. While the data of the members differs,
// any of them may be the right one.
func dropPVC(o *Observed, c *PVC) Action {
	if c.TakenBackFrom != "" || findCorrupt(o.Etcd.Members) != nil {
		return ReleasePVC{Name: c.Name, UID: c.UID}
	}
	if pod := o.Cluster.Spec.Pod; pod != nil && pod.PersistentVolumeClaimRetentionPolicy != nil &&
		pod.PersistentVolumeClaimRetentionPolicy.WhenScaled == v1beta2.PVCRetain {
		return ReleasePVC{Name: c.Name, UID: c.UID}
	}
	return DeletePVC{Name: c.Name, UID: c.UID}
}

// removeUnstarted takes a member out that cannot join. A learner carries no vote; a
// voter that never started is removed only under the rule for voters.
func removeUnstarted(o *Observed, m *Member, reason RemoveReason) Plan {
	if m.Learner {
		return removeMember(o, m, reason)
	}
	return removeVoter(o, m, reason)
}

// removeVoter removes a voter if those that serve without it are a quorum of the
// cluster that remains (S2). A leader hands over first, and clients are served until
// they are elsewhere.
func removeVoter(o *Observed, m *Member, reason RemoveReason) Plan {
	voters := len(listVoters(o.Etcd.Members))
	healthy := quorumOf(o).countServingWithout(m)
	if voters == 1 || healthy < diagnosis.Quorum(voters-1) {
		return wait(recheckQuorum, ReasonQuorumAtRisk,
			fmt.Sprintf("member %s cannot be removed: %d of the %d other voters serve and %d must", m.Name, healthy, voters-1, diagnosis.Quorum(voters-1)),
			serveAgain)
	}
	plan, leaves := drainBeforeRemoval(o.Now, quorumOf(o), m, reason)
	if !leaves {
		plan = removeMember(o, m, reason)
	}
	plan.Draining = m.Name
	return plan
}

// removeMember removes m from etcd and then, because it can never come back, its
// pod and its PVC.
func removeMember(o *Observed, m *Member, reason RemoveReason) Plan {
	actions := []Action{RemoveMember{ID: m.ID, Name: m.Name, Reason: reason}}
	if p := podByName(o.Pods, m.Name); p != nil && !p.Terminating {
		actions = append(actions, DeletePod{Name: p.Name, UID: p.UID})
	}
	if c := pvcByName(o.PVCs, m.Name); c != nil {
		drop := dropPVC(o, c)
		switch {
		case reason != RemoveStuck && reason != RemoveCrashLooping, c.TakenBackFrom != "", findCorrupt(o.Etcd.Members) != nil:
		case m.Learner:
			drop = DeletePVC{Name: c.Name, UID: c.UID}
		default:
			drop = ReleasePVC{Name: c.Name, UID: c.UID} // it may have voted before the others heard its name
		}
		actions = append(actions, drop)
	}
	return Plan{Actions: actions, RequeueAfter: recheckNow}
}
