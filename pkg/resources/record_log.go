// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strconv"
	"strings"
)

// LogRecord says which versions have written the raft log of etcd.
type LogRecord struct {
	// ClusterID in hexadecimal of the etcd that it is about.
	ClusterID string
	// Minor is the oldest minor version of the members that have written what is behind
	// Index.
	Minor uint
	Index uint64
	// Readable is true once no member needs anything before Index.
	Readable bool
}

// readableLog stands in the record instead of an index.
const readableLog = "readable"

// parseLog reads what String has written. What cannot be read counts as none: the log is
// then advanced once more.
func parseLog(text string) LogRecord {
	words := strings.Fields(text)
	if len(words) != 3 {
		return LogRecord{}
	}
	minor, err := strconv.ParseUint(strings.TrimPrefix(words[1], "3."), 10, 16)
	if err != nil {
		return LogRecord{}
	}
	r := LogRecord{ClusterID: words[0], Minor: uint(minor), Readable: words[2] == readableLog}
	if r.Readable {
		return r
	}
	if r.Index, err = strconv.ParseUint(words[2], 10, 64); err != nil {
		return LogRecord{}
	}
	return r
}

// String writes the record of the log; it is empty for none.
func (r LogRecord) String() string {
	switch {
	case r.ClusterID == "":
		return ""
	case r.Readable:
		return fmt.Sprintf("%s 3.%d %s", r.ClusterID, r.Minor, readableLog)
	default:
		return fmt.Sprintf("%s 3.%d %d", r.ClusterID, r.Minor, r.Index)
	}
}
