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
	for _, list := range c.voterLists() {
		if names := quorumOf(list.voters, serves); len(names) > 0 {
			return "by " + list.source + ", " + describeUnseen(names)
		}
	}
	if names := slices.DeleteFunc(c.unknownVoters(), func(name string) bool { return !serves(name) }); len(names) > 0 {
		return "the last status does not know " + strings.Join(names, ", ") + ", which may vote and serve"
	}
	return ""
}

// voterList are voters, and where their names are from.
type voterList struct {
	source string
	voters []string
}

// voterLists returns the voters by the last status, and by the member list of each member that responds.
func (c *Cluster) voterLists() []voterList {
	status := voterList{source: "the last status"}
	for _, m := range c.electorate() {
		status.voters = append(status.voters, m.Name)
	}
	lists := []voterList{status}
	for i := range c.Members {
		m := &c.Members[i]
		if m.View == nil || m.View.Learner || c.Evidence(m.Name).HasEnded() {
			continue
		}
		own := voterList{source: "the member list of " + m.Name}
		for _, listed := range m.View.Members {
			if !listed.Learner {
				own.voters = append(own.voters, listed.Name)
			}
		}
		lists = append(lists, own)
	}
	return lists
}

// survivorsMayServe returns the voters that may come back and for which serves is true, if they may be
// a quorum without the voters that no longer exist; nil if they cannot. The last status does not show
// whether those were removed from etcd before their pods and PVCs ended. A member that responds does:
// with its list, this returns nil.
//
// Half of the voters that may come back are enough: one of them may be a member that was removed, too,
// and whose pod was not deleted yet. Before its pod is deleted, no other member is removed.
func (c *Cluster) survivorsMayServe(serves func(name string) bool) []string {
	var names []string
	survivors, lost := 0, false
	for i := range c.Members {
		if m := &c.Members[i]; m.View != nil && !m.View.Learner && len(m.View.Members) > 0 && !c.Evidence(m.Name).HasEnded() {
			return nil
		}
	}
	for _, m := range c.electorate() {
		switch {
		case !c.MayComeBack(m.Name):
			lost = true
			continue
		case m.Name != c.StoppedSource && m.Response == NoResponse && serves(m.Name):
			names = append(names, m.Name)
		}
		survivors++
	}
	if !lost || len(names) == 0 || len(names) < Quorum(survivors-1) {
		return nil
	}
	slices.Sort(names)
	return names
}

// mayServeUnreported is true for a member whose pod is ready as far as Kubernetes knows, and for one
// whose node does not report. After some 40 s Kubernetes calls the pods of such a node not ready,
// whether their members serve or not. Of an unmanaged member Kubernetes knows nothing.
func (c *Cluster) mayServeUnreported(name string) bool {
	if c.Evidence(name) == PodUnknown {
		return true
	}
	p := c.pod(name)
	return p != nil && !p.Evidence.HasEnded() && (p.Running && p.Ready || p.NodeNotReady)
}

func describeSurvivors(names []string) string {
	return strings.Join(names, ", ") + " may serve although the controller does not reach them: the members that no longer exist may have been removed from etcd after the last status"
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
