// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// disarmNoSpace disarms an alarm of a full database. A voter may report the alarm for a moment after
// that, and then no event repeats what is done already.
func disarmNoSpace(ctx context.Context, r *run, a planner.DisarmNoSpace) error {
	disarmed, err := r.Etcd.DisarmNoSpace(ctx, r.seen.voters, a.ID)
	if err != nil || !disarmed {
		return err
	}
	normal(r, EventAlarmDisarmed, "Disarmed alarm NOSPACE of member %x: every database is below its quota", a.ID)
	return nil
}
