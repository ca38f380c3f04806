// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"time"
)

// maxWaitInPlace is how long after its creation a restore may begin to replace the data of a cluster.
const maxWaitInPlace = 24 * time.Hour

// ruleExpired ends a restore in place that has requested nothing for a day. Its wait may end when a user sets another field
// much later, and a restore that the user no longer has in mind would then replace the data of the cluster. Automatic
// restores end with the loss that they are for. A new cluster waits for its restore and has no data to lose.
func ruleExpired(o *Observed) (Plan, bool) {
	isInPlace := o.Restore.Spec.ClusterTemplate == nil && (o.Cluster == nil || !o.isMade() && !o.fills())
	if !isInPlace || o.isAutomatic() || o.isRequested() || o.Now.Sub(o.Restore.CreationTimestamp.Time) < maxWaitInPlace {
		return Plan{}, false
	}
	return Plan{Phase: o.Restore.Status.Phase}.failed(ReasonExpired, fmt.Sprintf(
		"nothing was changed: this restore in place did not begin to replace data within %.0f hours of its creation; create another EtcdRestore", maxWaitInPlace.Hours())), true
}
