// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	// CommandDiskTest measures a disk. Its second argument is a directory; it takes no
	// Request. It prints a DiskTest as one line of JSON each second and at the end.
	CommandDiskTest Command = "disktest"
	// DiskTestWritesFlag bounds how many writes the test makes.
	DiskTestWritesFlag = "writes"
	// DiskTestLimitFlag bounds how long the test takes.
	DiskTestLimitFlag = "limit"

	// DiskTestWriteBytes is about what etcd appends to its log for a write of Kubernetes.
	DiskTestWriteBytes = 2300
	// DiskTestWrites is how many writes a test makes by default: 23 MB.
	DiskTestWrites = 10_000
	// MaxDiskTestWrites bounds the file to 230 MB.
	MaxDiskTestWrites = 100_000
	// DiskTestLimit is how long a test takes at most by default.
	DiskTestLimit = time.Minute
)

// DiskTest says how long a disk took to make writes durable.
type DiskTest struct {
	// Writes that were made of those that were wanted. A test that reaches its limit ends
	// with fewer.
	Writes int `json:"writes"`
	Wanted int `json:"wanted"`
	// WriteBytes is the size of each write.
	WriteBytes       int   `json:"writeBytes"`
	TookMicroseconds int64 `json:"tookMicroseconds"`
	// P50, P99 and Max are durations of fdatasync after a write. They are 0 until the end.
	P50Microseconds int64 `json:"p50Microseconds,omitempty"`
	P99Microseconds int64 `json:"p99Microseconds,omitempty"`
	MaxMicroseconds int64 `json:"maxMicroseconds,omitempty"`
	// Done is true at the end of a test that did not fail.
	Done bool `json:"done,omitempty"`
	// Error says why a test failed.
	Error string `json:"error,omitempty"`
}

// DecodeDiskTest reads what the agent has printed.
func DecodeDiskTest(raw []byte) (*DiskTest, error) {
	t := &DiskTest{}
	if err := decodeStrictly(raw, t); err != nil {
		return nil, fmt.Errorf("%w result of a disk test: %w", ErrInvalid, err)
	}
	return t, nil
}

// Encode returns one line of JSON.
func (t *DiskTest) Encode() ([]byte, error) { return json.Marshal(t) }
