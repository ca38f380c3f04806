// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleQuorum waits while no member list can be read through a quorum, so that no later
// rule acts on a membership that is not known.
func ruleQuorum(o *Observed) (Plan, bool) {
	if o.Etcd.Linearizable {
		return Plan{}, false
	}
	loss := o.quorumLoss()
	plan := wait(recheckQuorum, Reason(loss.Reason), loss.Message, loss.Remediation)
	if loss.Permanent {
		// Before a person restores a backup: do these members really no longer exist?
		plan.RequeueAfter = o.untilRecovery()
		plan.Actions = o.findLost()
	}
	return plan, true
}

// findLost looks for the voters that seem to have no pod and no PVC; if no member is known,
// for the bootstrap member.
func (o *Observed) findLost() []Action {
	var actions []Action
	for _, m := range o.voters() {
		if o.pod(m.Name) == nil && o.pvc(m.Name) == nil {
			actions = append(actions, FindMember{Name: m.Name})
		}
	}
	if len(o.Etcd.Members) == 0 && o.Record.BootstrapMember != "" {
		actions = append(actions, FindMember{Name: o.Record.BootstrapMember})
	}
	return actions
}
