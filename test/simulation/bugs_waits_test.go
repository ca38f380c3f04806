// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// bugsOfWaits are mistakes with what the controller waits for.
func bugsOfWaits() []bug {
	return []bug{
		{name: "waits for ever for a learner that does not catch up", rules: "L1", wrap: doing(awaitStuck), story: stallLearner},
	}
}

// stallLearner has a cluster grow whose next member never gets an entry of the log.
func stallLearner(s *schedules.Schedule) {
	s.Size, s.Version = 1, schedules.VersionLines[0][0]
	s.Events = []schedules.Event{
		{At: time.Minute, Kind: schedules.EventStallLearner},
		{At: time.Minute, Kind: schedules.EventScale, A: 2},
		{At: 2 * time.Minute, Kind: schedules.EventResume},
	}
}

func awaitStuck(_ planner.Observed, plan planner.Plan) planner.Plan {
	for _, a := range plan.Actions {
		if a, ok := a.(planner.RemoveMember); ok && a.Reason == planner.RemoveStuck {
			plan.Actions, plan.RequeueAfter = nil, 5*time.Second
			plan.Wait = &planner.Wait{Reason: planner.ReasonWaitingForMember, Message: "it joins", Remedy: "nothing"}
		}
	}
	return plan
}
