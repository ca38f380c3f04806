// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import "time"

// Delay is the wait after a number of failed attempts: first after the first one, twice as
// long after each further one, and longest at most.
func Delay(first, longest time.Duration, failed int) time.Duration {
	wait := first
	for range failed - 1 {
		if wait *= 2; wait >= longest {
			return longest
		}
	}
	return wait
}
