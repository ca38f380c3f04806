// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Schedule is one simulated story: a cluster and what happens to it. It follows from
// its seed; shrinking takes events out of it.
type Schedule struct {
	Seed uint64
	// Size, Version, Volumes and RetainDeleted and RetainScaled are the spec.
	Size                                 int
	Version                              string
	Volumes, RetainDeleted, RetainScaled bool
	// Snapshots, if not 0, is after how many entries members make a snapshot.
	Snapshots int64
	// LocalVolumes is true if a volume stays on the node where it was first used.
	LocalVolumes bool
	// Evicts is true if a policy has Kubernetes delete pods on nodes that do not respond.
	Evicts bool
	// Stay, if not 0, is how long the author of the spec lets pods stay on nodes that do not
	// respond. No pod may leave such a node for that.
	Stay time.Duration
	// Expandable is true if the storage class lets volumes grow.
	Expandable bool
	// LearnersReady is true if the readiness of etcd does not tell a learner.
	LearnersReady bool
	// Deadly schedules may destroy a quorum permanently.
	Deadly bool
	// Certificates is true if the cluster has spec.TLS.auto.
	Certificates bool
	// Automatic is true if the spec lets the cluster recover by itself.
	Automatic bool
	// Recovers is true if a person asks for a recovery once all faults are over.
	Recovers bool
	// PodsChanged is true if an admission policy changes pods.
	PodsChanged bool
	// Joins is true if the members join an etcd that another program runs.
	Joins bool
	// Skew is how far the clocks of controllers may be from that of Kubernetes.
	Skew time.Duration
	// TakesBack is true if a person takes the PVCs of an earlier cluster back. Otherwise the person takes
	// their label away, so that the cluster begins empty beside them.
	TakesBack bool
	// KeepsBackups, if not 0, is how many backups the retention keeps. Only stories set it.
	KeepsBackups int
	Events       []Event
}

// VersionLines are the versions between which clusters move, oldest first.
var VersionLines = [][]string{
	{"3.5.26", "3.5.27", "3.6.8", "3.6.11", "3.7.0"},
	{"3.2.13", "3.3.27", "3.4.30", "3.5.21", "3.5.26", "3.6.8"},
}

// Without returns a copy of the schedule that leaves out events [from, to).
func (s *Schedule) Without(from, to int) *Schedule {
	c := *s
	c.Events = append(slices.Clone(s.Events[:from]), s.Events[to:]...)
	return &c
}

// String writes the schedule for a reader.
func (s *Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: size %d, version %s, volumes %t, retain %t/%t, learners ready %t, deadly %t, certificates %t, automatic %t, recovers %t, expandable %t, local volumes %t, evicts %t",
		s.Seed, s.Size, s.Version, s.Volumes, s.RetainDeleted, s.RetainScaled, s.LearnersReady, s.Deadly, s.Certificates, s.Automatic, s.Recovers, s.Expandable, s.LocalVolumes, s.Evicts)
	fmt.Fprintf(&b, ", pods changed %t, skew %v, stay %v", s.PodsChanged, s.Skew, s.Stay)
	for _, e := range s.Events {
		fmt.Fprintf(&b, "\n  %v", e)
	}
	return b.String()
}

// Line returns the versions that the cluster of the schedule may move along.
func (s *Schedule) Line() []string {
	for _, line := range VersionLines {
		if slices.Contains(line, s.Version) {
			return line
		}
	}
	return VersionLines[0]
}

// NearSkew is how far the clocks of kube-apiservers are from each other at most.
const NearSkew = 5 * time.Minute

// Skews are how far the clocks of the machines of controllers are from that of Kubernetes at most.
var Skews = []time.Duration{NearSkew, NearSkew, 24 * time.Hour}

// EvictAfter is when Kubernetes deletes the pods of an unresponsive node.
const EvictAfter = 5 * time.Minute

// MemberLossTimeout is after how long the cluster of the schedule replaces a lost member.
func (s *Schedule) MemberLossTimeout() time.Duration {
	if s.Stay == 0 {
		return EvictAfter
	}
	return max(s.Stay, time.Minute)
}
