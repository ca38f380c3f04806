// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// defaultCatchUpEntries is the default of etcd. Source: server/etcdserver/server.go of etcd 3.5 and 3.6.
const defaultCatchUpEntries = 5000

// LogOptions are the options of etcd that say how much of its log members keep. 0 is the default of the version.
type LogOptions struct {
	// SnapshotCount is after how many entries of its log a member makes a snapshot.
	SnapshotCount uint64
	// CatchUpEntries is how many entries a leader keeps in memory for members that lag.
	CatchUpEntries uint64
}

// LogOptionsOf returns the options that c declares.
func LogOptionsOf(c *v1beta2.EtcdCluster) LogOptions {
	var args []string
	var env []corev1.EnvVar
	if e := c.Spec.Etcd; e != nil {
		args = e.ExtraArgs
		if n := e.SnapshotCount; n != nil {
			args = append(slices.Clone(args), "--"+flagSnapshotCount+"="+strconv.FormatInt(*n, 10))
		}
	}
	if p := c.Spec.Pod; p != nil {
		env = p.EtcdEnv
	}
	return logOptions(args, env)
}

// LogOptionsOfPod returns the options of etcd in a pod.
func LogOptionsOfPod(p *corev1.Pod) LogOptions {
	c := etcdContainer(p)
	return logOptions(c.Command, c.Env)
}

const (
	flagSnapshotCount = "snapshot-count"
	flagCatchUp       = "snapshot-catchup-entries"
)

func logOptions(args []string, env []corev1.EnvVar) LogOptions {
	return LogOptions{
		SnapshotCount:  largestOption(args, env, flagSnapshotCount),
		CatchUpEntries: max(largestOption(args, env, flagCatchUp), largestOption(args, env, "experimental-"+flagCatchUp)),
	}
}

// Entries returns how many entries a member that runs a minor version of etcd 3 adds before it makes a snapshot, and how many
// a leader keeps in memory, or more. The latter is never less than the default: a version ignores the variable of a
// name that it does not know.
func (o LogOptions) Entries(minor uint) (snapshot, catchUp uint64) {
	snapshot = o.SnapshotCount
	switch {
	case snapshot > 0:
	case minor < 6:
		snapshot = 100000
	default:
		snapshot = 10000
	}
	return snapshot, max(defaultCatchUpEntries, o.CatchUpEntries)
}

// largestOption is the largest value that is set for a numeric option of etcd, in a flag or in a variable; 0 if
// there is none. Which of them counts depends on the version and on other flags, and a log that is moved too far
// harms nothing.
func largestOption(args []string, env []corev1.EnvVar, flag string) uint64 {
	var largest uint64
	note := func(text string) {
		if n, err := strconv.ParseUint(text, 0, 64); err == nil {
			largest = max(largest, n)
		}
	}
	for _, arg := range args {
		if name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); name == flag {
			note(value)
		}
	}
	variable := variableOf(flag)
	for i := range env {
		if env[i].Name == variable {
			note(env[i].Value)
		}
	}
	return largest
}

// variableOf is the variable from which etcd takes an option without a flag.
func variableOf(flag string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
