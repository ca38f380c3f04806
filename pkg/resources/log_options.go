// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strconv"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// defaultCatchUpEntries is the default of etcd. Source: server/etcdserver/server.go of etcd 3.5 and 3.6.
const defaultCatchUpEntries = 5000

// SnapshotCount is after how many entries of its log a member of c that runs a minor version of etcd 3 makes a
// snapshot.
func SnapshotCount(c *v1beta2.EtcdCluster, minor uint) uint64 {
	desired := largestOption(c, "snapshot-count")
	if e := c.Spec.Etcd; e != nil && e.SnapshotCount != nil && *e.SnapshotCount > 0 {
		desired = max(desired, uint64(*e.SnapshotCount))
	}
	switch {
	case desired > 0:
		return desired
	case minor < 6:
		return 100000
	default:
		return 10000
	}
}

// CatchUpEntries is how many entries a leader of c keeps in memory for members that lag, or more. It is never less than the
// default: a version ignores the variable of a name that it does not know.
func CatchUpEntries(c *v1beta2.EtcdCluster) uint64 {
	const flag, experimental = "snapshot-catchup-entries", "experimental-snapshot-catchup-entries"
	return max(defaultCatchUpEntries, largestOption(c, flag), largestOption(c, experimental))
}

// largestOption is the largest value that a user has set for a numeric option of etcd, in a flag or in a variable; 0 if
// there is none. Which of them counts depends on the version and on other flags, and a log that is moved too far
// harms nothing.
func largestOption(c *v1beta2.EtcdCluster, flag string) uint64 {
	var largest uint64
	note := func(text string) {
		if n, err := strconv.ParseUint(text, 0, 64); err == nil {
			largest = max(largest, n)
		}
	}
	if e := c.Spec.Etcd; e != nil {
		for _, arg := range e.ExtraArgs {
			if name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); name == flag {
				note(value)
			}
		}
	}
	if p := c.Spec.Pod; p != nil {
		for i := range p.EtcdEnv {
			if p.EtcdEnv[i].Name == variableOf(flag) {
				note(p.EtcdEnv[i].Value)
			}
		}
	}
	return largest
}

// variableOf is the variable from which etcd takes an option without a flag.
func variableOf(flag string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
