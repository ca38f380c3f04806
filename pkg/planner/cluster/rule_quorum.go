// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// ruleQuorum waits while no member list can be read through a quorum, so that no later
// rule acts on a membership that is not known.
func ruleQuorum(o *Observed) (Plan, bool) {
	if o.Etcd.Linearizable {
		return Plan{}, false
	}
	loss := diagnoseQuorumLoss(o)
	plan := wait(recheckQuorum, Reason(loss.Reason), loss.Message, loss.Remediation)
	if loss.Permanent {
		// Before a person restores a backup: do these members really no longer exist?
		plan.RequeueAfter = untilRecovery(o)
		plan.Actions = findLost(o)
	} else if len(listVoters(o.Etcd.Members)) == 0 {
		plan.Actions = findBootstrapMember(o.Pods, o.Record.BootstrapMember)
	}
	return plan, true
}

// findLost looks for the voters that seem to have no pod and no PVC; if no voter is known,
// for the bootstrap member.
func findLost(o *Observed) []Action {
	var actions []Action
	for _, m := range listVoters(o.Etcd.Members) {
		if podByName(o.Pods, m.Name) == nil && pvcByName(o.PVCs, m.Name) == nil {
			actions = append(actions, FindMember{Name: m.Name})
		}
	}
	if len(listVoters(o.Etcd.Members)) == 0 {
		actions = append(actions, findBootstrapMember(o.Pods, o.Record.BootstrapMember)...)
	}
	return actions
}

// findBootstrapMember looks for the member that every other one has joined. Its pod may have lost
// its labels before a status named it, and then nothing else shows where a voter is.
func findBootstrapMember(pods []Pod, name string) []Action {
	if name := name; name != "" && podByName(pods, name) == nil {
		return []Action{FindMember{Name: name}}
	}
	return nil
}
