// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
)

// listVoters returns the voting members.
func listVoters(members []Member) []*Member {
	var voters []*Member
	for i := range members {
		if m := &members[i]; !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// listOwn returns the members that this controller added.
func listOwn(members []Member) []*Member {
	var own []*Member
	for i := range members {
		if m := &members[i]; !m.Unmanaged {
			own = append(own, m)
		}
	}
	return own
}

// listOwnVoters returns the voters that this controller added.
func listOwnVoters(members []Member) []*Member {
	return slices.DeleteFunc(listVoters(members), func(m *Member) bool { return m.Unmanaged })
}

// listUnmanaged returns the members that this controller did not add.
func listUnmanaged(members []Member) []*Member {
	var unmanaged []*Member
	for i := range members {
		if m := &members[i]; m.Unmanaged {
			unmanaged = append(unmanaged, m)
		}
	}
	return unmanaged
}

// memberByName returns the member called name, or nil.
func memberByName(members []Member, name string) *Member {
	for i := range members {
		if members[i].Name == name {
			return &members[i]
		}
	}
	return nil
}

// findLeader returns the member that most of the healthy voters see as leader, or nil
// if they see none or do not agree.
func findLeader(members []Member) *Member {
	votes := map[uint64]int{}
	total := 0
	for _, m := range listVoters(members) {
		if m.Health == Healthy && m.Leader != 0 {
			votes[m.Leader]++
			total++
		}
	}
	for i := range members {
		if m := &members[i]; 2*votes[m.ID] > total {
			return m
		}
	}
	return nil
}

// findJoiningMember returns the member whose joining is not finished, or nil.
func findJoiningMember(members []Member) *Member {
	for i := range members {
		if m := &members[i]; m.Learner || !m.Started {
			return m
		}
	}
	return nil
}

// findBlockingMember returns the member that keeps new ones from joining, or nil. A new member asks
// its peers for the member list in the order of their URLs. It ends if the first list that it
// gets is not its own. A member whose disk takes no writes responds for ever with the list from
// before. Source: GetClusterFromRemotePeers of etcd 3.5 and 3.6.
func findBlockingMember(members []Member) *Member {
	var first *Member
	for i := range members {
		m := &members[i]
		if responseOf(m) == diagnosis.NoResponse || m.Unmanaged {
			continue
		}
		if first == nil || m.Name+"." < first.Name+"." { // as in the URL
			first = m
		}
	}
	if first == nil || first.Health == Healthy {
		return nil
	}
	return first
}

// listPeerNames lists all members, for the command line of a member that starts.
func listPeerNames(members []Member, pvcs []PVC) []string {
	var names []string
	for i := range members {
		names = append(names, members[i].Name)
	}
	if len(names) > 0 {
		return names
	}
	for i := range pvcs {
		if pvcByName(pvcs, pvcs[i].Name) != nil {
			names = append(names, pvcs[i].Name)
		}
	}
	return names
}

// peersDiffer is true if a pod was started to join other members than there are.
func peersDiffer(members []Member, p *Pod) bool {
	if p.Peers == nil {
		return false
	}
	for i := range members {
		if !slices.Contains(p.Peers, members[i].Name) {
			return true
		}
	}
	return len(p.Peers) != len(members)
}

// newestRaftIndex is the newest raft entry that a voter has.
func newestRaftIndex(members []Member) uint64 {
	var newest uint64
	for _, m := range listVoters(members) {
		newest = max(newest, m.RaftIndex)
	}
	return newest
}

// AlarmTexts returns the alarms that a member reports, for a reader.
func AlarmTexts(m *Member) []string {
	var list []string
	for _, a := range m.Alarms {
		list = append(list, fmt.Sprintf("%s (raised by %x)", a.Type, a.RaisedBy))
	}
	return list
}

// listNoSpace returns the IDs of the members that have raised the alarm NOSPACE, in their order. It
// believes voters that serve: another member responds with what it knew before.
func listNoSpace(members []Member) []uint64 {
	var raised []uint64
	for _, m := range listVoters(members) {
		for _, a := range m.Alarms {
			if a.Type == alarmNoSpace && m.Health == Healthy {
				raised = append(raised, a.RaisedBy)
			}
		}
	}
	slices.Sort(raised)
	return slices.Compact(raised)
}

// findCorrupt returns a member that says that data was found to be corrupt, or nil. While members serve it believes these:
// another member responds with what it knew before, such as one whose disk hangs, and never learns that the alarm was
// disarmed.
func findCorrupt(members []Member) *Member {
	serves := slices.ContainsFunc(members, func(m Member) bool { return m.Health == Healthy })
	for i := range members {
		if m := &members[i]; (m.Health == Healthy || !serves) && slices.ContainsFunc(m.Alarms, func(a Alarm) bool { return a.Type == alarmCorrupt }) {
			return m
		}
	}
	return nil
}

// responseOf returns what a member said when it was probed.
func responseOf(m *Member) diagnosis.Response {
	switch {
	case m.Health == Healthy:
		return diagnosis.FollowsLeader
	case m.Reason == ReasonNoLeader:
		return diagnosis.NoLeader
	case m.Reason == ReasonNotServing:
		return diagnosis.NoRead
	default:
		return diagnosis.NoResponse
	}
}

// Responds is true for a member that responded when it was probed.
func Responds(m *Member) bool { return responseOf(m) != diagnosis.NoResponse }
