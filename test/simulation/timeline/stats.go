// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Stats counts what happened in schedules.
type Stats struct {
	Schedules, Steps, Reconciles, Writes int
	WritesAcked, WritesFailed            int
	Spec, Lost, NeverServed              int
	// Recovered counts clusters that went on in new members, WritesLost what was lost
	// with their quorum.
	Recovered, WritesLost int
	// Defragmented counts members.
	Defragmented int
	// Drained counts lasting drains that have moved every member.
	Drained int
	Faults  map[string]int
	// Rules counts how often each rule of the planner has decided.
	Rules map[string]int
}

// NewStats has counted nothing.
func NewStats() *Stats { return &Stats{Faults: map[string]int{}, Rules: map[string]int{}} }

// Fault counts a fault.
func (s *Stats) Fault(name string) { s.Faults[name]++ }

// Add adds the counts of another Stats.
func (s *Stats) Add(o *Stats) {
	s.Schedules += o.Schedules
	s.Steps += o.Steps
	s.Reconciles += o.Reconciles
	s.Writes += o.Writes
	s.WritesAcked += o.WritesAcked
	s.WritesFailed += o.WritesFailed
	s.Spec += o.Spec
	s.Defragmented += o.Defragmented
	s.Drained += o.Drained
	s.Lost += o.Lost
	s.NeverServed += o.NeverServed
	s.Recovered += o.Recovered
	s.WritesLost += o.WritesLost
	for name, n := range o.Faults {
		s.Faults[name] += n
	}
	for name, n := range o.Rules {
		s.Rules[name] += n
	}
}

// String writes the figures for a reader.
func (s *Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %d steps, %d reconciles, %d API writes, client writes %d acknowledged %d rejected\n",
		s.Schedules, s.Steps, s.Reconciles, s.Writes, s.WritesAcked, s.WritesFailed)
	fmt.Fprintf(&b, "%d members defragmented, %d nodes drained\n", s.Defragmented, s.Drained)
	fmt.Fprintf(&b, "ends: %d as declared, %d lost to faults and said so, %d never served and said so; %d recoveries, %d writes lost with the quorum\nfaults:",
		s.Spec, s.Lost, s.NeverServed, s.Recovered, s.WritesLost)
	b.WriteString(counted(s.Faults))
	b.WriteString("\nrules:" + counted(s.Rules))
	return b.String()
}

func counted(counts map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, " %s %d,", name, counts[name])
	}
	return strings.TrimSuffix(b.String(), ",")
}
