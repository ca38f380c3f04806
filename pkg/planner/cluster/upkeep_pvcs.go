// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// upkeepPVCs keeps the owners and the sizes of PVCs as declared. The owner follows from the
// retention policy. Neither needs a quorum: a database that has filled its PVC is a reason
// to let that PVC grow.
func upkeepPVCs(o *Observed) []Action {
	actions := confirmPVCs(o)
	for i := range o.PVCs {
		c := &o.PVCs[i]
		if o.Etcd.Linearizable && memberByName(o.Etcd.Members, c.Name) == nil {
			continue // it is deleted or released
		}
		if c.Owned && !c.Terminating && (c.Drifted || c.Growth == resources.GrowthDue) {
			actions = append(actions, RepairPVC{Name: c.Name, UID: c.UID})
		}
	}
	return actions
}

// confirmPVCs writes down which second voters have started, and which PVCs that were taken back are those
// of members. A failure ends the plan, so that no membership change begins before. A PVC that waits for its
// membership although its member has started is that of the member without a quorum, too.
func confirmPVCs(o *Observed) []Action {
	var actions []Action
	for i := range o.PVCs {
		c := &o.PVCs[i]
		m := memberByName(o.Etcd.Members, c.Name)
		listed := o.Etcd.Linearizable && m != nil && m.Started && (c.Joining || c.TakenBackFrom != "")
		waits := c.Unadmitted && c.TakenBackFrom == "" && (m != nil || !o.Etcd.Linearizable)
		if (listed || waits) && c.Owned && !c.Terminating {
			actions = append(actions, ConfirmPVC{Name: c.Name, UID: c.UID})
		}
	}
	return actions
}
