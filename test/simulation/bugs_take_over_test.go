// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// bugsOfTakeOver are mistakes with an etcd that another program runs.
func bugsOfTakeOver() []bug {
	return []bug{
		{name: "starts an etcd of its own beside the one that it takes over", rules: "S4 L1", story: takesOver, wrap: doing(startBesideOld)},
		{name: "takes old members without a pod for lost", rules: "S2", story: takesOver, wrap: doing(removeOldWithoutPod)},
		{name: "removes old members before the members of the cluster vote", rules: "S2", story: takesOver, wrap: doing(removeOldEarly)},
	}
}

func startBesideOld(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleBootstrap || o.Cluster.Existing() == nil || len(o.Pods) > 0 {
		return plan
	}
	return instead(plan, planner.CreateBootstrapPod{Name: o.BootstrapName})
}

func removeOldWithoutPod(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleTakeOver || !waitsFor(plan, planner.RuleTakeOver, planner.ReasonOldMembersKept) {
		return plan
	}
	return removeOld(o, plan)
}

func removeOldEarly(o planner.Observed, plan planner.Plan) planner.Plan {
	if plan.Rule != planner.RuleTakeOver || len(plan.Actions) > 0 || !waitsFor(plan, planner.RuleTakeOver, planner.ReasonWaitingForPod, planner.ReasonWaitingForMember) {
		return plan
	}
	return removeOld(o, plan)
}

// removeOld removes an old member that does not lead.
func removeOld(o planner.Observed, plan planner.Plan) planner.Plan {
	for _, m := range o.Etcd.Members {
		if m.Unmanaged && m.ID != m.Leader {
			return instead(plan, remove(m))
		}
	}
	return plan
}
