// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "slices"

// holdMembership replaces a plan that changes the members while etcd says that their data differs. A member that
// joins copies the leader, which may be the one that is wrong, and a member that leaves may take the right data
// along. What a person has begun goes on: the replacement of a member whose pod and data are deleted, which is how
// docs/how-to/corrupt-member.md ends the alarm.
func holdMembership(o *Observed, rule RuleName, plan Plan) Plan {
	if findCorrupt(o.Etcd.Members) == nil || !slices.ContainsFunc(plan.Actions, func(a Action) bool { return spreadsOrDiscards(o, a) }) && !drainsForRemoval(o, rule, plan) {
		return plan
	}
	recheck := recheckSteady
	if o.Record.CorruptVoters == 0 {
		recheck = recheckWaiting
	}
	return wait(recheck, ReasonDataCorrupt,
		"the data of the members differs (alarm CORRUPT), so no member joins, votes, is replaced or is removed: another member would copy that of the leader, which may be the wrong one",
		rowOf(ReasonDataCorrupt).Remedy)
}

// spreadsOrDiscards is true for an action that makes a needless copy of the leader's data, or that removes a voter that has
// data. A copy is needless unless it replaces a voter of those in which the alarm was raised: spec.size may be larger
// by now, and members of another program have data, too. Every change of the members is held until the record says how
// many these were.
func spreadsOrDiscards(o *Observed, a Action) bool {
	switch a := a.(type) {
	case AddMember, PromoteMember:
		return countWithData(o) >= o.Record.CorruptVoters
	case RemoveMember:
		return o.Record.CorruptVoters == 0 || holdsData(o, memberByName(o.Etcd.Members, a.Name))
	default:
		return false
	}
}

// corruptVoters is what the record must say of the voters in which the alarm CORRUPT was raised. Of a single voter, as
// after a restore from a backup with the alarm, every member may have a copy: there is no other data.
func corruptVoters(o *Observed) int {
	switch voters := len(listVoters(o.Etcd.Members)); {
	case findCorrupt(o.Etcd.Members) == nil:
		return 0
	case o.Record.CorruptVoters > 0:
		return o.Record.CorruptVoters
	case voters == 1:
		return max(voters, desiredSize(o.Cluster))
	default:
		return voters
	}
}

// drainsForRemoval is true for a plan that takes a voter out of the client Service because it is removed next.
func drainsForRemoval(o *Observed, rule RuleName, plan Plan) bool {
	leaves := rule == RuleTakeOver || rule == RuleJoining || rule == RuleReplace || rule == RuleScaleDown
	return leaves && holdsData(o, memberByName(o.Etcd.Members, plan.Draining))
}

// holdsData is true for a voter that has started and whose pod or PVC exists. A learner holds a copy. Nothing here says
// that the data of an unmanaged member is lost.
func holdsData(o *Observed, m *Member) bool {
	return m != nil && m.Started && !m.Learner && (m.Unmanaged || !isLost(o, m))
}

func countWithData(o *Observed) int {
	n := 0
	for _, m := range listVoters(o.Etcd.Members) {
		if holdsData(o, m) {
			n++
		}
	}
	return n
}
