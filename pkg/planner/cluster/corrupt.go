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
	return wait(recheckSteady, ReasonDataCorrupt,
		"the data of the members differs (alarm CORRUPT), so no member joins, votes, is replaced or is removed: another member would copy that of the leader, which may be the wrong one",
		rowOf(ReasonDataCorrupt).Remedy)
}

// spreadsOrDiscards is true for an action that makes a needless copy of the leader's data, or that removes a voter that has
// data. A copy is needless while every member of the desired size has its own.
func spreadsOrDiscards(o *Observed, a Action) bool {
	switch a := a.(type) {
	case AddMember, PromoteMember:
		return countWithData(o) >= desiredSize(o.Cluster)
	case RemoveMember:
		return holdsData(o, memberByName(o.Etcd.Members, a.Name))
	default:
		return false
	}
}

// drainsForRemoval is true for a plan that takes a voter out of the client Service because it is removed next.
func drainsForRemoval(o *Observed, rule RuleName, plan Plan) bool {
	leaves := rule == RuleTakeOver || rule == RuleJoining || rule == RuleReplace || rule == RuleScaleDown
	return leaves && holdsData(o, memberByName(o.Etcd.Members, plan.Draining))
}

// holdsData is true for a voter that has started and whose pod or PVC exists. A learner holds a copy.
func holdsData(o *Observed, m *Member) bool {
	return m != nil && m.Started && !m.Learner && !isLost(o, m)
}

func countWithData(o *Observed) int {
	n := 0
	for _, m := range listOwnVoters(o.Etcd.Members) {
		if holdsData(o, m) {
			n++
		}
	}
	return n
}
