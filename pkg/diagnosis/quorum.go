// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "strconv"

// NoticeableLag is how many raft entries a member may be behind before it is reported;
// less is usual for a follower.
const NoticeableLag = 1000

// Quorum is how many of the voters must agree.
func Quorum(voters int) int { return voters/2 + 1 }

// FaultTolerance is how many more voters may fail before the quorum is lost. A negative
// number says how many voters must serve again. A quorum that does not respond is lost,
// however many of its members serve: then confirmed is false.
func FaultTolerance(voters, serving int, confirmed bool) int32 {
	tolerance := int32(serving - Quorum(voters))
	if !confirmed {
		return min(tolerance, -1)
	}
	return tolerance
}

// Count returns a number with its noun, such as "1 voter" and "3 voters".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
