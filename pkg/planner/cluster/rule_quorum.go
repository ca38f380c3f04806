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
	} else if len(o.voters()) == 0 {
		plan.Actions = o.findBootstrapMember()
	}
	return plan, true
}

// findLost looks for the voters that seem to have no pod and no PVC; if no voter is known,
// for the bootstrap member.
func (o *Observed) findLost() []Action {
	var actions []Action
	for _, m := range o.voters() {
		if o.pod(m.Name) == nil && o.pvc(m.Name) == nil {
			actions = append(actions, FindMember{Name: m.Name})
		}
	}
	if len(o.voters()) == 0 {
		actions = append(actions, o.findBootstrapMember()...)
	}
	return actions
}

// findBootstrapMember looks for the member that every other one has joined. Its pod may have lost
// its labels before a status named it, and then nothing else shows where a voter is.
func (o *Observed) findBootstrapMember() []Action {
	if name := o.Record.BootstrapMember; name != "" && o.pod(name) == nil {
		return []Action{FindMember{Name: name}}
	}
	return nil
}
