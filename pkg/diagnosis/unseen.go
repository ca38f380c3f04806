// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"strings"
)

// UnseenQuorum says why members that do not respond to the controller may serve clients as
// a quorum; empty if they cannot. Such members may be on the other side of a partition.
//
// The last status alone does not exclude that. It may be from an earlier time, because the
// API was restored from a backup of its own, and then not name the members that serve now.
// So the member list of each member that responds counts, too. A pod that is labelled a voter
// and that the status does not know counts as a quorum by itself.
func (c *Cluster) UnseenQuorum() string { return c.unseenQuorum(c.mayRun) }

// unseenQuorum is UnseenQuorum for the members for which serves is true.
func (c *Cluster) unseenQuorum(serves func(name string) bool) string {
	var voters []string
	for _, m := range c.electorate() {
		voters = append(voters, m.Name)
	}
	if names := quorumOf(voters, serves); len(names) > 0 {
		return "by the last status, " + describeUnseen(names)
	}
	for i := range c.Members {
		m := &c.Members[i]
		if m.View == nil || m.View.Learner || c.Evidence(m.Name).HasEnded() {
			continue
		}
		voters = nil
		for _, listed := range m.View.Members {
			if !listed.Learner {
				voters = append(voters, listed.Name)
			}
		}
		if names := quorumOf(voters, serves); len(names) > 0 {
			return "by the member list of " + m.Name + ", " + describeUnseen(names)
		}
	}
	if names := slices.DeleteFunc(c.unknownVoters(), func(name string) bool { return !serves(name) }); len(names) > 0 {
		return "the last status does not know " + strings.Join(names, ", ") + ", which may vote and serve"
	}
	return ""
}

// quorumOf returns the voters for which serves is true if they are a quorum, or nil.
func quorumOf(voters []string, serves func(name string) bool) []string {
	names := slices.DeleteFunc(slices.Clone(voters), func(name string) bool { return !serves(name) })
	if len(names) == 0 || len(names) < Quorum(len(voters)) {
		return nil
	}
	return names
}

func describeUnseen(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ") + " are a quorum, and they may serve although they do not respond to the controller"
}

// mayServe is true for a member whose pod is ready as far as Kubernetes knows, unless the
// member itself says that it serves no reads.
func (c *Cluster) mayServe(name string) bool {
	m := c.member(name)
	if m == nil {
		m = &Member{Name: name}
	}
	state := c.stateWith(m, Votes)
	return state == Unreachable || state.IsServing()
}

// mayRun is mayServe, and also true for a member in a pod whose deletion was requested and
// that runs as far as Kubernetes knows. It may serve until its node hears of the request.
func (c *Cluster) mayRun(name string) bool {
	if c.mayServe(name) {
		return true
	}
	p, m := c.pod(name), c.member(name)
	return p != nil && p.Evidence == DeletionRequested && p.Running && (m == nil || m.Response == NoResponse || m.Response == FollowsLeader)
}
