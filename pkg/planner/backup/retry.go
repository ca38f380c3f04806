// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/planner/job"
)

const (
	// firstRetry is how long the first retry waits; each further one waits twice as
	// long, up to lastRetry.
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
	// maxAttempts of one backup: about an hour of trying. Then a periodic backup waits
	// for its next scheduled time, and a single one for a change of its spec.
	maxAttempts = 12
)

// backOff is how long to wait after so many failed attempts.
func backOff(failed int32) time.Duration { return job.Delay(firstRetry, lastRetry, int(failed)) }
