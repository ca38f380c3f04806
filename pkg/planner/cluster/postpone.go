// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// namesOfWait are the conditions whose reasons and messages name what is waited for.
var namesOfWait = []v1beta2.ClusterConditionType{
	v1beta2.ClusterConditionReady, v1beta2.ClusterConditionReconciling, v1beta2.ClusterConditionProgressing,
}

// IsPostponed is true if a status need not be written now: it only takes back a wait that began
// within the last seconds, because the plan takes a step. The look after the step follows within
// seconds and says what the cluster waits for then. Otherwise each step would cost one more write, and
// one more line of kubectl get -w, for a state of a moment. A wait that has lasted longer is taken
// back at once, so that the next one does not inherit its age.
func IsPostponed(now time.Time, before, after *v1beta2.ClusterStatus, plan Plan) bool {
	waited := before.BlockedBy
	switch {
	case waited == nil || after.BlockedBy != nil || len(plan.Actions) == 0:
		return false
	case plan.RequeueAfter <= 0 || plan.RequeueAfter > recheckWaiting || now.Sub(waited.Since.Time) > recheckWaiting:
		return false
	}
	unchanged := after.DeepCopy()
	unchanged.BlockedBy = waited
	for i := range unchanged.Conditions {
		if c := &unchanged.Conditions[i]; slices.Contains(namesOfWait, c.Type) {
			old := reportedCondition(before.Conditions, c.Type)
			c.Reason, c.Message, c.LastUpdateTime = old.Reason, old.Message, old.LastUpdateTime
		}
	}
	return equality.Semantic.DeepEqual(unchanged, before)
}
