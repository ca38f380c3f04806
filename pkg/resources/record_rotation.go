// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// RotationRecord says how often the last rotation of the CA was carried out. The Secret of the CA cannot say it:
// a program that puts an older Secret back brings the annotations of that time, too. A tenant may write the record.
// A forged entry stops one rotation at most, and the status says how to request another rotation.
type RotationRecord struct {
	// Cause is a hash of what the rotation was for: a request, or the serial number of a CA that would expire.
	Cause string
	// Rounds is how often it was carried out.
	Rounds int
}

// Next returns the record after a rotation for this cause.
func (r RotationRecord) Next(cause string) RotationRecord {
	return RotationRecord{Cause: hashOfCause(cause), Rounds: r.RoundsOf(cause) + 1}
}

// RoundsOf returns how often the rotation for this cause was carried out in a row.
func (r RotationRecord) RoundsOf(cause string) int {
	if r.Cause != hashOfCause(cause) {
		return 0
	}
	return r.Rounds
}

func hashOfCause(cause string) string {
	sum := sha256.Sum256([]byte(cause))
	return hex.EncodeToString(sum[:8])
}

// parseRotation reads what String has written. What cannot be read counts as none.
func parseRotation(text string) RotationRecord {
	r := RotationRecord{}
	if _, err := fmt.Sscanf(text, "%d %s", &r.Rounds, &r.Cause); err != nil || r.Rounds < 1 {
		return RotationRecord{}
	}
	return r
}

// String writes the record; it is empty for none.
func (r RotationRecord) String() string {
	if r.Rounds == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", r.Rounds, r.Cause)
}
