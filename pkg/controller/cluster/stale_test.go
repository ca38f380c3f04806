// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestStaleActionBecomesAWait: an action that is stale for ever stands in the status, with the fact, and is tried less
// often. A success in between, or another action, begins the time again.
func TestStaleActionBecomesAWait(t *testing.T) {
	t.Parallel()
	const waits = planner.ReasonStaleObservation
	recovers := func(v *volumeSource) planner.Plan {
		return planner.Plan{Actions: []planner.Action{planner.CreateRecoveryMember{Recovery: *resources.ParseRecord(v.kept).Recovery}}}
	}
	waitsForMore := func(v *volumeSource) planner.Plan {
		plan := recovers(v)
		plan.Wait = &planner.Wait{Reason: planner.ReasonWaitingForRecoveryMember}
		return plan
	}
	nothing := func(*volumeSource) planner.Plan { return planner.Plan{} }
	another := func(*volumeSource) planner.Plan {
		return planner.Plan{Actions: []planner.Action{planner.RecreatePod{Name: "c-gone"}}}
	}
	upkeep := func(*volumeSource) planner.Plan {
		return planner.Plan{Actions: []planner.Action{planner.DeletePod{Name: "c-other", UID: "before", Why: planner.DeletePrepared}}}
	}
	for name, test := range map[string]struct {
		first, between, last func(*volumeSource) planner.Plan
		lasts                time.Duration
		want                 planner.Reason
		retry                time.Duration
	}{
		"for long":                    {recovers, recovers, recovers, staleLong, waits, retryManual},
		"not for long":                {recovers, recovers, recovers, staleLong - time.Second, "", reconcile.StaleRetry},
		"the clock was set back":      {recovers, recovers, recovers, -staleLong, "", reconcile.StaleRetry},
		"the plan says more":          {recovers, recovers, waitsForMore, staleLong, planner.ReasonWaitingForRecoveryMember, retryManual},
		"nothing was to do meanwhile": {recovers, nothing, recovers, staleLong, "", reconcile.StaleRetry},
		"another action was stale":    {recovers, another, recovers, staleLong, "", reconcile.StaleRetry},
		"upkeep stops no plan":        {upkeep, upkeep, upkeep, staleLong, "", reconcile.StaleRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolumeSource(t)
			v.pod, v.pvc, v.others = nil, nil, []string{"pod c-other"}
			r := v.run()
			r.key = types.NamespacedName{Namespace: "n", Name: "c"}
			clock := noon()
			r.Clock = clock
			attempt := func(plan planner.Plan) planner.Plan {
				r.seen.Now = clock.Now()
				result, err := act(t.Context(), r, plan)
				if err != nil {
					t.Fatal(err)
				}
				return result.revised(plan)
			}
			attempt(test.first(v))
			attempt(test.between(v))
			clock.SetTime(clock.Now().Add(test.lasts))
			plan, reason := attempt(test.last(v)), planner.Reason("")
			if plan.Wait != nil {
				reason = plan.Wait.Reason
			}
			if reason != test.want || plan.RequeueAfter != test.retry {
				t.Errorf("waits for %+v and looks again after %s, want %q and %s", plan.Wait, plan.RequeueAfter, test.want, test.retry)
			}
			if reason == waits && !strings.Contains(plan.Wait.Message, "PVC c-a no longer exists") {
				t.Errorf("the fact is missing: %s", plan.Wait.Message)
			}
		})
	}
}
