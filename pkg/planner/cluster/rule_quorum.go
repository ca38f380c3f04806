// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/planner/recovery"
)

// ruleQuorum waits while no member list can be read through a quorum, so that no later
// rule acts on a membership that is not known.
func ruleQuorum(o *Observed) (Plan, bool) {
	if o.Etcd.Linearizable {
		return Plan{}, false
	}
	loss := diagnoseQuorumLoss(o)
	message, remedy := loss.Message, loss.Remediation
	if why, other := barredVersion(o); why != "" {
		// What brings the data back as it is comes before what a person restores.
		message, remedy = message+"; "+why, other+" "+remedy
	}
	plan := wait(recheckQuorum, Reason(loss.Reason), message, remedy)
	if loss.Permanent {
		// Before a person restores a backup: do these members really no longer exist?
		plan.RequeueAfter = untilRecovery(o)
		plan.Actions = findLost(quorumOf(o), o.Record.BootstrapMember)
	} else if len(listVoters(o.Etcd.Members)) == 0 {
		plan.Actions = findBootstrapMember(o.Pods, o.Record.BootstrapMember)
	}
	return plan, true
}

// findLost looks for the voters that seem to have no pod and no PVC; if no voter is known,
// for the bootstrap member.
func findLost(q quorum, bootstrapMember string) []Action {
	var actions []Action
	for _, m := range listOwnVoters(q.members) {
		if podByName(q.pods, m.Name) == nil && pvcByName(q.pvcs, m.Name) == nil {
			actions = append(actions, FindMember{Name: m.Name})
		}
	}
	if len(listVoters(q.members)) == 0 {
		actions = append(actions, findBootstrapMember(q.pods, bootstrapMember)...)
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

// untilRecovery is how long to wait for the next look at a permanent loss.
func untilRecovery(o *Observed) time.Duration {
	since := permanentLossSince(o)
	if since == nil || !recoversAutomatically(o.Cluster) {
		return recheckSteady
	}
	return min(recheckSteady, max(recheckQuorum, since.Add(recovery.Grace).Sub(o.Now)))
}
