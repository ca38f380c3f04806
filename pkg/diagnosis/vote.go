// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "slices"

// Vote says whether a member votes.
type Vote string

// Values of Vote.
const (
	// DoesNotVote: it is known not to vote.
	DoesNotVote Vote = "DoesNotVote"
	// MayVote: it is not known to have voted, and may have been promoted since the last
	// status.
	MayVote Vote = "MayVote"
	// Votes: it is known to have voted.
	Votes Vote = "Votes"
)

// VoteOf returns whether a member votes, while no member list can be read through a quorum.
// A learner is promoted only after a status has said that it has started. A member of an
// etcd without learners votes from the beginning.
func (c *Cluster) VoteOf(m *Member) Vote {
	switch {
	case m.Started && !m.Learner, m.View != nil && !m.View.Learner:
		return Votes
	case m.View != nil, !c.MayComeBack(m.Name):
		return DoesNotVote
	case m.Started, !m.Learner && !c.HasLearners:
		return MayVote
	default:
		return DoesNotVote
	}
}

// electorate returns the members that are counted while no member list can be read through
// a quorum: those that are known to have voted, and those that may vote by now.
func (c *Cluster) electorate() []*Member {
	var list []*Member
	known := false
	for i := range c.Members {
		m := &c.Members[i]
		vote := c.VoteOf(m)
		known = known || vote == Votes
		if vote != DoesNotVote {
			list = append(list, m)
		}
	}
	if !known {
		return c.voters() // the last status knows no member that has started
	}
	return list
}

// voters returns the members that are not learners.
func (c *Cluster) voters() []*Member {
	var list []*Member
	for i := range c.Members {
		if !c.Members[i].Learner {
			list = append(list, &c.Members[i])
		}
	}
	return list
}

// undecided returns the members whose votes decide whether a loss is permanent: without
// them, the voters that may come back are no quorum.
func (c *Cluster) undecided() []*Member {
	var list []*Member
	voters, left := 0, 0
	for i := range c.Members {
		m := &c.Members[i]
		switch c.VoteOf(m) {
		case Votes:
			voters++
			if c.MayComeBack(m.Name) {
				left++
			}
		case MayVote:
			list = append(list, m)
		case DoesNotVote:
		}
	}
	if left >= Quorum(voters) {
		return nil
	}
	return list
}

// unknownVoters returns the pods that are labelled as voters and that the last status does
// not know as members. A member is promoted only after a status has named it. So the last
// status is from an earlier time: the API may have been restored from a backup of its own.
func (c *Cluster) unknownVoters() []string {
	var list []string
	for i := range c.Pods {
		p := &c.Pods[i]
		if p.Evidence.HasEnded() || !p.LabelledVoter || p.Name == c.RecoveryMember {
			continue
		}
		if m := c.member(p.Name); m == nil || m.View == nil && c.VoteOf(m) == DoesNotVote {
			list = append(list, p.Name)
		}
	}
	return list
}

// LostVoters returns the voters that cannot come back, by the last status and by the member
// list of each member that responds.
func (c *Cluster) LostVoters() []string {
	var list []string
	for i := range c.Members {
		m := &c.Members[i]
		if !m.Learner && !c.MayComeBack(m.Name) {
			list = append(list, m.Name)
		}
		if m.View == nil {
			continue
		}
		for _, listed := range m.View.Members {
			if !listed.Learner && !c.MayComeBack(listed.Name) {
				list = append(list, listed.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
